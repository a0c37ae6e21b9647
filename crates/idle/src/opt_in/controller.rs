//! The controller that maintains an ElastiService for each annotated object.

use std::sync::Arc;

use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    watch::WatchesStopped,
};

use super::{decide::decide, facts::AnnotationSources, limits::OptInLimits};

pub(super) const NAME: &str = "idle-annotations";

/// The controller. `operator_namespace` is the namespace whose switches apply everywhere.
pub fn component(
    context: &Context,
    operator_namespace: &str,
    limits: &OptInLimits,
) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, NAME);
    let sources = AnnotationSources::new(&mut builder, context, operator_namespace, limits)?;
    let namespaces = sources.namespaces.clone();
    let reconciler = AnnotationReconciler {
        tools: builder.tools(),
        sources,
    };
    let controller = builder.build(reconciler, AnnotationReconciler::reconcile);
    Ok(Component::new(NAME, |stop| async move {
        tokio::join!(controller.run(stop.clone()), namespaces.run(stop));
    }))
}

struct AnnotationReconciler {
    sources: AnnotationSources,
    tools: Tools,
}

impl AnnotationReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(facts) = self.sources.gather(&key).await else {
            return Ok(Outcome::Gone);
        };
        let decision = decide(&facts);
        tracing::debug!(%key, reason = decision.reason.name, "{}", decision.reason);
        self.tools.writer.execute(decision.plan).await?;
        for event in &decision.events {
            let about = facts.reference.clone();
            self.tools.recorder.record_for(about, event).await;
        }
        for (about, event) in &decision.service_events {
            self.tools.recorder.record_for(about.clone(), event).await;
        }
        let requeue_after = decision.requeue_after;
        Ok(requeue_after.map_or(Outcome::Done, Outcome::RequeueAfter))
    }
}
