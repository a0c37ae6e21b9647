//! World's controllers on the embedded server, under a paused clock.

use std::{sync::mpsc, thread, time::Duration};

use anyhow::{Context as _, Result};
use kube::Client;
use neap_kit::{
    clock::Clock,
    context::Context,
    lease::Leadership,
    manager::Component,
    watch::{Watches, WatchesStopped},
};
use neap_pocket::{Options, Pocket, environment::Environment};
use neap_world as world;
use tokio::{runtime::Builder, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    node,
    play::{Recording, ScenarioRunner, Unfinished},
    scenario::Scenario,
    write_tracker::WriteTracker,
};

/// The virtual time at which a run starts.
const START: &str = "2026-01-01T00:00:00Z";

/// Real time for all scenarios. A run that takes longer does not terminate: virtual time stands
/// still while any task has something to do.
const RUN_TIMEOUT: Duration = Duration::from_mins(10);

pub fn play(scenarios: &[Scenario]) -> Result<Recording> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    let unfinished = Unfinished::default();
    let (scenarios, names) = (scenarios.to_vec(), unfinished.clone());
    let (tell, told) = mpsc::sync_channel(1);
    thread::spawn(move || {
        // The receiver is gone if it took too long.
        let _ = tell.send(runtime.block_on(play_at_once(&scenarios, names)));
    });
    told.recv_timeout(RUN_TIMEOUT).with_context(|| {
        let names: Vec<_> = unfinished.lock().iter().cloned().collect();
        format!("ours does not come to an end: {}", names.join(", "))
    })?
}

/// All but the scheduler: the simulated nodes bind the pods.
fn controllers(context: &Context) -> Result<Vec<Component>, WatchesStopped> {
    Ok(vec![
        world::cron_job::component(context)?,
        world::daemon_set::component(context)?,
        world::deployment::component(context)?,
        world::disruption_budget::component(context)?,
        world::endpoint_slice::component(context)?,
        world::endpoints::component(context)?,
        world::job::component(context)?,
        world::replica_set::component(context)?,
        world::stateful_set::component(context)?,
    ])
}

async fn play_at_once(scenarios: &[Scenario], unfinished: Unfinished) -> Result<Recording> {
    let pocket = Pocket::open(Options::new(Environment::simulated(7))).await?;
    let client = Client::new(pocket.service(), "default");
    let clock = Clock::starting_at(START.parse()?);
    let (watches, watching) = Watches::new(clock);
    let context = Context {
        client: client.clone(),
        watches,
        leadership: Leadership::without_election(clock),
        clock,
    };
    node::register(&client).await?;
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    for service in controllers(&context)? {
        let stop = stop.clone();
        tasks.spawn(async move {
            service.run(stop).await;
            Ok(())
        });
    }
    let stopped = stop.clone();
    tasks.spawn(async move {
        watching.run(stopped).await;
        Ok(())
    });
    let tracker = WriteTracker::new(clock);
    tasks.spawn(node::run(client.clone(), clock));
    tasks.spawn(tracker.clone().run(client.clone()));
    let runner = ScenarioRunner {
        client,
        clock,
        tracker,
        unfinished,
    };
    tokio::select! {
        played = runner.play(scenarios) => Ok(played),
        ended = tasks.join_next() => {
            ended.context("nothing runs")???;
            anyhow::bail!("a task of ours has ended")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(steps: &str) -> String {
        let text = format!("name: lone\nsteps:\n{steps}");
        let scenario: Scenario = serde_saphyr::from_str(&text).unwrap();
        let recording = play(&[scenario]).unwrap();
        let last = recording["lone"].last().unwrap();
        let told = last
            .iter()
            .map(|object| format!("{} {}", object["kind"], object["metadata"]["name"]));
        told.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_never_comes_is_told_and_not_waited_for() {
        let told =
            played("- create: {kind: Pod, name: web}\n  until: [Pod/web, /status/nothing]\n");
        assert_eq!(told, "\"Failure\" \"Pod web never has /status/nothing\"");
    }

    #[test]
    fn what_never_rests_is_told_and_not_waited_for() {
        let set = "{kind: StatefulSet, name: db, play: ends 1, spec: {serviceName: db}}";
        let told = played(&format!("- create: {set}\n"));
        assert_eq!(told, "\"Failure\" \"it does not come to rest\"");
    }
}
