//! Many requests over many connections, with their latencies.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use http::Method;
use tokio::task::JoinSet;

use crate::{client::Client, stopwatch::Stopwatch};

/// A request.
#[derive(Debug)]
pub struct BulkRequest {
    pub method: Method,
    /// Path and query.
    pub path: String,
    pub content_type: &'static str,
    /// May be empty.
    pub body: String,
}

/// The latencies of a batch of requests.
#[derive(Debug, Clone)]
pub struct BulkResult {
    elapsed: Duration,
    /// In ascending order.
    latencies: Vec<Duration>,
}

impl BulkResult {
    pub(crate) fn of(elapsed: Duration, mut latencies: Vec<Duration>) -> Self {
        latencies.sort_unstable();
        Self { elapsed, latencies }
    }

    /// Requests per second.
    pub fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency that `percent` of the requests did not exceed; 100 is the maximum.
    pub fn percentile(&self, percent: usize) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        let at = (self.latencies.len() * percent / 100).min(last);
        self.latencies.get(at).copied().unwrap_or_default()
    }
}

/// Sends `count` requests over `connections` connections, each created by `shot` from its number.
/// Fails with the first refusal.
pub async fn send_all<F>(
    client: &Client,
    connections: usize,
    count: usize,
    shot: F,
) -> Result<BulkResult>
where
    F: Fn(usize) -> BulkRequest + Send + Sync + 'static,
{
    let (next, shot) = (Arc::new(AtomicUsize::new(0)), Arc::new(shot));
    let mut senders = JoinSet::new();
    let watch = Stopwatch::start();
    for _ in 0..connections {
        senders.spawn(send(client.clone(), next.clone(), count, shot.clone()));
    }
    let mut latencies = Vec::with_capacity(count);
    while let Some(sent) = senders.join_next().await {
        latencies.extend(sent??);
    }
    Ok(BulkResult::of(watch.elapsed(), latencies))
}

async fn send<F>(
    client: Client,
    next: Arc<AtomicUsize>,
    count: usize,
    shot: Arc<F>,
) -> Result<Vec<Duration>>
where
    F: Fn(usize) -> BulkRequest,
{
    let mut connection = client.connect().await?;
    let mut latencies = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return Ok(latencies);
        }
        let shot = shot(number);
        let watch = Stopwatch::start();
        let answer = connection
            .send_as(shot.method, &shot.path, shot.content_type, shot.body)
            .await?;
        latencies.push(watch.elapsed());
        if answer.status >= 300 {
            answer
                .success()
                .with_context(|| format!("request {number}, {}", shot.path))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_from_the_sorted_latencies() {
        let latencies = (1..=200).rev().map(Duration::from_millis).collect();
        let pace = BulkResult::of(Duration::from_secs(2), latencies);
        assert_eq!(pace.percentile(50), Duration::from_millis(101));
        assert_eq!(pace.percentile(100), Duration::from_millis(200));
        assert!((pace.rate() - 100.0).abs() < 1e-9);
    }
}
