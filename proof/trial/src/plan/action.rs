//! The effects of faults.

use std::{fmt, time::Duration};

use super::Point;

/// The effect of a fault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// The process dies, and restarts a little later.
    Crash,
    /// It dies, and after its restart reads from a server that is some changes behind: for these
    /// kinds, or for all if the list is empty.
    CrashStale(usize, Vec<String>),
    /// The process is paused for this time.
    Pause(Duration),
    /// The request is answered with this status code. After a write it hides that the write was
    /// committed.
    Fail(Fault),
    /// This write to the object and the following ones, as many as the number says, fail with a
    /// conflict.
    Conflict(u32),
    /// The request, its answer or the event is delayed.
    Delay(Duration),
    /// From here on, for this time, the process sees changes late, of these kinds or of all.
    Lag(usize, Vec<String>, Duration),
    /// The watch ends, and can be resumed at the same version.
    Reset,
    /// The watch ends, and its version has expired.
    Gone,
    /// The watch ends, and cannot be opened for this time; changes in between appear only as their
    /// final state.
    Merge(Duration),
    /// The event, or the call over HTTP, is delivered twice.
    Twice,
    /// The connection of a call over HTTP breaks: before the system has seen the request, or after it
    /// has carried it out.
    Lose,
    /// The body of the answer over HTTP breaks off after this number of bytes.
    Truncate(u64),
    /// The body of the answer over HTTP has one wrong byte, at about this position.
    Corrupt(u64),
}

/// A refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fault {
    pub code: u16,
    /// The value of the Retry-After header.
    pub retry_after: Option<Duration>,
}

impl Action {
    /// Why it cannot strike at `point`, if so.
    pub fn misplaced(&self, point: Point) -> Option<&'static str> {
        let at_event = point == Point::WatchEvent;
        let at_write = matches!(point, Point::WriteBefore | Point::WriteAfter);
        let outside = matches!(point, Point::ExtBefore | Point::ExtAfter);
        match self {
            Self::Lag(..) if outside => Some("a system outside has no watches"),
            Self::Twice if point == Point::ExtBefore => None,
            Self::Reset | Self::Merge(_) | Self::Twice if !at_event => {
                Some("only a watch.event can do that")
            }
            Self::Lose if !outside => Some("only a call outside can be lost"),
            Self::Truncate(_) | Self::Corrupt(_) if point != Point::ExtAfter => {
                Some("only an answer has a body: ext.after")
            }
            Self::Gone if !at_event && point != Point::WatchOpen => {
                Some("only a watch can be told that its version has expired")
            }
            Self::Fail(_) if at_event => Some("an event is no request, so nothing can be refused"),
            Self::Conflict(_) if point != Point::WriteBefore => {
                Some("a conflict refuses a write: write.before")
            }
            Self::CrashStale(..) if !at_write => Some("crash stale belongs to a write"),
            _ => None,
        }
    }

    /// The name of the kind of fault in reports.
    pub fn word(&self, point: Point) -> String {
        let after = match point {
            Point::WriteAfter => " committed",
            Point::ExtBefore => " outside",
            Point::ExtAfter => " outside, done",
            _ => "",
        };
        match self {
            Self::Crash => format!("crash{after}"),
            Self::CrashStale(..) => "crash stale".to_owned(),
            Self::Pause(_) => format!("pause{after}"),
            Self::Fail(fault) => format!("fail {}{after}", fault.code),
            Self::Conflict(times) => format!("conflict x {times}"),
            Self::Delay(_) => format!("delay{after}"),
            Self::Lag(..) => "lag".to_owned(),
            Self::Reset => "reset".to_owned(),
            Self::Gone => "gone".to_owned(),
            Self::Merge(_) => "merge".to_owned(),
            Self::Twice => format!("dup{after}"),
            Self::Lose => format!("lose{after}"),
            Self::Truncate(_) => format!("truncate{after}"),
            Self::Corrupt(_) => format!("corrupt{after}"),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash => f.write_str("crash"),
            Self::CrashStale(events, kinds) => {
                write!(f, "crash stale {events}")?;
                list(f, kinds)
            }
            Self::Pause(time) => write!(f, "pause {}", PlanDuration(*time)),
            Self::Fail(fault) => {
                write!(f, "fail {}", fault.code)?;
                match fault.retry_after {
                    Some(time) => write!(f, " retry-after {}", PlanDuration(time)),
                    None => Ok(()),
                }
            }
            Self::Conflict(times) => write!(f, "conflict x {times}"),
            Self::Delay(time) => write!(f, "delay {}", PlanDuration(*time)),
            Self::Lag(events, kinds, time) => {
                write!(f, "lag {events}")?;
                list(f, kinds)?;
                write!(f, " until {}", PlanDuration(*time))
            }
            Self::Reset => f.write_str("reset"),
            Self::Gone => f.write_str("gone"),
            Self::Merge(time) => write!(f, "merge {}", PlanDuration(*time)),
            Self::Twice => f.write_str("dup"),
            Self::Lose => f.write_str("lose"),
            Self::Truncate(bytes) => write!(f, "truncate {bytes}"),
            Self::Corrupt(position) => write!(f, "corrupt {position}"),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, kinds: &[String]) -> fmt::Result {
    if kinds.is_empty() {
        return Ok(());
    }
    write!(f, " kinds={}", kinds.join(","))
}

/// A duration in the notation of plans.
struct PlanDuration(Duration);

impl fmt::Display for PlanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        if millis.is_multiple_of(1000) {
            write!(f, "{}s", millis / 1000)
        } else {
            write!(f, "{millis}ms")
        }
    }
}
