//! The file on disk and its anchor on a server.

use std::{fs, path::Path, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{apply::Writer, clock::Clock, lease::Leadership, server::Server};

const SECOND: Duration = Duration::from_secs(1);

fn clock() -> Clock {
    Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap())
}

/// Records these actions in the file, as a process of its own.
async fn record_all(path: &Path, numbers: std::ops::Range<u64>) -> ChainHead {
    let (audit, audit_writer) = Audit::open(path, clock()).unwrap();
    let stop = CancellationToken::new();
    let recording = async {
        for number in numbers {
            let object = format!("thing {number}");
            audit.record("tester", "touch", &object, "done").await;
        }
        stop.cancel();
    };
    tokio::join!(audit_writer.run(stop.clone()), recording);
    audit.head()
}

#[tokio::test(start_paused = true)]
async fn records_are_on_disk_and_a_later_process_continues_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    assert_eq!(record_all(&path, 0..3).await.index, 3);
    let head = record_all(&path, 3..400).await;
    assert_eq!(verify_file(&path, Some(&head)).unwrap(), head);
    assert_eq!(head.index, 400);
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_record_is_removed_and_a_damaged_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    record_all(&path, 0..2).await;
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.clone() + "{\"index\":3,\"ti").unwrap();
    let torn = verify_file(&path, None).unwrap_err();
    assert!(matches!(
        torn,
        Error::Damaged {
            fault: ChainFault::Torn { index: 3 },
            ..
        }
    ));
    assert_eq!(record_all(&path, 2..3).await.index, 3);
    verify_file(&path, None).unwrap();
    let bad = whole.replace("thing 0", "thing 9");
    fs::write(&path, &bad).unwrap();
    let refused = Audit::open(&path, clock()).unwrap_err();
    let Error::Damaged { fault, .. } = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(fault, ChainFault::Edited { index: 1 });
    assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    let mut bytes = whole.into_bytes();
    bytes[30] = 0xff;
    fs::write(&path, bytes).unwrap();
    let noise = verify_file(&path, None).unwrap_err();
    assert!(matches!(noise, Error::Damaged { .. }), "{noise:?}");
}

/// A server, and an audit of the writes to it.
struct AuditBench {
    server: Server,
    clock: Clock,
    folder: tempfile::TempDir,
}

