//! What a resolver holds in memory.

use std::{path::Path, time::Duration};

use anyhow::Result;
use tokio::time::sleep;

use super::{
    OURS, Theirs,
    clients::{ask_all, download, hear_all},
    held::{Scene, ports},
    home, open_files,
    pod::LARGE,
};
use crate::process::{forget_peak, peak_bytes, resident_bytes};

const HELD: usize = 10_000;
/// What was asked for last has come in after this time.
const SETTLE: Duration = Duration::from_secs(3);

/// With ten thousand who are held, and while something large goes through.
pub async fn memory(neap: &Path) -> Result<Vec<Theirs>> {
    open_files(11_000)?;
    let mut scene = Scene::start(neap).await?;
    let id = scene.resolver.id();
    // First, while nothing that was given back can be used for it.
    forget_peak(id)?;
    let before = peak_bytes(id)?;
    download(scene.at, LARGE).await?;
    let growth = peak_bytes(id)?.saturating_sub(before);
    home::ready(&mut scene.api, "web", &ports(&scene.pod), false).await?;
    sleep(SETTLE).await;
    let clients = ask_all(scene.at, HELD).await?;
    sleep(SETTLE).await;
    let held = resident_bytes(id)?;
    home::ready(&mut scene.api, "web", &ports(&scene.pod), true).await?;
    hear_all(clients).await?;
    let figures = vec![("held", held as f64), ("download", growth as f64)];
    Ok(vec![(OURS, figures)])
}
