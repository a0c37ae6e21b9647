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

/// Parses a sequence of numbers with a unit each. `0` needs no unit. Negative durations are refused: none
/// of the fields that hold one has a meaning for them.
pub fn parse(text: &str) -> Result<Duration, InvalidDuration> {
    let nanos = match text.strip_prefix('+').unwrap_or(text) {
        "0" => Some(0),
        rest => sum(rest),
    };
    let nanos = nanos.filter(|nanos| *nanos <= MAX_NANOS);
    let nanos = nanos.and_then(|nanos| u64::try_from(nanos).ok());
    nanos
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
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
        sum = sum.checked_add(times(number, *unit)?)?;
        rest = after;
    }
    Some(sum)
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// `number` units in whole nanoseconds; fractions of a nanosecond are cut off.
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
    use super::*;

    #[test]
    fn durations_are_sums_of_numbers_with_units() {
        for (text, millis) in [
            ("0", 0),
            ("90s", 90_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            (".5s", 500),
            ("+2ms", 2),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "5", "-5s", "1d", "s", "1.2.3s", "999999999h", "1h "] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
