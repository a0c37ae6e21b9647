//! The controller that runs ProwJobs.

use std::sync::Arc;

use neap_kit::{
    apply::{Error, Plan},
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    watch::WatchesStopped,
};

use super::{
    ProwOptions,
    decide::{decide, refused},
    facts::FactSources,
};

const NAME: &str = "prow";

pub(super) fn component(
    context: &Context,
    options: ProwOptions,
) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, NAME);
    let sources = FactSources::new(&mut builder, context, options)?;
    let reconciler = ProwJobReconciler {
        tools: builder.tools(),
        sources,
    };
    Ok(builder.build(reconciler, ProwJobReconciler::reconcile))
}

struct ProwJobReconciler {
    sources: FactSources,
    tools: Tools,
}

impl ProwJobReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(facts) = self.sources.gather(&key) else {
            return Ok(Outcome::Gone);
        };
        let decision = decide(&facts);
        match self.tools.writer.execute(decision.plan).await {
            Err(Error::Refused { source, .. }) if is_about_the_request(&source) => {
                // The same pod would be refused again.
                let ended = refused(&facts, &source.to_string());
                self.tools.writer.execute(Plan::from(vec![ended])).await?;
            }
            done => drop(done?),
        }
        let requeue_after = decision.requeue_after;
        Ok(requeue_after.map_or(Outcome::Done, Outcome::RequeueAfter))
    }
}

/// Whether the API server refuses what is asked for, and not only now.
fn is_about_the_request(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 400 | 403 | 422))
}
