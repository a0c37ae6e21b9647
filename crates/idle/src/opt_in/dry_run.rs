//! The next decision about annotated objects, without carrying it out.

use neap_kit::{builder::ControllerBuilder, context::Context, key::Key, watch::WatchesStopped};

use super::{
    controller::NAME,
    decide::{Decision, decide},
    facts::{AnnotationSources, DEPLOYMENT_KIND, SERVICE_KIND, STATEFUL_SET_KIND, key_of},
    limits::OptInLimits,
};
use crate::opt_in::annotations::ENABLED;

/// The decision about one annotated object.
#[derive(Debug, Clone)]
pub struct AnnotatedDryRun {
    /// The kind of the object.
    pub kind: &'static str,
    /// The decision.
    pub decision: Decision,
}

/// The decisions that an operator would make about the Service, the Deployment and the StatefulSet of this
/// name that have the annotation. The watches of `context` have to run. Nothing is written.
pub async fn dry_run(
    context: &Context,
    operator_namespace: &str,
    limits: &OptInLimits,
    key: &Key,
) -> Result<Vec<AnnotatedDryRun>, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, NAME);
    let sources = AnnotationSources::new(&mut builder, context, operator_namespace, limits)?;
    sources.synced().await;
    let mut decisions = Vec::new();
    for kind in [SERVICE_KIND, DEPLOYMENT_KIND, STATEFUL_SET_KIND] {
        let key = key_of(kind, key.namespace(), key.name());
        let Some(facts) = sources.gather(&key).await else {
            continue;
        };
        let annotations = facts.annotated.annotations.as_ref();
        if annotations.is_some_and(|all| all.contains_key(ENABLED)) {
            let decision = decide(&facts);
            decisions.push(AnnotatedDryRun { kind, decision });
        }
    }
    Ok(decisions)
}
