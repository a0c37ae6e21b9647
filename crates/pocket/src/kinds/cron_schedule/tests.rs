use proptest::prelude::*;

use super::*;

#[test]
fn schedules_in_use_are_accepted() {
    for schedule in [
        "* * * * *",
        "*/15 * * * *",
        "0 9-17/2 * * MON-FRI",
        "5/10 0 1,15 jan,Dec ?",
        "59 23 31 12 6",
        "0,30 * * * sun",
        "  0   0 * * *  ",
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
        "@every 1h30m",
        "@every 1.5h",
        "@every 500ms",
    ] {
        assert_eq!(check(schedule), Ok(()), "{schedule}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (schedule, complaint) in [
        ("", "empty spec string"),
        ("x", "expected exactly 5 fields, found 1: [x]"),
        (
            "* * * * * *",
            "expected exactly 5 fields, found 6: [* * * * * *]",
        ),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* 24 * * *", "end of range (24) above maximum (23): 24"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * 13 *", "end of range (13) above maximum (12): 13"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        (
            "5-1 * * * *",
            "beginning of range (5) beyond end of range (1): 5-1",
        ),
        (
            "*/0 * * * *",
            "step of range should be a positive number: */0",
        ),
        ("*/x * * * *", "failed to parse int from x"),
        ("a * * * *", "failed to parse int from a"),
        ("mon * * * *", "failed to parse int from mon"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("-1 * * * *", "failed to parse int from "),
        ("@never", "unrecognized descriptor: @never"),
        ("@every soon", "failed to parse duration @every soon"),
        ("@every 5", "failed to parse duration @every 5"),
        ("@every 1h.m", "failed to parse duration @every 1h.m"),
    ] {
        let errors = check(schedule).map_err(|error| error.to_string());
        assert_eq!(errors, Err(complaint.into()), "{schedule}");
    }
}

proptest! {
    #[test]
    fn any_text_is_judged_without_a_panic(text in "\\PC{0,40}") {
        let _ = check(&text);
    }

    #[test]
    fn values_in_range_pass_and_others_do_not(
        minute in 0u32..90, hour in 0u32..40, day in 0u32..50, month in 0u32..20, weekday in 0u32..12,
    ) {
        let inside = minute <= 59
            && hour <= 23
            && (1..=31).contains(&day)
            && (1..=12).contains(&month)
            && weekday <= 6;
        let schedule = format!("{minute} {hour} {day} {month} {weekday}");
        prop_assert_eq!(check(&schedule).is_ok(), inside);
    }
}
