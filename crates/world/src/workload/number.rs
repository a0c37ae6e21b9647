//! Numbers as the API writes them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::{apis::meta::v1::Time, util::intstr::IntOrString};

/// How many there are.
pub(crate) fn whole(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A number that is left out if it is zero.
pub(crate) fn some(number: i32) -> Option<i32> {
    Some(number).filter(|&number| number != 0)
}

/// A moment as objects have it: in whole seconds, so that what is read is what was written.
pub(crate) fn moment(now: Timestamp) -> Time {
    Time(second(now))
}

/// The second in which `now` is.
pub(crate) fn second(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Which way a share that is not whole is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    Up,
    Down,
}

/// So many, or so much of `total`.
pub(crate) fn share(of: &IntOrString, total: i32, round: Round) -> i32 {
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
