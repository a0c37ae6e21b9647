mod model;
mod server;
mod takeovers;

use std::time::Duration;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn observed(holder: Option<&str>, since: Duration) -> ObservedLease {
    ObservedLease {
        record: LeaseRecord {
            holder: holder.map(str::to_owned),
            lease_duration: 15 * SECOND,
            ..LeaseRecord::default()
        },
        version: "7".into(),
        since,
    }
}

#[test]
fn a_candidate_decides_by_the_state_of_the_lease() {
    let at = Duration::from_secs;
    let seen = |holder| Some(observed(holder, at(5)));
    let (me, other) = (Some("me"), Some("other"));
    let until = |second| Decision::Wait(at(second));
    let (acquire, renew) = (Decision::Acquire, Decision::Renew);
    #[rustfmt::skip]
    let cases = [
        ("no lease", None, None, 0, Decision::Create),
        ("released", seen(None), None, 5, acquire.clone()),
        ("another's, fresh", seen(other), None, 19, until(20)),
        ("another's, expired", seen(other), None, 20, acquire.clone()),
        ("ours, fresh", seen(me), Some(5), 6, until(7)),
        ("ours, due", seen(me), Some(5), 7, renew),
        ("of an earlier process, fresh", seen(me), None, 6, until(20)),
        ("of an earlier process, expired", seen(me), None, 20, acquire),
        ("another's after we led", seen(other), Some(1), 6, until(20)),
    ];
    for (what, observed, renewed, now, expected) in cases {
        let renewed = renewed.map(at);
        let decision = decide(
            "me",
            &LeaseTimings::default(),
            observed.as_ref(),
            renewed,
            at(now),
        );
        assert_eq!(decision, expected, "{what}");
    }
}

#[test]
fn only_a_new_version_restarts_the_measured_duration() {
    let first = observed(Some("other"), SECOND);
    let record = first.record.clone();
    let same = ObservedLease::read(Some(first.clone()), record.clone(), "7".into(), 9 * SECOND);
    assert_eq!(same.since, SECOND);
    let changed = ObservedLease::read(Some(first), record, "8".into(), 9 * SECOND);
    assert_eq!(changed.since, 9 * SECOND);
}

#[test]
fn a_record_round_trips_through_the_api() {
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    let now = "2026-01-01T00:00:00.000001Z".parse().unwrap();
    let first = LeaseRecord::first("me", 15 * SECOND, now);
    for record in [
        first.taken_over("you", 15 * SECOND, now),
        first.renewed(15 * SECOND, now),
        first.released(now),
    ] {
        assert_eq!(LeaseRecord::from(&LeaseSpec::from(&record)), record);
    }
    assert_ne!(
        first.renewed(15 * SECOND, now),
        first,
        "a renewal is a change"
    );
}

#[tokio::test(start_paused = true)]
async fn a_waiting_task_is_woken_by_a_late_renewal() {
    let clock = crate::clock::Clock::system();
    let (setter, mut leadership) = Leadership::new(clock);
    assert!(setter.lead(Term(1), 10 * SECOND, 15 * SECOND));
    clock.sleep(11 * SECOND).await;
    assert!(leadership.check().is_err());
    let renewing = async {
        clock.sleep(SECOND).await;
        assert!(
            !setter.lead(Term(1), 30 * SECOND, 35 * SECOND),
            "it is the same term"
        );
    };
    let waiting = clock.within(5 * SECOND, leadership.gained());
    let (gained, ()) = tokio::join!(waiting, renewing);
    assert_eq!(gained, Some(Term(1)));
}

#[tokio::test]
async fn timings_that_allow_two_writers_are_refused() {
    let client = crate::server::unresponsive_client();
    for (lease_duration, renew_deadline, retry_period) in
        [(10, 10, 2), (15, 2, 2), (15, 10, 0), (5, 10, 2)]
    {
        let at = Duration::from_secs;
        let timings = LeaseTimings {
            lease_duration: at(lease_duration),
            renew_deadline: at(renew_deadline),
            retry_period: at(retry_period),
        };
        let options = server::candidate("default", "a", timings);
        let refused = Elector::new(client.clone(), options, crate::clock::Clock::system());
        assert_eq!(refused.err(), Some(Error::InvalidTimings(timings)));
    }
}
