//! The controller of farms. Its keys are farms: a namespace, and the value of the label `buildbarn.io/farm`.

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

use super::{
    act::act,
    decide::{Decision, decide},
    facts::{FarmFacts, FarmSources},
};
use crate::{jsonnet::Evaluate, queue::BuildQueue};

/// The field manager, and the name of the controller.
pub const NAME: &str = "farm";

/// What the controller needs besides its context.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Evaluates the configurations of users.
    pub evaluator: Arc<dyn Evaluate>,
    /// Speaks to schedulers.
    pub queue: Arc<dyn BuildQueue>,
    /// The namespace of the operator.
    pub operator_namespace: String,
}

/// The controller of all farms.
pub fn component(context: &Context, settings: Settings) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, NAME);
    let Settings {
        evaluator,
        queue,
        operator_namespace,
    } = settings;
    let namespace = &operator_namespace;
    let sources = FarmSources::new(&mut builder, evaluator, queue, namespace, context.clock)?;
    let reconciler = FarmReconciler {
        tools: builder.tools(),
        sources,
    };
    Ok(builder.build(reconciler, FarmReconciler::reconcile))
}

struct FarmReconciler {
    tools: Tools,
    sources: FarmSources,
}

impl FarmReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(mut facts) = self.sources.gather(&key).await else {
            return Ok(Outcome::Gone);
        };
        let mut decision = decide(&facts);
        if !decision.inquiries.is_empty() {
            self.inquire(key.namespace(), &mut facts, &decision).await;
            decision = decide(&facts);
        }
        let requeue_after = decision.requeue_after;
        act(&self.tools, &self.sources, &facts, decision).await?;
        Ok(requeue_after.map_or(Outcome::Done, Outcome::RequeueAfter))
    }

    /// Asks the schedulers about the pools that are drained.
    async fn inquire(&self, namespace: &str, facts: &mut FarmFacts, decision: &Decision) {
        for inquiry in &decision.inquiries {
            let address = self.sources.queue_address(namespace, &inquiry.scheduler);
            let answer = match address {
                None => Err(format!(
                    "the scheduler {} has no address",
                    inquiry.scheduler
                )),
                Some(address) => {
                    let answer = self.sources.queue.queue(&address, &inquiry.queue).await;
                    answer.map_err(|error| error.to_string())
                }
            };
            facts.queues.insert(inquiry.pool.clone(), answer);
        }
    }
}
