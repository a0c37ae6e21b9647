//! The controller of farms. Its keys are farms: a namespace, and the value of the label `buildbarn.io/farm`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    clock::{Clock, Uptime},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    watch::WatchesStopped,
};
use parking_lot::Mutex;

use super::{
    act::act,
    decide::{Decision, decide},
    facts::{FarmFacts, FarmSources},
};
use crate::{jsonnet::Evaluate, queue::BuildQueue};

/// The components of a farm are mostly created together. A farm with a new component is looked at after this
/// time, so that what is made for one is not made again for the next.
const CREATION_DELAY: Duration = Duration::from_secs(1);

/// The field manager, and the name of the controller.
pub const NAME: &str = "farm-operator";

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
    let sources = FarmSources::new(context, &mut builder, evaluator, queue, namespace)?;
    let (evaluations, enqueuer) = (sources.evaluations.clone(), builder.enqueuer());
    let monitors = sources.await_monitors();
    let reconciler = FarmReconciler {
        tools: builder.tools(),
        clock: context.clock,
        new_farms: Mutex::default(),
        sources,
    };
    let controller = builder.build(reconciler, FarmReconciler::reconcile);
    Ok(Component::new(NAME, move |stop| async move {
        let monitored = monitors.run(enqueuer.clone(), stop.clone());
        let evaluating = evaluations.run(enqueuer, stop.clone());
        tokio::join!(controller.run(stop), evaluating, monitored);
    }))
}

struct FarmReconciler {
    tools: Tools,
    sources: FarmSources,
    clock: Clock,
    /// When a new component of a farm was first seen.
    new_farms: Mutex<BTreeMap<Key, Uptime>>,
}

impl FarmReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(mut facts) = self.sources.gather(&key) else {
            self.new_farms.lock().remove(&key);
            return Ok(Outcome::Gone);
        };
        if let Some(delay) = self.creation_delay(&key, &facts) {
            return Ok(Outcome::RequeueAfter(delay));
        }
        let mut decision = decide(&facts);
        if !decision.inquiries.is_empty() {
            self.inquire(key.namespace(), &mut facts, &decision).await;
            decision = decide(&facts);
        }
        let requeue_after = decision.requeue_after;
        act(&self.tools, &self.sources, &facts, decision).await?;
        Ok(requeue_after.map_or(Outcome::Done, Outcome::RequeueAfter))
    }

    /// The time until a farm with a new component is looked at.
    fn creation_delay(&self, key: &Key, facts: &FarmFacts) -> Option<Duration> {
        let mut components = facts.components.iter();
        let has_new = components.any(|it| !it.has_finalizer() && !it.is_deleting());
        let mut new_farms = self.new_farms.lock();
        if !has_new {
            new_farms.remove(key);
            return None;
        }
        let now = self.clock.uptime();
        let seen = *new_farms.entry(key.clone()).or_insert(now);
        let left = CREATION_DELAY.saturating_sub(now.saturating_sub(seen));
        (!left.is_zero()).then_some(left)
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
