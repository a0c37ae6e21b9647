//! The memory of a resolver.

use std::{path::Path, time::Duration};

use anyhow::Result;
use tokio::time::sleep;

use super::{
    OURS, ProgramFigures,
    clients::{download, read_responses, send_requests},
    environment,
    held::{HeldScenario, ports},
    open_files,
    pod::LARGE,
};
use crate::process::{peak_bytes, reset_peak, resident_bytes};

const HELD: usize = 10_000;
/// Time for the last request to arrive.
const ARRIVAL_TIME: Duration = Duration::from_secs(3);

/// With ten thousand held requests, and during a large download.
pub async fn memory(neap: &Path) -> Result<Vec<ProgramFigures>> {
    open_files(11_000)?;
    let mut scenario = HeldScenario::start(neap).await?;
    let id = scenario.resolver.id();
    // First, while no freed memory can be reused for it.
    reset_peak(id)?;
    let before = peak_bytes(id)?;
    download(scenario.at, LARGE).await?;
    let growth = peak_bytes(id)?.saturating_sub(before);
    environment::set_ready(&mut scenario.api, "web", &ports(&scenario.pod), false).await?;
    sleep(ARRIVAL_TIME).await;
    let clients = send_requests(scenario.at, HELD).await?;
    sleep(ARRIVAL_TIME).await;
    let held = resident_bytes(id)?;
    environment::set_ready(&mut scenario.api, "web", &ports(&scenario.pod), true).await?;
    read_responses(clients).await?;
    let figures = vec![("held", held as f64), ("download", growth as f64)];
    Ok(vec![(OURS, figures)])
}
