mod model;
mod server;
mod takeovers;

use std::time::Duration;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn sight(holder: Option<&str>, since: Duration) -> Sight {
    Sight {
        record: Record {
            holder: holder.map(str::to_owned),
            duration: 15 * SECOND,
            ..Record::default()
        },
        version: "7".into(),
        since,
    }
}

#[test]
fn a_candidate_does_what_the_lease_calls_for() {
    let at = Duration::from_secs;
    let seen = |holder| Some(sight(holder, at(5)));
    let (me, other) = (Some("me"), Some("other"));
    let until = |second| Decision::Wait(at(second));
    let (acquire, renew) = (Decision::Acquire, Decision::Renew);
    #[rustfmt::skip]
    let cases = [
        ("no lease", None, None, 0, Decision::Create),
        ("let go of", seen(None), None, 5, acquire.clone()),
        ("another's, fresh", seen(other), None, 19, until(20)),
        ("another's, expired", seen(other), None, 20, acquire.clone()),
        ("ours, fresh", seen(me), Some(5), 6, until(7)),
        ("ours, due", seen(me), Some(5), 7, renew),
        ("of a former life, fresh", seen(me), None, 6, until(20)),
        ("of a former life, expired", seen(me), None, 20, acquire),
        ("another's after we led", seen(other), Some(1), 6, until(20)),
    ];
    for (what, sight, renewed, now, expected) in cases {
        let renewed = renewed.map(at);
        let decision = decide("me", &Timings::default(), sight.as_ref(), renewed, at(now));
        assert_eq!(decision, expected, "{what}");
    }
}

#[test]
fn only_a_change_starts_the_count_anew() {
    let first = sight(Some("other"), SECOND);
    let record = first.record.clone();
    let same = Sight::read(Some(first.clone()), record.clone(), "7".into(), 9 * SECOND);
    assert_eq!(same.since, SECOND);
    let changed = Sight::read(Some(first), record, "8".into(), 9 * SECOND);
    assert_eq!(changed.since, 9 * SECOND);
}

#[test]
fn a_record_survives_the_api() {
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    let now = "2026-01-01T00:00:00.000001Z".parse().unwrap();
    let first = Record::first("me", 15 * SECOND, now);
    for record in [
        first.taken("you", 15 * SECOND, now),
        first.renewed(15 * SECOND, now),
        first.released(now),
    ] {
        assert_eq!(Record::from(&LeaseSpec::from(&record)), record);
    }
    assert_ne!(
        first.renewed(15 * SECOND, now),
        first,
        "a renewal is a change"
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_hears_of_a_renewal_that_came_late() {
    let clock = crate::clock::Clock::system();
    let (post, mut leadership) = Leadership::new(clock);
    assert!(post.lead(Term(1), 10 * SECOND, 15 * SECOND));
    clock.sleep(11 * SECOND).await;
    assert!(leadership.check().is_err());
    let renewing = async {
        clock.sleep(SECOND).await;
        assert!(
            !post.lead(Term(1), 30 * SECOND, 35 * SECOND),
            "it is the same term"
        );
    };
    let waiting = clock.within(5 * SECOND, leadership.gained());
    let (gained, ()) = tokio::join!(waiting, renewing);
    assert_eq!(gained, Some(Term(1)));
}

#[tokio::test]
async fn timings_that_let_two_write_are_refused() {
    let client = crate::server::nobody();
    for (duration, deadline, retry) in [(10, 10, 2), (15, 2, 2), (15, 10, 0), (5, 10, 2)] {
        let at = Duration::from_secs;
        let timings = Timings {
            duration: at(duration),
            deadline: at(deadline),
            retry: at(retry),
        };
        let options = server::candidate("default", "a", timings);
        let refused = Elector::new(client.clone(), options, crate::clock::Clock::system());
        assert_eq!(refused.err(), Some(Error::Timings(timings)));
    }
}
