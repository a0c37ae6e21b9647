//! When a schedule says so.

use chrono::{DateTime, SecondsFormat};
use chrono_tz::Tz;
use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::Timestamp;

/// More missed times than these are not looked at.
const MOST: usize = 100;

/// A schedule in its time zone.
#[derive(Debug)]
pub(super) struct Times {
    cron: Cron,
    zone: Tz,
}

/// Why a schedule says nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    #[error("unparseable schedule: {schedule:?}: {cause}")]
    Schedule { schedule: String, cause: String },
    #[error("invalid timeZone: {0:?}: unknown time zone {0}")]
    Zone(String),
}

/// Times that came and were not seen to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missed {
    pub(super) last: Timestamp,
    /// More than anybody counts.
    pub(super) too_many: bool,
}

impl Times {
    pub(super) fn parse(schedule: &str, zone: Option<&str>) -> Result<Self, Problem> {
        let name = zone.unwrap_or("UTC");
        let zone = name.parse().map_err(|_| Problem::Zone(name.to_owned()))?;
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let known = if schedule == "@midnight" {
            "@daily"
        } else {
            schedule
        };
        let cron = parser.parse(known).map_err(|cause| Problem::Schedule {
            schedule: schedule.to_owned(),
            cause: cause.to_string(),
        })?;
        Ok(Self { cron, zone })
    }

    /// The times after `since` and up to `now`.
    pub(super) fn missed(&self, since: Timestamp, now: Timestamp) -> Option<Missed> {
        let found = self.cron.find_previous_occurrence(&self.local(now)?, true);
        let last = back(&found.ok()?)?;
        if last <= since {
            return None;
        }
        let mut count = 0;
        let mut time = since;
        while count <= MOST {
            match self.next(time) {
                Some(next) if next <= now => time = next,
                _ => break,
            }
            count += 1;
        }
        let too_many = count > MOST;
        Some(Missed { last, too_many })
    }

    /// The first time after `now`.
    pub(super) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let found = self.cron.find_next_occurrence(&self.local(now)?, false);
        back(&found.ok()?)
    }

    /// The time as it is written where the schedule is kept.
    pub(super) fn written(&self, time: Timestamp) -> String {
        let local = self.local(time);
        local.map_or_else(
            || time.to_string(),
            |local| local.to_rfc3339_opts(SecondsFormat::Secs, true),
        )
    }

    fn local(&self, time: Timestamp) -> Option<DateTime<Tz>> {
        let time = DateTime::from_timestamp(time.as_second(), 0)?;
        Some(time.with_timezone(&self.zone))
    }
}

fn back(time: &DateTime<Tz>) -> Option<Timestamp> {
    Timestamp::from_second(time.timestamp()).ok()
}
