//! How soon a server answers, and what it holds while nobody asks.

use anyhow::Result;

use super::{Figure, median, milliseconds};
use crate::subject::{Keeping, Subject};

/// From the start to the first answer, and the memory held then; the medians of `times` starts.
pub async fn start(subject: &Subject, times: usize) -> Result<Vec<Figure>> {
    let (mut starts, mut idle) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let server = subject.start(Keeping::Memory).await?;
        starts.push(milliseconds(server.ready_after()));
        idle.push(server.resident_bytes()? as f64);
        server.stop().await?;
    }
    Ok(vec![("start", median(starts)?), ("idle", median(idle)?)])
}
