//! Random concurrent histories: clients that overlap and lose responses and streams, while the
//! history is compacted. Everything they observed must be explained by what was committed.
//!
//! `NEAP_OPERATIONS` makes runs longer, `NEAP_SEED` repeats one.

#![expect(
    clippy::print_stdout,
    reason = "a test ends where it is surprised, and says its seed"
)]

mod client;
mod draw;
mod hooks;
mod kinds;
mod watcher;

use crate::support::chronicle;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::Method;
use neap_oracles::{CommitLog, ObservedService, Observer};
use neap_pocket::{Options, Pocket, Storage, environment::Environment};
use serde_json::json;
use tokio::task::JoinSet;

use client::{Client, NAMESPACES};
use draw::Draw;
use hooks::DelayingHooks;
use watcher::Watcher;

const CLIENTS: u64 = 8;

struct Run {
    seed: u64,
    operations: usize,
    storage: Storage,
    /// The longest wait around an access.
    wait: Duration,
    /// The shortest time between compactions.
    compaction: Duration,
    /// A stream that was silent for this long has ended.
    silence: Duration,
}

fn asked(name: &str, usual: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

impl Run {
    fn announce(&self) {
        println!(
            "NEAP_SEED={} NEAP_OPERATIONS={}",
            self.seed, self.operations
        );
    }

    /// Checks one history; any violation fails the test. False if nothing special happened.
    async fn go(self) -> bool {
        self.announce();
        let pocket = open(self.seed, self.storage).await;
        let observer = Observer::new();
        let hooks = DelayingHooks::new(self.seed ^ 1, self.wait);
        let view = pocket.view(Some(Arc::new(hooks)));
        let stop = Arc::new(AtomicBool::new(false));
        let mut watchers = JoinSet::new();
        let mut clients = JoinSet::new();
        for i in 0..CLIENTS {
            let service = pocket.service_over(view.clone());
            let service = ObservedService::new(service, &observer, &format!("client {i}"));
            let mut watcher = Watcher::new(service.clone(), self.seed ^ (i << 8) ^ 2);
            let (stopped, silence) = (stop.clone(), self.silence);
            watchers.spawn(async move {
                let open = watcher.run(&stopped, silence).await;
                (open, [watcher.expired, watcher.resumed, watcher.marks])
            });
            let (observer, operations) = (observer.clone(), self.operations);
            let mut client = Client::new(service, self.seed ^ (i << 8) ^ 3);
            clients.spawn(async move {
                while observer.operations() < operations {
                    client.step().await;
                }
                client.answers
            });
        }
        let mut chronicle = chronicle::chronicle(&pocket);
        let mut draw = Draw::new(self.seed ^ 4);
        let mut answers: BTreeMap<_, usize> = BTreeMap::new();
        while !clients.is_empty() {
            let until = self
                .compaction
                .mul_f64(1.0 + draw.below(100) as f64 / 100.0);
            match tokio::time::timeout(until, clients.join_next()).await {
                Ok(Some(done)) => {
                    for (answer, count) in done.unwrap() {
                        *answers.entry(answer).or_default() += count;
                    }
                }
                _ => compact(&pocket, &mut chronicle, draw.below(40)),
            }
        }
        stop.store(true, Ordering::SeqCst);
        // Open streams are kept until they are checked.
        let watched = watchers.join_all().await;
        let told: [usize; 3] =
            std::array::from_fn(|i| watched.iter().map(|(_, told)| told[i]).sum());
        chronicle::read_on(&mut chronicle, pocket.store());
        chronicle.compacted(pocket.store().oldest());
        observer.had_time_for(chronicle.last());
        pocket.close();
        let verdict = observer.judge(&chronicle);
        println!("{verdict}expired, resumed, bookmarks: {told:?}\n{answers:?}");
        assert!(verdict.operations >= self.operations, "void: {verdict}");
        assert_eq!(verdict.foreign, 0);
        let _ = verdict.or_panic();
        is_special(told, &answers)
    }
}

/// Whether a run met what it is for. One in which nothing special happened proves nothing.
fn is_special(told: [usize; 3], answers: &BTreeMap<(&'static str, u16), usize>) -> bool {
    let special = [
        ("put", 409),
        ("create", 409),
        ("get", 404),
        ("delete", 409),
        ("list", 410),
    ];
    let met =
        told.iter().all(|count| *count > 0) && special.iter().all(|a| answers.contains_key(a));
    if !met {
        println!("void: nothing is proved by this run");
    }
    met
}

fn compact(pocket: &Pocket, chronicle: &mut CommitLog, kept: u64) {
    chronicle::read_on(chronicle, pocket.store());
    pocket
        .store()
        .compact(chronicle.last().saturating_sub(kept));
    chronicle.compacted(pocket.store().oldest());
}

async fn open(seed: u64, storage: Storage) -> Pocket {
    let mut options = Options::new(Environment::simulated(seed));
    options.storage = storage;
    let pocket = Pocket::open(options).await.unwrap();
    prepare(&pocket).await;
    pocket
}

async fn prepare(pocket: &Pocket) {
    let unseen = Observer::new();
    let mut client = Client::new(
        ObservedService::new(pocket.service(), &unseen, "furnisher"),
        0,
    );
    for namespace in NAMESPACES {
        let object = json!({"metadata": {"name": namespace}});
        let post = (Method::POST, "create");
        let (status, _) = client.send(post, "/api/v1/namespaces", Some(object)).await;
        assert!(status.is_success());
    }
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = Some(kinds::definition());
    let (status, body) = client
        .send((Method::POST, "create"), definitions, definition)
        .await;
    assert!(status.is_success(), "{body}");
}

/// Histories that may prove nothing before the test fails: which faults meet which requests is up
/// to the scheduler in real time.
const MAX_ATTEMPTS: u64 = 3;

#[tokio::test(start_paused = true)]
async fn what_clients_are_told_happened_in_memory() {
    for attempt in 0..MAX_ATTEMPTS {
        let run = Run {
            seed: asked("NEAP_SEED", 7) + attempt,
            operations: asked("NEAP_OPERATIONS", 4000) as usize,
            storage: Storage::Memory(0),
            wait: Duration::from_millis(4),
            compaction: Duration::from_millis(100),
            silence: Duration::from_secs(5),
        };
        if run.go().await {
            return;
        }
    }
    panic!("every history was void");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_clients_are_told_happened_on_disk() {
    for attempt in 0..MAX_ATTEMPTS {
        let folder = tempfile::tempdir().unwrap();
        let run = Run {
            seed: asked("NEAP_SEED", 8) + attempt,
            operations: asked("NEAP_OPERATIONS", 4000) as usize,
            storage: Storage::Folder(folder.path().into()),
            wait: Duration::from_millis(1),
            compaction: Duration::from_millis(20),
            silence: Duration::from_millis(500),
        };
        if run.go().await {
            return;
        }
    }
    panic!("every history was void");
}