impl AuditBench {
    async fn new() -> Self {
        Self {
            server: Server::open().await,
            clock: clock(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("audit.jsonl")
    }

    fn writer(&self, name: &str) -> Writer {
        let leadership = Leadership::without_election(self.clock);
        Writer::new(self.server.client.clone(), name, leadership, self.clock)
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.server.client.clone())
    }

    async fn anchored(&self) -> Option<ChainHead> {
        let map = self.maps().get_opt("audit").await.unwrap();
        map.as_ref().and_then(ChainHead::anchored)
    }

    /// Runs an audit with its anchor while `work` runs with an audited writer.
    async fn audited(&self, work: impl AsyncFnOnce(Writer)) -> ChainHead {
        let (audit, audit_writer) = Audit::open(&self.path(), self.clock).unwrap();
        let options = AnchorOptions {
            path: self.path(),
            namespace: self.server.namespace().to_owned(),
            name: "audit".into(),
            interval: 10 * SECOND,
        };
        let anchor = Anchor::new(audit.clone(), self.writer("audit"), options, self.clock);
        let writer = self
            .writer("sorter")
            .with_write_observer(Arc::new(audit.clone()));
        let (writing, anchoring) = (CancellationToken::new(), CancellationToken::new());
        let working = async {
            work(writer).await;
            writing.cancel();
        };
        let written = async {
            audit_writer.run(writing.clone()).await;
            anchoring.cancel();
        };
        let anchored = Box::pin(anchor.run(anchoring.clone()));
        tokio::join!(Box::pin(working), Box::pin(written), anchored);
        audit.head()
    }

    fn map(&self, name: &str) -> ConfigMap {
        let namespace = self.server.namespace();
        let metadata = serde_json::json!({"namespace": namespace, "name": name});
        serde_json::from_value(serde_json::json!({"metadata": metadata})).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn every_write_is_recorded_and_the_head_is_anchored() {
    let bench = AuditBench::new().await;
    let head = bench
        .audited(async |writer| {
            writer.create(&bench.map("a")).await.unwrap();
            writer.create(&bench.map("a")).await.unwrap();
            bench.clock.sleep(11 * SECOND).await;
            assert_eq!(bench.anchored().await.unwrap().index, 2);
            writer.create(&bench.map("b")).await.unwrap();
        })
        .await;
    assert_eq!(bench.anchored().await, Some(head.clone()));
    let text = fs::read_to_string(bench.path()).unwrap();
    let records: Vec<AuditedAction> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let outcomes: Vec<_> = records.iter().map(|action| &*action.outcome).collect();
    let namespace = bench.server.namespace();
    let refused = format!("{namespace}/a could not be written");
    assert_eq!(outcomes, ["done", &refused, "done"]);
    assert_eq!(records[2].object, format!("v1 ConfigMap {namespace}/b"));
    assert_eq!(
        (&*records[2].actor, &*records[2].action),
        ("sorter", "create")
    );
    assert_eq!(verify(&text, Some(&head)), Ok(head));
}

#[tokio::test(start_paused = true)]
async fn a_truncated_file_does_not_replace_its_anchor() {
    let bench = AuditBench::new().await;
    let head = bench
        .audited(async |writer| {
            writer.create(&bench.map("a")).await.unwrap();
            writer.create(&bench.map("b")).await.unwrap();
        })
        .await;
    let text = fs::read_to_string(bench.path()).unwrap();
    let first = text.lines().next().unwrap().to_owned() + "\n";
    fs::write(bench.path(), first).unwrap();
    bench
        .audited(async |writer| {
            writer.create(&bench.map("c")).await.unwrap();
            bench.clock.sleep(60 * SECOND).await;
        })
        .await;
    assert_eq!(
        bench.anchored().await,
        Some(head.clone()),
        "the anchor is evidence"
    );
    let text = fs::read_to_string(bench.path()).unwrap();
    assert_eq!(
        verify(&text, Some(&head)),
        Err(ChainFault::Rewritten { index: 2 })
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_anchor_is_retried_even_if_no_record_is_added() {
    let bench = AuditBench::new().await;
    let other = bench.writer("other");
    bench
        .audited(async |writer| {
            bench.clock.sleep(SECOND).await;
            writer.create(&bench.map("a")).await.unwrap();
            // Another manager makes the anchor immutable, so its write is refused.
            let mut fixed = bench.maps().get("audit").await.unwrap();
            fixed.immutable = Some(true);
            other.replace(&fixed).await.unwrap();
            bench.clock.sleep(15 * SECOND).await;
            assert_eq!(bench.anchored().await.unwrap().index, 0);
            let delete = kube::api::DeleteParams::default();
            bench.maps().delete("audit", &delete).await.unwrap();
            bench.clock.sleep(15 * SECOND).await;
            assert_eq!(bench.anchored().await.unwrap().index, 1);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_being_written_is_not_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let first = record_all(&path, 0..1).await;
    let head = record_all(&path, 1..3).await;
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.clone() + "{\"index\":4,\"ti").unwrap();
    let up_to = |end: &ChainHead, anchor| file::verify_up_to(&path, end, anchor);
    up_to(&head, Some(&first)).unwrap();
    let (_, other) = chain(3);
    for (end, anchor, expected) in [
        (&other, None, ChainFault::Rewritten { index: 3 }),
        (&head, Some(&other), ChainFault::Rewritten { index: 3 }),
        (
            &first,
            Some(&head),
            ChainFault::Truncated {
                last: 1,
                anchored: 3,
            },
        ),
    ] {
        let Err(Error::Damaged { fault, .. }) = up_to(end, anchor) else {
            panic!("{end:?} {anchor:?}");
        };
        assert_eq!(fault, expected);
    }
    let cut = whole.lines().next().unwrap().to_owned() + "\n";
    fs::write(&path, cut).unwrap();
    let Err(Error::Damaged { fault, .. }) = up_to(&head, None) else {
        panic!("cut");
    };
    assert_eq!(
        fault,
        ChainFault::Truncated {
            last: 1,
            anchored: 3
        }
    );
}
