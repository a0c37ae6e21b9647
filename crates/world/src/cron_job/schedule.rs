//! Cron schedules in their time zones.

use chrono::{DateTime, SecondsFormat};
use chrono_tz::Tz;
use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::Timestamp;

/// The maximum number of missed times that are counted.
const MAX_MISSED_TIMES: usize = 100;

/// A schedule in its time zone.
#[derive(Debug)]
pub(super) struct Schedule {
    cron: Cron,
    zone: Tz,
}

/// Why a schedule is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ScheduleError {
    #[error("unparseable schedule: {schedule:?}: {cause}")]
    Schedule { schedule: String, cause: String },
    #[error("invalid timeZone: {0:?}: unknown time zone {0}")]
    Zone(String),
}

/// Scheduled times that have passed without a Job.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MissedTimes {
    pub(super) last: Timestamp,
    /// There are more than [`MAX_MISSED_TIMES`].
    pub(super) too_many: bool,
}

impl Schedule {
    pub(super) fn parse(schedule: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let name = zone.unwrap_or("UTC");
        let zone = name
            .parse()
            .map_err(|_| ScheduleError::Zone(name.to_owned()))?;
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let expression = if schedule == "@midnight" {
            "@daily"
        } else {
            schedule
        };
        let cron = parser
            .parse(expression)
            .map_err(|cause| ScheduleError::Schedule {
                schedule: schedule.to_owned(),
                cause: cause.to_string(),
            })?;
        Ok(Self { cron, zone })
    }

    /// The times after `since` and up to `now`.
    pub(super) fn missed(&self, since: Timestamp, now: Timestamp) -> Option<MissedTimes> {
        let found = self.cron.find_previous_occurrence(&self.local(now)?, true);
        let last = to_timestamp(&found.ok()?)?;
        if last <= since {
            return None;
        }
        let mut count = 0;
        let mut time = since;
        while count <= MAX_MISSED_TIMES {
            match self.next(time) {
                Some(next) if next <= now => time = next,
                _ => break,
            }
            count += 1;
        }
        let too_many = count > MAX_MISSED_TIMES;
        Some(MissedTimes { last, too_many })
    }

    /// The first time after `now`.
    pub(super) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let found = self.cron.find_next_occurrence(&self.local(now)?, false);
        to_timestamp(&found.ok()?)
    }

    /// The time in the schedule's time zone, in RFC 3339.
    pub(super) fn format(&self, time: Timestamp) -> String {
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

fn to_timestamp(time: &DateTime<Tz>) -> Option<Timestamp> {
    Timestamp::from_second(time.timestamp()).ok()
}
