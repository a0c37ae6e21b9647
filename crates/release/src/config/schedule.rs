//! When a periodic job runs: the one rule for `neap release validate` and for the controller.

use std::time::Duration;

use croner::parser::{CronParser, Seconds, Year};
use neap_kit::{clock::short_duration, duration};

use super::ReleasePeriodic;

/// The shortest interval, which is also that of cron expressions.
const MIN_INTERVAL: Duration = Duration::from_mins(1);

/// When a periodic job runs.
#[derive(Debug, Clone)]
pub enum Schedule {
    /// Again when this time has passed since its last run.
    Every(Duration),
    /// At these times.
    At(Box<croner::Cron>),
}

impl ReleasePeriodic {
    /// When it runs, or the field that is wrong, which begins with a dot, and why.
    pub fn schedule(&self) -> Result<Schedule, (&'static str, String)> {
        match (self.interval.is_empty(), self.cron.is_empty()) {
            (true, true) => Err(("", "it has an interval or a cron expression".to_owned())),
            (false, false) => Err((
                "",
                "it has an interval or a cron expression, not both".to_owned(),
            )),
            (false, true) => every(&self.interval).map_err(|why| (".interval", why)),
            (true, false) => at(&self.cron).map_err(|why| (".cron", why)),
        }
    }
}

fn every(text: &str) -> Result<Schedule, String> {
    let interval = duration::parse(text).map_err(|error| error.to_string())?;
    if interval < MIN_INTERVAL {
        let least = short_duration(MIN_INTERVAL.as_secs().try_into().unwrap_or(i64::MAX));
        return Err(format!(
            "{text:?} is too short: the least interval is {least}"
        ));
    }
    Ok(Schedule::Every(interval))
}

/// A cron expression with five fields, or a word such as `@daily`.
fn at(text: &str) -> Result<Schedule, String> {
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    let cron = parser
        .parse(text)
        .map_err(|error| format!("{text:?} is not a cron expression: {error}"))?;
    Ok(Schedule::At(Box::new(cron)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_runs_at_most_once_a_minute() {
        let refused = |interval: &str, cron: &str| {
            let periodic = ReleasePeriodic {
                interval: interval.to_owned(),
                cron: cron.to_owned(),
                ..ReleasePeriodic::default()
            };
            periodic.schedule().err().map(|(field, _)| field)
        };
        for (interval, cron, wanted) in [
            ("1m", "", None),
            ("6h", "", None),
            ("59s", "", Some(".interval")),
            ("1ns", "", Some(".interval")),
            ("0s", "", Some(".interval")),
            ("soon", "", Some(".interval")),
            ("", "* * * * *", None),
            ("", "@daily", None),
            ("", "* * * * * *", Some(".cron")),
            ("1h", "@daily", Some("")),
            ("", "", Some("")),
        ] {
            assert_eq!(refused(interval, cron), wanted, "{interval:?} {cron:?}");
        }
    }
}
