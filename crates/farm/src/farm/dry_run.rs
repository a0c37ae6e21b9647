//! The next decision about a farm, without carrying it out.

use std::sync::Arc;

use kube::Client;
use neap_kit::{
    builder::ControllerBuilder,
    clock::Clock,
    context::Context,
    key::Key,
    lease::Leadership,
    watch::{Watches, WatchesStopped},
};
use tokio_util::sync::CancellationToken;

use super::{
    controller::NAME,
    decide::{Decision, decide},
    facts::{FarmFacts, FarmSources},
};
use crate::{jsonnet::Evaluate, queue::BuildQueue};

/// The facts about a farm and the decision that an operator would make; none if there is no such farm.
/// Schedulers are not asked, so pools that are drained are shown as the status has them.
pub async fn dry_run(
    client: Client,
    clock: Clock,
    evaluator: Arc<dyn Evaluate>,
    queue: Arc<dyn BuildQueue>,
    key: &Key,
) -> Result<Option<(FarmFacts, Decision)>, WatchesStopped> {
    let (watches, runner) = Watches::new(clock);
    let watches = if key.namespace().is_empty() {
        watches
    } else {
        watches.in_namespaces([key.namespace().to_owned()])
    };
    let context = Context {
        client,
        watches,
        leadership: Leadership::without_election(clock),
        clock,
    };
    let mut builder = ControllerBuilder::new(&context, NAME);
    let namespace = crate::api::OPERATOR_NAMESPACE;
    let sources = FarmSources::new(&context, &mut builder, evaluator, queue, namespace)?;
    let stop = CancellationToken::new();
    let reading = async {
        sources.synced().await;
        // What the first look asks for, the second one knows.
        sources.gather(key)?;
        sources.evaluations.evaluate_waiting().await;
        let facts = sources.gather(key);
        facts.map(|facts| {
            let decision = decide(&facts);
            (facts, decision)
        })
    };
    tokio::select! {
        found = reading => Ok(found),
        () = runner.run(stop.clone()) => Err(WatchesStopped),
    }
}
