use serde_json::json;

use super::*;

fn live(replicas: i64, ready: i64, updated: i64) -> LiveWorkload {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a", "generation": 3, "annotations": {ANNOTATION_REVISION: "new"}},
        "spec": {"replicas": replicas},
        "status": {
            "observedGeneration": 3, "replicas": replicas, "readyReplicas": ready,
            "updatedReplicas": updated,
        },
    });
    LiveWorkload::of(&serde_json::from_value(object).unwrap())
}

#[test]
fn a_workload_is_settled_when_all_pods_are_ready_and_new() {
    assert_eq!(live(2, 2, 2).phase("new", 2), Phase::Settled);
    assert_eq!(live(0, 0, 0).phase("new", 0), Phase::Settled);
    for other in [live(2, 1, 2), live(2, 2, 1), live(3, 3, 3)] {
        assert_eq!(other.phase("new", 2), Phase::Progressing);
    }
    assert_eq!(live(2, 2, 2).phase("newer", 2), Phase::Outdated);
    let unseen = LiveWorkload {
        observed: false,
        ..live(2, 2, 2)
    };
    assert_eq!(unseen.phase("new", 2), Phase::Progressing);
}

#[test]
fn a_roll_out_fails_after_its_deadline_or_when_the_workload_says_so() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let workload = live(2, 1, 2);
    let first = record(None, "new", Phase::Progressing, Some(&workload), at(0)).unwrap();
    assert_eq!((first.started_at, first.failed), (Some(at(0)), false));
    let later = record(
        Some(&first),
        "new",
        Phase::Progressing,
        Some(&workload),
        at(599),
    )
    .unwrap();
    assert!(!later.failed);
    assert_eq!(
        time_left(&later, at(599)),
        Some(SignedDuration::from_secs(1))
    );
    let late = record(
        Some(&first),
        "new",
        Phase::Progressing,
        Some(&workload),
        at(600),
    )
    .unwrap();
    assert!(late.failed);
    let stuck = LiveWorkload {
        stuck: true,
        ..workload
    };
    assert!(
        record(None, "new", Phase::Progressing, Some(&stuck), at(0))
            .unwrap()
            .failed
    );
    assert_eq!(
        record(Some(&late), "new", Phase::Settled, Some(&stuck), at(700)),
        None
    );
    let another = record(Some(&late), "newer", Phase::Outdated, None, at(700)).unwrap();
    assert_eq!((another.started_at, another.failed), (None, false));
}
