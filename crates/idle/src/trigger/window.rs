//! The window of time in which a service may sleep.

use std::time::Duration;

use chrono::DateTime;
use chrono_tz::Tz;
use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::Timestamp;
use neap_kit::duration;

use crate::api::EnabledPeriod;

/// Whether a service may sleep now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Window {
    /// The service has no window, so it may sleep at any time.
    Always,
    /// The window is open.
    Open {
        /// When it closes, unless it opens again before.
        until: Timestamp,
    },
    /// The window is closed.
    Closed {
        /// When it opens next; never if absent.
        opens: Option<Timestamp>,
    },
    /// The window cannot be parsed, so the service may not sleep.
    Invalid(WindowProblem),
}

/// Why a window is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowProblem {
    /// The schedule is not a cron expression.
    #[error(
        "enabledPeriod.schedule: {schedule:?} is not a cron expression with five fields: {cause}"
    )]
    Schedule {
        /// The schedule.
        schedule: String,
        /// The error of the parser.
        cause: String,
    },
    /// There is no such time zone.
    #[error("enabledPeriod: there is no time zone {0:?}; use a name such as Europe/Berlin")]
    Zone(String),
    /// The schedule and the field name different time zones.
    #[error(
        "enabledPeriod: the schedule has the time zone {schedule}, and timeZone is {field}; keep one of them"
    )]
    TwoZones {
        /// The prefix of the schedule.
        schedule: String,
        /// The field.
        field: String,
    },
    /// The duration cannot be parsed.
    #[error("enabledPeriod.duration: {0}")]
    Duration(#[from] duration::InvalidDuration),
    /// The duration is zero, so the window would never be open.
    #[error("enabledPeriod.duration: must be longer than zero")]
    Empty,
}

impl Window {
    /// Whether the service may sleep.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Always | Self::Open { .. })
    }

    /// The reason while the window is closed.
    pub const CLOSED: &'static str = "WindowClosed";
    /// The reason if the window cannot be parsed.
    pub const INVALID: &'static str = "WindowInvalid";

    /// The reason of a condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Always => "NoWindow",
            Self::Open { .. } => "WindowOpen",
            Self::Closed { .. } => Self::CLOSED,
            Self::Invalid(_) => Self::INVALID,
        }
    }

    /// When the window opens or closes next.
    pub fn changes(&self) -> Option<Timestamp> {
        match self {
            Self::Always | Self::Invalid(_) => None,
            Self::Open { until } => Some(*until),
            Self::Closed { opens } => *opens,
        }
    }
}

/// Whether a service with this period may sleep at `now`.
pub fn window(period: Option<&EnabledPeriod>, now: Timestamp) -> Window {
    let Some(period) = period else {
        return Window::Always;
    };
    match Schedule::parse(period) {
        Ok(schedule) => schedule.at(now),
        Err(problem) => Window::Invalid(problem),
    }
}

struct Schedule {
    cron: Cron,
    zone: Tz,
    duration: Duration,
}

impl Schedule {
    fn parse(period: &EnabledPeriod) -> Result<Self, WindowProblem> {
        let duration = duration::parse(&period.duration)?;
        if duration.is_zero() {
            return Err(WindowProblem::Empty);
        }
        let (named, schedule) = parts(&period.schedule);
        let field = period.time_zone.as_deref().filter(|zone| !zone.is_empty());
        let zone = match (named, field) {
            (Some(named), Some(field)) if named != field => {
                return Err(WindowProblem::TwoZones {
                    schedule: named.to_owned(),
                    field: field.to_owned(),
                });
            }
            (named, field) => named.or(field).unwrap_or("UTC"),
        };
        let zone = zone
            .parse()
            .map_err(|_| WindowProblem::Zone(zone.to_owned()))?;
        let cron = five_fields(schedule).map_err(|cause| WindowProblem::Schedule {
            schedule: period.schedule.clone(),
            cause,
        })?;
        Ok(Self {
            cron,
            zone,
            duration,
        })
    }

    fn at(&self, now: Timestamp) -> Window {
        if let Some(until) = self.opened(now).map(|time| self.end(time))
            && now < until
        {
            return Window::Open { until };
        }
        let next = self.local(now);
        let next = next.and_then(|now| self.cron.find_next_occurrence(&now, false).ok());
        let opens = next.and_then(|next| back(&next));
        Window::Closed { opens }
    }

    /// When the window last opened. The search goes back for centuries; an opening that is older than the
    /// duration is over in any case.
    fn opened(&self, now: Timestamp) -> Option<Timestamp> {
        let found = self.cron.find_previous_occurrence(&self.local(now)?, true);
        back(&found.ok()?)
    }

    fn end(&self, opened: Timestamp) -> Timestamp {
        opened.checked_add(self.duration).unwrap_or(Timestamp::MAX)
    }

    fn local(&self, time: Timestamp) -> Option<DateTime<Tz>> {
        let time = DateTime::from_timestamp(time.as_second(), 0)?;
        Some(time.with_timezone(&self.zone))
    }
}

/// The time zone in the prefix of a schedule, if there is one, and the rest.
fn parts(schedule: &str) -> (Option<&str>, &str) {
    let schedule = schedule.trim();
    let named = schedule.strip_prefix("CRON_TZ=");
    match named.or_else(|| schedule.strip_prefix("TZ=")) {
        Some(named) => {
            let (zone, rest) = named.split_once(char::is_whitespace).unwrap_or((named, ""));
            (Some(zone), rest.trim())
        }
        None => (None, schedule),
    }
}

fn five_fields(schedule: &str) -> Result<Cron, String> {
    let fields = schedule.split_whitespace().count();
    if fields != 5 {
        return Err(format!("it has {fields}"));
    }
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    parser.parse(schedule).map_err(|cause| cause.to_string())
}

fn back(time: &DateTime<Tz>) -> Option<Timestamp> {
    Timestamp::from_second(time.timestamp()).ok()
}

#[cfg(test)]
mod tests;
