//! When a service may sleep.

use std::time::Duration;

use chrono::DateTime;
use chrono_tz::Tz;
use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::Timestamp;

use super::duration;
use crate::api::EnabledPeriod;

/// Whether a service may sleep now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Window {
    /// There is no window.
    Always,
    /// It may.
    Open {
        /// As long as nothing opens the window anew.
        until: Timestamp,
    },
    /// It may not.
    Closed {
        /// When the window opens; never if absent.
        opens: Option<Timestamp>,
    },
    /// Nobody can say, so it may not.
    Invalid(Problem),
}

/// Why a window says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is no schedule.
    #[error("enabledPeriod.schedule: {schedule:?} is not five fields of cron: {cause}")]
    Schedule {
        /// What it says.
        schedule: String,
        /// What is wrong with it.
        cause: String,
    },
    /// There is no such time zone.
    #[error("enabledPeriod: there is no time zone {0:?}; they are called like Europe/Berlin")]
    Zone(String),
    /// Two time zones are named.
    #[error("enabledPeriod: the schedule says {schedule}, timeZone says {field}; keep one of them")]
    TwoZones {
        /// Before the schedule.
        schedule: String,
        /// In the field.
        field: String,
    },
    /// It is no duration.
    #[error("enabledPeriod.duration: {0}")]
    Duration(#[from] duration::NoDuration),
    /// A window that never is open is a mistake.
    #[error("enabledPeriod.duration: must be more than nothing")]
    Empty,
}

impl Window {
    /// Whether the service may sleep.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Always | Self::Open { .. })
    }

    /// It is not the time to sleep.
    pub const CLOSED: &'static str = "WindowClosed";
    /// Nobody can say when it is.
    pub const INVALID: &'static str = "WindowInvalid";

    /// In one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Always => "NoWindow",
            Self::Open { .. } => "WindowOpen",
            Self::Closed { .. } => Self::CLOSED,
            Self::Invalid(_) => Self::INVALID,
        }
    }

    /// When the answer may change by time alone.
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
    match Plan::read(period) {
        Ok(plan) => plan.at(now),
        Err(problem) => Window::Invalid(problem),
    }
}

struct Plan {
    cron: Cron,
    zone: Tz,
    duration: Duration,
}

impl Plan {
    fn read(period: &EnabledPeriod) -> Result<Self, Problem> {
        let duration = duration::parse(&period.duration)?;
        if duration.is_zero() {
            return Err(Problem::Empty);
        }
        let (named, schedule) = parts(&period.schedule);
        let field = period.time_zone.as_deref().filter(|zone| !zone.is_empty());
        let zone = match (named, field) {
            (Some(named), Some(field)) if named != field => {
                return Err(Problem::TwoZones {
                    schedule: named.to_owned(),
                    field: field.to_owned(),
                });
            }
            (named, field) => named.or(field).unwrap_or("UTC"),
        };
        let zone = zone.parse().map_err(|_| Problem::Zone(zone.to_owned()))?;
        let cron = five_fields(schedule).map_err(|cause| Problem::Schedule {
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

    /// When it last opened. Croner looks back for centuries; whatever is older than the duration is
    /// over in any case.
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

/// The time zone before a schedule, if there is one, and the schedule.
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
