//! World's controllers on the embedded server, under a paused clock.

use std::{sync::mpsc, thread, time::Duration};

use anyhow::{Context, Result};
use kube::Client;
use neap_kit::{
    clock::Clock,
    lease::Leadership,
    manager::Service,
    site::Site,
    watch::{Ended, Watches},
};
use neap_pocket::{Options, Pocket, environment::Environment};
use neap_world as world;
use tokio::{runtime::Builder, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    node,
    play::{Recording, Side, Unfinished},
    quiet::Quiet,
    scenario::Scenario,
};

/// When a rehearsal begins.
const START: &str = "2026-01-01T00:00:00Z";

/// What is still played after this long, of real time, goes round in circles: time stands still
/// while anybody has something to do.
const PATIENCE: Duration = Duration::from_mins(10);

/// Plays scenarios there.
pub fn play(scenarios: &[Scenario]) -> Result<Recording> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    let unfinished = Unfinished::default();
    let (scenarios, names) = (scenarios.to_vec(), unfinished.clone());
    let (tell, told) = mpsc::sync_channel(1);
    thread::spawn(move || {
        // Nobody listens once it took too long.
        let _ = tell.send(runtime.block_on(play_at_once(&scenarios, names)));
    });
    told.recv_timeout(PATIENCE).with_context(|| {
        let names: Vec<_> = unfinished.lock().iter().cloned().collect();
        format!("ours does not come to an end: {}", names.join(", "))
    })?
}

/// All but the scheduler: pods are given to nodes by the play.
fn controllers(site: &Site) -> Result<Vec<Service>, Ended> {
    Ok(vec![
        world::cron_job::service(site)?,
        world::daemon_set::service(site)?,
        world::deployment::service(site)?,
        world::disruption_budget::service(site)?,
        world::endpoint_slice::service(site)?,
        world::endpoints::service(site)?,
        world::job::service(site)?,
        world::replica_set::service(site)?,
        world::stateful_set::service(site)?,
    ])
}

async fn play_at_once(scenarios: &[Scenario], unfinished: Unfinished) -> Result<Recording> {
    let pocket = Pocket::open(Options::new(Environment::rehearsal(7))).await?;
    let client = Client::new(pocket.service(), "default");
    let clock = Clock::starting_at(START.parse()?);
    let (watches, watching) = Watches::new(clock);
    let site = Site {
        client: client.clone(),
        watches,
        leadership: Leadership::alone(clock),
        clock,
    };
    node::register(&client).await?;
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    for service in controllers(&site)? {
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
    let quiet = Quiet::new(clock);
    tasks.spawn(node::run(client.clone(), clock));
    tasks.spawn(quiet.clone().run(client.clone()));
    let side = Side {
        client,
        clock,
        quiet,
        unfinished,
    };
    tokio::select! {
        played = side.play(scenarios) => Ok(played),
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
