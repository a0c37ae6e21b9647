//! Numbers and times as the API represents them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::{apis::meta::v1::Time, util::intstr::IntOrString};

/// A count as the API's `int32`.
pub(crate) fn to_i32(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A number that is omitted if it is zero.
pub(crate) fn nonzero(number: i32) -> Option<i32> {
    Some(number).filter(|&number| number != 0)
}

/// A time in whole seconds, as objects store it, so that what is read equals what was written.
pub(crate) fn api_time(now: Timestamp) -> Time {
    Time(truncate_to_second(now))
}

/// `now` truncated to whole seconds.
pub(crate) fn truncate_to_second(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// The direction in which a fraction is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    Up,
    Down,
}

/// An absolute number, or a percentage of `total`.
pub(crate) fn scaled_value(of: &IntOrString, total: i32, round: Round) -> i32 {
    match of {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            let percent = text.trim_end_matches('%').parse::<i64>().unwrap_or(0);
            let parts = percent * i64::from(total);
            let whole = match round {
                Round::Up => (parts + 99).div_euclid(100),
                Round::Down => parts.div_euclid(100),
            };
            i32::try_from(whole).unwrap_or(i32::MAX)
        }
    }
}
