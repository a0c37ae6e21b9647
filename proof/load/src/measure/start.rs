//! How soon a server answers, and its memory while it is idle.

use anyhow::Result;

use super::{Figure, median, milliseconds};
use crate::subject::{Storage, Subject};

/// From the start to the first answer, and the memory then; the medians of `times` starts.
pub async fn start(subject: &Subject, times: usize) -> Result<Vec<Figure>> {
    let (mut starts, mut idle) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let server = subject.start(Storage::Memory).await?;
        starts.push(milliseconds(server.ready_after()));
        idle.push(server.resident_bytes()? as f64);
        server.stop().await?;
    }
    Ok(vec![("start", median(starts)?), ("idle", median(idle)?)])
}
