//! World's controllers on the embedded server, under a paused clock.

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
    play::{Recording, Side},
    quiet::Quiet,
    scenario::Scenario,
};

/// When a rehearsal begins.
const START: &str = "2026-01-01T00:00:00Z";

/// Plays scenarios there.
pub fn play(scenarios: &[Scenario]) -> Result<Recording> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    runtime.block_on(play_at_once(scenarios))
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

async fn play_at_once(scenarios: &[Scenario]) -> Result<Recording> {
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
    };
    tokio::select! {
        played = side.play(scenarios) => Ok(played),
        ended = tasks.join_next() => {
            ended.context("nothing runs")???;
            anyhow::bail!("a task of ours has ended")
        }
    }
}
