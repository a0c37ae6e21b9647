//! Durations in the notation of Go, such as `1h30m`.

use std::time::Duration;

/// The text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration such as 90s, 30m or 1h30m")]
pub struct InvalidDuration(pub String);

/// Nanoseconds per unit. Both characters that look like a mu are accepted.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The longest duration of Go, in nanoseconds.
const MAX_NANOS: u128 = i64::MAX as u128;

/// Parses a sequence of numbers with a unit each. `0` needs no unit. Negative durations are refused: a
/// wait or an interval cannot be one.
pub fn parse(text: &str) -> Result<Duration, InvalidDuration> {
    let nanos = if matches!(text, "0" | "+0") {
        Some(0)
    } else {
        sum(text.strip_prefix('+').unwrap_or(text))
    };
    let nanos = nanos.filter(|nanos| *nanos <= MAX_NANOS);
    nanos
        .and_then(|nanos| u64::try_from(nanos).ok())
        .map(Duration::from_nanos)
        .ok_or_else(|| InvalidDuration(text.to_owned()))
}

fn sum(mut rest: &str) -> Option<u128> {
    let mut sum: u128 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, after) = split(after, |c| !c.is_ascii_digit() && c != '.');
        let unit = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        sum = sum.checked_add(times(number, unit)?)?;
        rest = after;
    }
    Some(sum)
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// `number` units in whole nanoseconds; fractions of a nanosecond are truncated.
fn times(number: &str, unit: u128) -> Option<u128> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && part.is_empty()) || part.contains('.') {
        return None;
    }
    let whole: u128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut nanos = whole.checked_mul(unit)?;
    let mut share = unit;
    for digit in part.chars() {
        share /= 10;
        nanos = nanos.checked_add(share * u128::from(digit.to_digit(10)?))?;
    }
    Some(nanos)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("24h", Some(86_400_000_000_000)),
            ("1h30m", Some(5_400_000_000_000)),
            ("1.5h", Some(5_400_000_000_000)),
            (".5s", Some(500_000_000)),
            ("1.s", Some(1_000_000_000)),
            ("+30s", Some(30_000_000_000)),
            ("100ms", Some(100_000_000)),
            ("7us", Some(7_000)),
            ("7\u{b5}s", Some(7_000)),
            ("7\u{3bc}s", Some(7_000)),
            ("3ns", Some(3)),
            ("2562047h", Some(2_562_047 * 3_600_000_000_000)),
            ("2562048h", None),
            ("99999999999999999999999999999999999999999h", None),
            ("", None),
            ("-1h", None),
            ("1", None),
            ("1d", None),
            ("1h ", None),
            (" 1h", None),
            ("1 h", None),
            ("h", None),
            (".h", None),
            ("1.2.3s", None),
            ("1H", None),
            ("1h30", None),
            ("\u{661}h", None),
        ] {
            let read = parse(text).ok().map(|it| it.as_nanos());
            assert_eq!(read, nanos, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whole_seconds_come_back(seconds in 0_u64..9_000_000_000) {
            prop_assert_eq!(parse(&format!("{seconds}s")), Ok(Duration::from_secs(seconds)));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,24}") {
            let _ = parse(&text);
        }
    }
}
