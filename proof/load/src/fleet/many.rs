//! A subscription with many clusters.

use anyhow::{Context, Result, ensure};
use http::Method;
use tokio::task::JoinSet;

use super::{CONNECTIONS, FleetPrograms, OURS, ProgramFigures, arm, percentile, region::Region};
use crate::stopwatch::Stopwatch;

/// The 99th percentile of a page of the list of `count` clusters, and the memory of the provider after
/// all pages.
pub async fn many(programs: &FleetPrograms, count: usize) -> Result<Vec<ProgramFigures>> {
    let region = Region::start(&programs.neap, None).await?;
    let client = region.client()?;
    let mut clients = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let client = client.clone();
        clients.spawn(async move {
            let mut api = client.connect().await?;
            for number in (1 + connection..=count).step_by(CONNECTIONS) {
                arm::create(&mut api, &format!("many{number}"), number).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    let mut api = client.connect().await?;
    let (mut path, mut took, mut listed) = (arm::clusters_path(), Vec::new(), 0);
    loop {
        let watch = Stopwatch::start();
        let page = api.send(Method::GET, &path, "").await?;
        took.push(watch.elapsed());
        let page = page.success()?;
        listed += page["value"].as_array().context("no page")?.len();
        match page["nextLink"].as_str() {
            Some(link) => path = arm::path_of(link)?,
            None => break,
        }
    }
    ensure!(listed == count, "{listed} of {count} clusters are listed");
    took.sort_unstable();
    let figures = vec![
        ("p99 of a page", percentile(&took, 99)),
        ("memory", region.resident_bytes()? as f64),
    ];
    Ok(vec![(OURS, figures)])
}
