use std::time::Duration;

use http::{HeaderMap, StatusCode};
use proptest::prelude::*;

use crate::client::{
    Attempt, AttemptResult, Decision,
    FinalReason::{
        AttemptsExhausted, BodyGone, DeadlineTooClose, NotIdempotent, RetryAfterTooLong, Settled,
    },
    RetryPolicy, retry_after,
};

fn answered(status: u16, retry_after: Option<u64>) -> AttemptResult {
    AttemptResult::Answered {
        status: StatusCode::from_u16(status).unwrap(),
        retry_after: retry_after.map(Duration::from_secs),
    }
}

fn attempt(result: AttemptResult) -> Attempt {
    Attempt {
        number: 1,
        result,
        idempotent: true,
        replayable: true,
        remaining: Duration::from_mins(1),
    }
}

#[test]
fn each_reason_to_stop_has_its_name() {
    let policy = RetryPolicy::default();
    let of = |attempt: Attempt| policy.decide(&attempt, 0.5);
    let unavailable = attempt(answered(503, None));
    for (attempt, reason) in [
        (attempt(answered(200, None)), Settled),
        (attempt(answered(404, None)), Settled),
        (attempt(AttemptResult::Untrusted), Settled),
        (
            Attempt {
                number: 4,
                ..unavailable
            },
            AttemptsExhausted,
        ),
        (
            Attempt {
                idempotent: false,
                ..unavailable
            },
            NotIdempotent,
        ),
        (
            Attempt {
                replayable: false,
                ..unavailable
            },
            BodyGone,
        ),
        (attempt(answered(429, Some(3600))), RetryAfterTooLong),
        (
            Attempt {
                remaining: Duration::from_millis(100),
                ..unavailable
            },
            DeadlineTooClose,
        ),
    ] {
        assert_eq!(of(attempt), Decision::Return(reason), "{attempt:?}");
    }
}

#[test]
fn delays_double_up_to_a_limit() {
    let policy = RetryPolicy {
        max_attempts: 99,
        ..RetryPolicy::default()
    };
    let delays: Vec<_> = (1..8)
        .map(|number| {
            let attempt = Attempt {
                number,
                ..attempt(AttemptResult::NotSent)
            };
            match policy.decide(&attempt, 1.0) {
                Decision::RetryAfter(delay) => delay.as_millis(),
                Decision::Return(reason) => panic!("{reason:?}"),
            }
        })
        .collect();
    assert_eq!(delays, [200, 400, 800, 1600, 3200, 5000, 5000]);
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let now = "2026-11-06T08:49:00Z".parse().unwrap();
    for (value, expected) in [
        ("120", Some(120)),
        (" 0 ", Some(0)),
        ("Fri, 06 Nov 2026 08:49:37 GMT", Some(37)),
        ("Thu, 05 Nov 2026 08:49:37 GMT", Some(0)),
        ("soon", None),
        ("-5", None),
        ("99999999999999999999999", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", value.parse().unwrap());
        let expected = expected.map(Duration::from_secs);
        assert_eq!(retry_after(&headers, now), expected, "{value}");
    }
}

proptest! {
    #[test]
    fn a_delay_respects_server_and_deadline(
        number in 1_u32..10,
        status in 400_u16..600,
        wanted in prop::option::of(0_u64..100),
        remaining in 0_u64..100,
        jitter in 0.0_f64..=1.0,
    ) {
        let policy = RetryPolicy::default();
        let attempt = Attempt {
            number,
            remaining: Duration::from_secs(remaining),
            ..attempt(answered(status, wanted))
        };
        if let Decision::RetryAfter(delay) = policy.decide(&attempt, jitter) {
            prop_assert!(delay < attempt.remaining);
            prop_assert!(delay >= Duration::from_secs(wanted.unwrap_or(0)));
            prop_assert!(number < policy.max_attempts);
        }
    }

    #[test]
    fn what_may_have_happened_is_repeated_only_if_that_is_harmless(
        status in 400_u16..600,
        kind in 0_u8..3,
    ) {
        let result = match kind {
            0 => AttemptResult::Interrupted,
            1 => AttemptResult::TimedOut,
            _ => answered(status, None),
        };
        let attempt = Attempt { idempotent: false, ..attempt(result) };
        let decision = RetryPolicy::default().decide(&attempt, 0.0);
        let refused_before = result == answered(429, None);
        prop_assert_eq!(matches!(decision, Decision::RetryAfter(_)), refused_before);
    }
}
