//! The file on a disk and its anchor in a server.

use std::{fs, path::Path, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{apply::Hand, clock::Clock, lease::Leadership, server::Server};

const SECOND: Duration = Duration::from_secs(1);

fn clock() -> Clock {
    Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap())
}

/// Notes some deeds in the file, as a process of its own.
async fn noted(path: &Path, numbers: std::ops::Range<u64>) -> Head {
    let (audit, service) = Audit::open(path, clock()).unwrap();
    let stop = CancellationToken::new();
    let noting = async {
        for number in numbers {
            let object = format!("thing {number}");
            audit.note("tester", "touch", &object, "done").await;
        }
        stop.cancel();
    };
    tokio::join!(service.run(stop.clone()), noting);
    audit.head()
}

#[tokio::test(start_paused = true)]
async fn what_was_noted_is_on_disk_and_a_later_process_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    assert_eq!(noted(&path, 0..3).await.index, 3);
    let head = noted(&path, 3..400).await;
    assert_eq!(verify_file(&path, Some(&head)).unwrap(), head);
    assert_eq!(head.index, 400);
}

#[tokio::test(start_paused = true)]
async fn a_torn_record_is_taken_away_and_a_damaged_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    noted(&path, 0..2).await;
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.clone() + "{\"index\":3,\"ti").unwrap();
    let torn = verify_file(&path, None).unwrap_err();
    assert!(matches!(
        torn,
        Error::Damaged {
            fault: Fault::Torn { index: 3 },
            ..
        }
    ));
    assert_eq!(noted(&path, 2..3).await.index, 3);
    verify_file(&path, None).unwrap();
    let bad = whole.replace("thing 0", "thing 9");
    fs::write(&path, &bad).unwrap();
    let refused = Audit::open(&path, clock()).unwrap_err();
    let Error::Damaged { fault, .. } = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(fault, Fault::Edited { index: 1 });
    assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    let mut bytes = whole.into_bytes();
    bytes[30] = 0xff;
    fs::write(&path, bytes).unwrap();
    let noise = verify_file(&path, None).unwrap_err();
    assert!(matches!(noise, Error::Damaged { .. }), "{noise:?}");
}

/// A server, and an audit of the writes to it.
struct Bench {
    server: Server,
    clock: Clock,
    folder: tempfile::TempDir,
}

impl Bench {
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

    fn hand(&self, name: &str) -> Hand {
        let leadership = Leadership::alone(self.clock);
        Hand::new(self.server.client.clone(), name, leadership, self.clock)
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.server.client.clone())
    }

    async fn anchored(&self) -> Option<Head> {
        let map = self.maps().get_opt("audit").await.unwrap();
        map.as_ref().and_then(Head::anchored)
    }

    /// Runs an audit with its anchor while `work` is done with a hand that is watched.
    async fn audited(&self, work: impl AsyncFnOnce(Hand)) -> Head {
        let (audit, service) = Audit::open(&self.path(), self.clock).unwrap();
        let options = AnchorOptions {
            path: self.path(),
            namespace: self.server.namespace().to_owned(),
            name: "audit".into(),
            within: 10 * SECOND,
        };
        let anchor = Anchor::new(audit.clone(), self.hand("audit"), options, self.clock);
        let hand = self.hand("sorter").witnessed_by(Arc::new(audit.clone()));
        let (writing, anchoring) = (CancellationToken::new(), CancellationToken::new());
        let working = async {
            work(hand).await;
            writing.cancel();
        };
        let written = async {
            service.run(writing.clone()).await;
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
async fn every_write_is_noted_and_the_end_is_anchored() {
    let bench = Bench::new().await;
    let head = bench
        .audited(async |hand| {
            hand.create(&bench.map("a")).await.unwrap();
            hand.create(&bench.map("a")).await.unwrap();
            bench.clock.sleep(11 * SECOND).await;
            assert_eq!(bench.anchored().await.unwrap().index, 2);
            hand.create(&bench.map("b")).await.unwrap();
        })
        .await;
    assert_eq!(bench.anchored().await, Some(head.clone()));
    let text = fs::read_to_string(bench.path()).unwrap();
    let records: Vec<Deed> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let outcomes: Vec<_> = records.iter().map(|deed| &*deed.outcome).collect();
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
async fn a_file_that_was_cut_does_not_replace_its_anchor() {
    let bench = Bench::new().await;
    let head = bench
        .audited(async |hand| {
            hand.create(&bench.map("a")).await.unwrap();
            hand.create(&bench.map("b")).await.unwrap();
        })
        .await;
    let text = fs::read_to_string(bench.path()).unwrap();
    let first = text.lines().next().unwrap().to_owned() + "\n";
    fs::write(bench.path(), first).unwrap();
    bench
        .audited(async |hand| {
            hand.create(&bench.map("c")).await.unwrap();
            bench.clock.sleep(60 * SECOND).await;
        })
        .await;
    assert_eq!(bench.anchored().await, Some(head.clone()), "evidence stays");
    let text = fs::read_to_string(bench.path()).unwrap();
    assert_eq!(
        verify(&text, Some(&head)),
        Err(Fault::Rewritten { index: 2 })
    );
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_anchored_is_tried_again_though_nothing_more_is_noted() {
    let bench = Bench::new().await;
    let nobody = bench.hand("other");
    bench
        .audited(async |hand| {
            bench.clock.sleep(SECOND).await;
            hand.create(&bench.map("a")).await.unwrap();
            // The anchor is made by others first and cannot be changed: its write is refused.
            let mut fixed = bench.maps().get("audit").await.unwrap();
            fixed.immutable = Some(true);
            nobody.replace(&fixed).await.unwrap();
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
async fn a_record_that_is_being_written_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let first = noted(&path, 0..1).await;
    let head = noted(&path, 1..3).await;
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.clone() + "{\"index\":4,\"ti").unwrap();
    let up_to = |end: &Head, anchor| file::verify_up_to(&path, end, anchor);
    up_to(&head, Some(&first)).unwrap();
    let (_, other) = chain(3);
    for (end, anchor, expected) in [
        (&other, None, Fault::Rewritten { index: 3 }),
        (&head, Some(&other), Fault::Rewritten { index: 3 }),
        (
            &first,
            Some(&head),
            Fault::Truncated {
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
        Fault::Truncated {
            last: 1,
            anchored: 3
        }
    );
}
