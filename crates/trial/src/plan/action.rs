//! What a fault does.

use std::{fmt, time::Duration};

use super::Point;

/// What happens where a rule strikes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// The process dies, and starts again a little later.
    Crash,
    /// It dies, and after its start reads from a server that is some changes behind: of these kinds,
    /// or of all if none is named.
    CrashStale(usize, Vec<String>),
    /// What it asks for takes so long; nothing of it goes on meanwhile.
    Pause(Duration),
    /// The request is answered with this code. After a write it hides that the write was done.
    Fail(Fault),
    /// This request, and as many more as that for the same object, find that it was changed.
    Conflict(u32),
    /// The request, its answer or the event comes so much later.
    Delay(Duration),
    /// From here on the process sees some changes late, of these kinds or all, for so long.
    Lag(usize, Vec<String>, Duration),
    /// The watch breaks off and can be opened again where it was.
    Reset,
    /// The watch breaks off, and what it would go on from is no longer known.
    Gone,
    /// The watch breaks off and stays so for this long; what happened meanwhile shows only as what
    /// it came to.
    Merge(Duration),
    /// The event is told twice.
    Twice,
}

/// A refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fault {
    /// The code of the answer.
    pub code: u16,
    /// When the server wants to be asked again.
    pub retry_after: Option<Duration>,
}

impl Action {
    /// Why it cannot happen at `point`, if so.
    pub fn misplaced(&self, point: Point) -> Option<&'static str> {
        let at_event = point == Point::WatchEvent;
        let at_write = matches!(point, Point::WriteBefore | Point::WriteAfter);
        let outside = matches!(point, Point::ExtBefore | Point::ExtAfter);
        match self {
            Self::Lag(..) if outside => Some("a system outside has no watches"),
            Self::Reset | Self::Merge(_) | Self::Twice if !at_event => {
                Some("only a watch.event can do that")
            }
            Self::Gone if !at_event && point != Point::WatchOpen => {
                Some("only a watch can be told that its place is gone")
            }
            Self::Fail(_) if at_event => Some("an event is no request, so nothing can be refused"),
            Self::Conflict(_) if point != Point::WriteBefore => {
                Some("a conflict refuses a write: write.before")
            }
            Self::CrashStale(..) if !at_write => Some("crash stale belongs to a write"),
            _ => None,
        }
    }

    /// One word for the kind of fault, as matrices name it.
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
            Self::Twice => "dup".to_owned(),
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
            Self::Pause(time) => write!(f, "pause {}", Span(*time)),
            Self::Fail(fault) => {
                write!(f, "fail {}", fault.code)?;
                match fault.retry_after {
                    Some(time) => write!(f, " retry-after {}", Span(time)),
                    None => Ok(()),
                }
            }
            Self::Conflict(times) => write!(f, "conflict x {times}"),
            Self::Delay(time) => write!(f, "delay {}", Span(*time)),
            Self::Lag(events, kinds, time) => {
                write!(f, "lag {events}")?;
                list(f, kinds)?;
                write!(f, " until {}", Span(*time))
            }
            Self::Reset => f.write_str("reset"),
            Self::Gone => f.write_str("gone"),
            Self::Merge(time) => write!(f, "merge {}", Span(*time)),
            Self::Twice => f.write_str("dup"),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, kinds: &[String]) -> fmt::Result {
    if kinds.is_empty() {
        return Ok(());
    }
    write!(f, " kinds={}", kinds.join(","))
}

/// A time as plans write it.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        if millis.is_multiple_of(1000) {
            write!(f, "{}s", millis / 1000)
        } else {
            write!(f, "{millis}ms")
        }
    }
}
