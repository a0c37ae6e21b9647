//! A real Prometheus as the trigger, from its first scrape to its end.

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
    service::verdict::Verdict,
    trigger::{Defaults, Poll, Prometheus, Quiet, Watched, jitter::Jitter},
};
use neap_kit::{clock::Clock, key::Key};
use neap_load::skip::skipped;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_util::task::TaskTracker;

const TEST: &str = "a_real_prometheus_says_who_is_idle_and_its_silence_says_nothing";
/// Nothing here takes longer unless it is stuck.
const STUCK: Duration = Duration::from_mins(2);

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Shows a number that tests set, as a service shows how much it is asked.
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

/// What is said of a service that is asked for by `query`, again and again until it is that.
async fn becomes(poll: &Poll, query: &str, expected: &str) {
    let watched = Watched {
        key: Key::new("shop", "cart"),
        cooldown: Duration::from_secs(2),
        triggers: vec![trigger(query)],
        quiet: Ok(Quiet::default()),
    };
    let looking = async {
        loop {
            let mut jitter = Jitter::new(7);
            let all = poll.round(std::slice::from_ref(&watched), &mut jitter);
            let verdict = all.await.into_values().next().unwrap();
            if verdict.because().reason == expected {
                return verdict;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let verdict = tokio::time::timeout(STUCK, looking).await;
    assert!(verdict.is_ok(), "{query} never was {expected}");
    let verdict = verdict.unwrap();
    let idle = matches!(verdict, Verdict::Idle(_));
    assert_eq!(idle, expected == "Idle", "{verdict:?}");
}

#[tokio::test]
async fn a_real_prometheus_says_who_is_idle_and_its_silence_says_nothing() {
    let Some(program) = std::env::var_os("NEAP_PROMETHEUS") else {
        return skipped(TEST, "NEAP_PROMETHEUS is not set; run cargo xtask test");
    };
    let tasks = TaskTracker::new();
    let (shop, busy) = shop(&tasks).await;
    let folder = tempfile::tempdir().unwrap();
    let free = Reserved::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let defaults = Defaults {
        address: Some(format!("http://127.0.0.1:{port}")),
        ..Defaults::default()
    };
    let clock = Clock::system();
    let poll = Poll::new(Arc::new(Prometheus::new(clock)), defaults, clock).at_once();

    // Nobody is there to ask.
    becomes(&poll, "sum(shop_busy)", "PrometheusUnreachable").await;
    let running = start(Path::new(&program), folder.path(), port, shop);
    // One that has not looked for long enough may have missed somebody.
    becomes(&poll, "sum(shop_busy)", "PrometheusWasDown").await;
    becomes(&poll, "sum(shop_busy)", "Idle").await;
    busy.store(3, Ordering::SeqCst);
    becomes(&poll, "sum(shop_busy)", "Busy").await;
    // A name that is wrong has no value, which is not a value of nothing.
    becomes(&poll, "sum(shop_bussy)", "NoValue").await;
    becomes(&poll, "sum(shop_busy", "PrometheusFailed").await;
    busy.store(0, Ordering::SeqCst);
    becomes(&poll, "sum(shop_busy)", "Idle").await;
    drop(running);
    becomes(&poll, "sum(shop_busy)", "PrometheusUnreachable").await;
}
