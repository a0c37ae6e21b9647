//! A real Prometheus as the trigger, from its first scrape to its shutdown.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    net::TcpListener as Reserved,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use neap_idle::{
    api::{Trigger, TriggerKind},
    trigger::{
        PolledService, Poller, Prometheus, PrometheusDefaults, RecentRequests, Verdict,
        jitter::Jitter,
    },
};
use neap_kit::{clock::Clock, key::Key};
use neap_load::skip::skipped;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_util::task::TaskTracker;

const TEST: &str = "a_real_prometheus_decides_idleness_and_an_unreachable_one_decides_nothing";
/// Longer than any step of this test takes.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Exposes a metric that the test sets, as a service exposes its load.
async fn shop(tasks: &TaskTracker) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let busy = Arc::<AtomicU64>::default();
    let shown = busy.clone();
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let body = format!("shop_busy {}\n", shown.load(Ordering::SeqCst));
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n";
            let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (port, busy)
}

fn start(program: &Path, folder: &Path, port: u16, shop: u16) -> Running {
    let config = format!(
        "global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}}\n\
         scrape_configs:\n\
         - job_name: prometheus\n  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n\
         - job_name: shop\n  static_configs: [{{targets: ['127.0.0.1:{shop}']}}]\n"
    );
    fs::write(folder.join("prometheus.yml"), config).unwrap();
    let child = Command::new(program)
        .current_dir(folder)
        .arg("--config.file=prometheus.yml")
        .arg("--storage.tsdb.path=data")
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Running(child.unwrap())
}

fn trigger(query: &str) -> Trigger {
    let metadata = json!({
        "query": query, "threshold": "0.5", "uptimeFilter": "job=\"prometheus\"",
    });
    Trigger {
        kind: TriggerKind::Prometheus,
        metadata: Some(metadata),
    }
}

/// Evaluates the trigger `query` until its reason is `expected`.
async fn becomes(poll: &Poller, query: &str, expected: &str) {
    let watched = PolledService {
        key: Key::new("shop", "cart"),
        cooldown: Duration::from_secs(2),
        triggers: vec![trigger(query)],
        requests: Ok(RecentRequests::default()),
    };
    let polling = async {
        loop {
            let mut jitter = Jitter::new(7);
            let all = poll.poll_all(std::slice::from_ref(&watched), &mut jitter);
            let verdict = all.await.into_values().next().unwrap();
            if verdict.reason().name == expected {
                return verdict;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let verdict = tokio::time::timeout(TEST_TIMEOUT, polling).await;
    assert!(verdict.is_ok(), "{query} never became {expected}");
    let verdict = verdict.unwrap();
    let idle = matches!(verdict, Verdict::Idle(_));
    assert_eq!(idle, expected == "Idle", "{verdict:?}");
}

#[tokio::test]
async fn a_real_prometheus_decides_idleness_and_an_unreachable_one_decides_nothing() {
    let Some(program) = std::env::var_os("NEAP_PROMETHEUS") else {
        return skipped(TEST, "NEAP_PROMETHEUS is not set; run cargo xtask test");
    };
    let tasks = TaskTracker::new();
    let (shop, busy) = shop(&tasks).await;
    let folder = tempfile::tempdir().unwrap();
    let free = Reserved::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let defaults = PrometheusDefaults {
        address: Some(format!("http://127.0.0.1:{port}")),
        ..PrometheusDefaults::default()
    };
    let clock = Clock::system();
    let poll = Poller::new(Arc::new(Prometheus::new(clock)), defaults, clock).immediate();

    // Prometheus is not running yet.
    becomes(&poll, "sum(shop_busy)", "PrometheusUnreachable").await;
    let running = start(Path::new(&program), folder.path(), port, shop);
    // A Prometheus that has not scraped for the whole cooldown may have missed requests.
    becomes(&poll, "sum(shop_busy)", "PrometheusWasDown").await;
    becomes(&poll, "sum(shop_busy)", "Idle").await;
    busy.store(3, Ordering::SeqCst);
    becomes(&poll, "sum(shop_busy)", "Busy").await;
    // A misspelt metric has no value, which is not zero.
    becomes(&poll, "sum(shop_bussy)", "NoValue").await;
    becomes(&poll, "sum(shop_busy", "PrometheusFailed").await;
    busy.store(0, Ordering::SeqCst);
    becomes(&poll, "sum(shop_busy)", "Idle").await;
    drop(running);
    becomes(&poll, "sum(shop_busy)", "PrometheusUnreachable").await;
}
