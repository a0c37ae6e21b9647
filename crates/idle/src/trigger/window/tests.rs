use proptest::prelude::*;

use super::*;

fn period(schedule: &str, duration: &str, zone: Option<&str>) -> EnabledPeriod {
    EnabledPeriod {
        schedule: schedule.into(),
        duration: duration.into(),
        time_zone: zone.map(str::to_owned),
    }
}

fn at(period: &EnabledPeriod, now: &str) -> Window {
    window(Some(period), now.parse().unwrap())
}

fn open(until: &str) -> Window {
    Window::Open {
        until: until.parse().unwrap(),
    }
}

fn closed(opens: &str) -> Window {
    let opens = Some(opens.parse().unwrap());
    Window::Closed { opens }
}

#[test]
fn without_a_window_it_may_always_sleep() {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(window(None, now), Window::Always);
}

#[test]
fn a_window_is_open_from_its_time_for_its_duration() {
    let nights = period("0 22 * * *", "12h", None);
    for (now, expected) in [
        ("2026-01-01T21:59:59Z", closed("2026-01-01T22:00:00Z")),
        ("2026-01-01T22:00:00Z", open("2026-01-02T10:00:00Z")),
        ("2026-01-02T09:59:59.999Z", open("2026-01-02T10:00:00Z")),
        ("2026-01-02T10:00:00Z", closed("2026-01-02T22:00:00Z")),
    ] {
        assert_eq!(at(&nights, now), expected, "{now}");
    }
}

#[test]
fn the_defaults_are_all_day() {
    let all_day: EnabledPeriod = serde_json::from_str("{}").unwrap();
    for now in ["2026-03-01T00:00:00Z", "2026-03-01T23:59:59.9Z"] {
        assert!(at(&all_day, now).is_open(), "{now}");
    }
}

#[test]
fn a_window_may_be_longer_than_the_time_between_two() {
    let weekend = period("0 18 * * 5", "60h", None);
    // 2 January 2026 is a Friday.
    assert!(at(&weekend, "2026-01-05T05:59:59Z").is_open());
    assert_eq!(
        at(&weekend, "2026-01-05T06:00:00Z"),
        closed("2026-01-09T18:00:00Z")
    );
    assert!(at(&period("0 * * * *", "90m", None), "2026-01-01T10:59:00Z").is_open());
}

#[test]
fn the_schedule_is_in_its_time_zone() {
    let by_field = period("0 22 * * *", "8h", Some("Europe/Berlin"));
    let by_prefix = period("CRON_TZ=Europe/Berlin 0 22 * * *", "8h", None);
    let by_other_prefix = period("TZ=Europe/Berlin   0 22 * * *", "8h", Some("Europe/Berlin"));
    for one in [by_field, by_prefix, by_other_prefix] {
        // In winter Berlin is an hour ahead, in summer two.
        assert_eq!(
            at(&one, "2026-01-01T20:59:59Z"),
            closed("2026-01-01T21:00:00Z")
        );
        assert_eq!(
            at(&one, "2026-01-01T21:00:00Z"),
            open("2026-01-02T05:00:00Z")
        );
        assert_eq!(
            at(&one, "2026-07-01T20:00:00Z"),
            open("2026-07-02T04:00:00Z")
        );
    }
}

#[test]
fn a_window_over_a_clock_change_keeps_its_length() {
    // The clocks go forward at one o'clock UTC on 29 March 2026.
    let night = period("0 22 * * *", "8h", Some("Europe/Berlin"));
    assert_eq!(
        at(&night, "2026-03-29T00:00:00Z"),
        open("2026-03-29T05:00:00Z")
    );
}

#[test]
fn an_invalid_window_has_a_reason_and_prevents_sleep() {
    for (period, says) in [
        (period("0 22 * *", "1h", None), "it has 4"),
        (period("0 0 22 * * *", "1h", None), "it has 6"),
        (period("@daily", "1h", None), "it has 1"),
        (period("", "1h", None), "it has 0"),
        (period("61 22 * * *", "1h", None), "schedule"),
        (period("a b c d e", "1h", None), "schedule"),
        (
            period("0 22 * * *", "1 day", None),
            "\"1 day\" is not a duration",
        ),
        (period("0 22 * * *", "", None), "is not a duration"),
        (period("0 22 * * *", "-1h", None), "is not a duration"),
        (period("0 22 * * *", "0s", None), "longer than zero"),
        (
            period("0 22 * * *", "1h", Some("Mars/Olympus")),
            "Mars/Olympus",
        ),
        (period("TZ=Nowhere 0 22 * * *", "1h", None), "Nowhere"),
        (
            period("TZ=UTC 0 22 * * *", "1h", Some("Asia/Tokyo")),
            "keep one of them",
        ),
    ] {
        let now = at(&period, "2026-01-01T22:30:00Z");
        let Window::Invalid(problem) = &now else {
            panic!("{period:?}: {now:?}");
        };
        assert!(problem.to_string().contains(says), "{problem}");
        assert!(!now.is_open());
        assert_eq!(now.reason(), "WindowInvalid");
    }
}

proptest! {
    /// The window changes at the predicted time, and not before.
    #[test]
    fn the_state_of_a_window_holds_until_its_next_change(
        minute in 0_u8..60, hour in 0_u8..24, length in 1_i64..1439, now in 1_700_000_000_i64..1_800_000_000,
    ) {
        let period = period(&format!("{minute} {hour} * * *"), &format!("{length}m"), None);
        let now = Timestamp::from_second(now).unwrap();
        let answer = window(Some(&period), now);
        let changes = answer.changes().unwrap();
        prop_assert!(changes > now);
        let second = jiff::SignedDuration::from_secs(1);
        prop_assert_eq!(window(Some(&period), changes - second).is_open(), answer.is_open());
        prop_assert_ne!(window(Some(&period), changes).is_open(), answer.is_open());
    }

    #[test]
    fn no_text_panics(schedule in "\\PC{0,20}", duration in "\\PC{0,8}", zone in "\\PC{0,8}") {
        let _ = at(&period(&schedule, &duration, Some(&zone)), "2026-01-01T00:00:00Z");
    }
}
