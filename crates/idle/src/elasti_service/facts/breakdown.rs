//! The parts of a wake, by the conditions of its pods and the reports of resolvers.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::{
    api::{Breakdown, LastWake},
    wake::REQUEST,
};

/// The time from the readiness of a pod within which a resolver reports. A client that has left is not reported.
const REPORT_TIMEOUT: jiff::SignedDuration = jiff::SignedDuration::from_secs(10);
/// Timestamps of the API server have a resolution of one second.
const TIMESTAMP_RESOLUTION: jiff::SignedDuration = jiff::SignedDuration::from_secs(1);

/// Whether a resolver may still report the wait for this wake: it does so with the response to its client, which
/// follows the readiness of the pod.
pub(super) fn awaits_report(
    wake: &LastWake,
    pods: &[Pod],
    cold: Option<&Breakdown>,
    now: Timestamp,
) -> bool {
    let requested = wake.cause == REQUEST && cold.is_none();
    let ready = pods.iter().filter_map(|pod| became_true(pod, "Ready"));
    let first = ready.filter(|ready| *ready >= wake.time - TIMESTAMP_RESOLUTION);
    requested
        && first
            .min()
            .is_some_and(|ready| now.duration_since(ready) < REPORT_TIMEOUT)
}

/// The parts of `wake`: those of the longest wait that a resolver reports, as the client that waited has them in
/// its response; without a report, those that the conditions of its pods show.
pub(super) fn breakdown(wake: &LastWake, pods: &[Pod], cold: Option<Breakdown>) -> Breakdown {
    if let Some(cold) = cold.filter(|cold| cold.is_whole()) {
        return cold;
    }
    let known = wake.breakdown.unwrap_or_default();
    let cold = cold.unwrap_or_default();
    let scale = if known.scale > 0 {
        known.scale
    } else {
        cold.scale
    };
    let begun = wake.time - TIMESTAMP_RESOLUTION;
    let started = pods.iter().filter(|pod| {
        let made = pod.creation_timestamp();
        made.is_some_and(|made| made.0 >= begun)
    });
    let first = started.filter_map(|pod| Some((became_true(pod, "Ready")?, pod)));
    let first = first.min_by_key(|(ready, _)| *ready);
    let Some((ready, pod)) = first else {
        return Breakdown { scale, ..cold };
    };
    let scheduled = became_true(pod, "PodScheduled").unwrap_or(wake.time);
    let schedule = between(wake.time, scheduled).saturating_sub(scale).max(0);
    let pods_ready = between(scheduled, ready);
    Breakdown {
        scale,
        schedule,
        ready: pods_ready,
        ..cold
    }
}

/// When a condition of a pod became true.
fn became_true(pod: &Pod, kind: &str) -> Option<Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let found = conditions
        .iter()
        .find(|condition| condition.type_ == kind && condition.status == "True")?;
    found.last_transition_time.as_ref().map(|time| time.0)
}

fn between(from: Timestamp, to: Timestamp) -> i64 {
    let passed = to.duration_since(from).as_millis();
    i64::try_from(passed).unwrap_or(i64::MAX).max(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wake(scale: i64) -> LastWake {
        LastWake {
            time: "2026-01-01T00:00:00.5Z".parse().unwrap(),
            cause: "request".to_owned(),
            breakdown: Some(Breakdown {
                scale,
                ..Breakdown::default()
            }),
        }
    }

    fn pod(made: &str, scheduled: &str, ready: Option<&str>) -> Pod {
        let condition = |kind: &str, at: Option<&str>| json!({"type": kind, "status": if at.is_some() { "True" } else { "False" }, "lastTransitionTime": at});
        let conditions = [
            condition("PodScheduled", Some(scheduled)),
            condition("Ready", ready),
        ];
        let pod = json!({
            "metadata": {"creationTimestamp": made}, "status": {"conditions": conditions},
        });
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn the_first_ready_pod_of_the_wake_counts() {
        let pods = [
            pod(
                "2025-12-31T00:00:00Z",
                "2025-12-31T00:00:01Z",
                Some("2025-12-31T00:00:02Z"),
            ),
            pod(
                "2026-01-01T00:00:00Z",
                "2026-01-01T00:00:03Z",
                Some("2026-01-01T00:00:09Z"),
            ),
            pod(
                "2026-01-01T00:00:00Z",
                "2026-01-01T00:00:02Z",
                Some("2026-01-01T00:00:07Z"),
            ),
            pod("2026-01-01T00:00:01Z", "2026-01-01T00:00:01Z", None),
        ];
        let found = breakdown(&wake(100), &pods, None);
        let wanted = Breakdown {
            scale: 100,
            schedule: 1400,
            ready: 5000,
            ..Breakdown::default()
        };
        assert_eq!(found, wanted);
        // The numbers of a resolver are those that its client got.
        let cold = Breakdown {
            queue: 2,
            scale: 90,
            schedule: 1000,
            ready: 5300,
            connect: 1,
            first_byte: 12,
        };
        assert_eq!(breakdown(&wake(100), &pods, Some(cold)), cold);
        // One that did not wait has none.
        let none = Some(Breakdown::default());
        assert_eq!(breakdown(&wake(100), &pods, none), wanted);
    }

    #[test]
    fn a_report_is_awaited_for_a_while_after_a_pod_is_ready() {
        let ready = [pod(
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:01Z",
            Some("2026-01-01T00:00:05Z"),
        )];
        let at = |second: i8| {
            let time = format!("2026-01-01T00:00:{second:02}Z");
            time.parse::<Timestamp>().unwrap()
        };
        let requested = LastWake {
            cause: REQUEST.to_owned(),
            ..wake(1)
        };
        let other = LastWake {
            cause: "Busy".to_owned(),
            ..wake(1)
        };
        assert!(awaits_report(&requested, &ready, None, at(14)));
        assert!(!awaits_report(&requested, &ready, None, at(15)));
        assert!(!awaits_report(
            &requested,
            &ready,
            Some(&Breakdown::default()),
            at(6)
        ));
        assert!(!awaits_report(&other, &ready, None, at(6)));
        assert!(!awaits_report(&requested, &[], None, at(6)));
    }

    #[test]
    fn without_pods_the_report_of_resolvers_counts() {
        assert_eq!(breakdown(&wake(7), &[], None).scale, 7);
        let cold = Breakdown {
            scale: 3,
            ready: 400,
            ..Breakdown::default()
        };
        assert_eq!(breakdown(&wake(0), &[], Some(cold)), cold);
    }
}
