//! The end of an ElastiService.

use super::*;

#[test]
fn a_deleted_service_is_woken_before_its_finalizer_goes() {
    let mut case = Case::asleep();
    let now = json!(case.now);
    case.service.metadata.deletion_timestamp = serde_json::from_value(now).unwrap();
    case.settle();
    assert!(!case.gone);
    assert_eq!(
        (case.replicas, case.slices.len()),
        (Some(3), 1),
        "as many as before"
    );
    case.pass(30);
    case.settle();
    assert!(!case.gone, "no pod is ready");
    case.ready_pods = 1;
    if let Ok(granted) = &mut case.ports {
        granted.freed = vec![20_000];
    }
    let steps = case.settle();
    assert!(case.gone);
    assert_eq!(case.slices.len(), 0);
    assert_eq!(steps.last().unwrap().freed_ports(), [20_000]);
}

#[test]
fn a_deletion_does_not_wait_for_ever() {
    type Change = fn(&mut Case);
    let ways: [(&str, Change); 4] = [
        ("no proof", |case| {
            case.ready_pods = 1;
            case.proves = false;
            case.pass(61);
        }),
        ("no pods", |case| case.pass(601)),
        ("no target", |case| case.replicas = None),
        ("no Service", |case| case.public = None),
    ];
    for (what, change) in ways {
        let mut case = Case::asleep();
        let now = json!(case.now);
        case.service.metadata.deletion_timestamp = serde_json::from_value(now).unwrap();
        case.settle();
        change(&mut case);
        case.settle();
        assert!(case.gone, "{what}");
    }
}

#[test]
fn a_sleeping_target_is_woken_before_deletion_whatever_else_is_missing() {
    type Change = fn(&mut Case);
    let ways: [(&str, Change); 2] = [
        ("no Service", |case| case.public = None),
        ("no operator ran for long", |case| case.pass(3600)),
    ];
    for (what, change) in ways {
        let mut case = Case::asleep();
        case.keda = Keda::Found {
            metadata: Box::new(ObjectMeta::default()),
            paused: true,
            by_us: true,
        };
        let now = json!(case.now);
        case.service.metadata.deletion_timestamp = serde_json::from_value(now).unwrap();
        change(&mut case);
        case.settle();
        assert!(case.gone, "{what}");
        assert_eq!(case.replicas, Some(3), "{what}");
        assert!(
            matches!(case.keda, Keda::Found { paused: false, .. }),
            "{what}"
        );
    }
    // One that is scaled back to zero each time it is woken is deleted in the end.
    let mut case = Case::asleep();
    case.ready_pods = 0;
    let now = json!(case.now);
    case.service.metadata.deletion_timestamp = serde_json::from_value(now).unwrap();
    case.settle();
    assert_eq!((case.gone, case.replicas), (false, Some(3)));
    case.replicas = Some(0);
    case.pass(3600);
    case.settle();
    assert!(case.gone);
    // A target that a user scaled to zero stays there.
    let mut case = Case::new();
    case.settle();
    (case.public, case.replicas) = (None, Some(0));
    let now = json!(case.now);
    case.service.metadata.deletion_timestamp = serde_json::from_value(now).unwrap();
    case.settle();
    assert!(case.gone);
    assert_eq!(case.replicas, Some(0));
}
