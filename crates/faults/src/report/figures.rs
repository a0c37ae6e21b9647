//! What was asked of the trial, and how far it is met.

use std::time::Duration;

use neap_trial::judge::Share;
use serde::Serialize;

use super::Report;

/// What is asked of this much time.
const TIME: Duration = Duration::from_mins(2);
/// So many plans on two cores.
const PLANS: usize = 20_000;
/// So many of each workload.
const EACH: usize = 1_000;
/// What a plan may cost, in milliseconds of one core.
const COST: f64 = 10.0;
/// So much of all fields is to be compared, in percent.
const FIELDS: f64 = 95.0;
/// So many differences may be allowed.
const ALLOWANCES: usize = 10;

/// One figure.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    #[serde(rename = "figure")]
    name: &'static str,
    ours: String,
    asked: String,
    pub(crate) holds: bool,
}

/// All of them. Those that depend on how fast a machine is are scaled to the time it had.
pub(crate) fn of(report: &Report, time: Duration) -> Vec<Figure> {
    let alarms = report.alarms();
    let allowed = report.allowances.len();
    let mut figures = vec![
        figure(
            "unexplained alarms",
            alarms.to_string(),
            "0".to_owned(),
            alarms == 0,
        ),
        figure(
            "allowances",
            allowed.to_string(),
            format!("≤ {ALLOWANCES}"),
            allowed <= ALLOWANCES,
        ),
    ];
    // A walk or start states by themselves play no plans.
    if !report.workloads.is_empty() {
        figures.splice(0..0, speed(report, time));
        figures.extend(trust(report));
    }
    figures
}

fn speed(report: &Report, time: Duration) -> [Figure; 3] {
    let part = time.as_secs_f64() / TIME.as_secs_f64();
    let scaled = |asked: usize| (asked as f64 * part).round() as usize;
    let seconds = time.as_secs();
    let asked = scaled(PLANS);
    let least = report.workloads.iter().min_by_key(|(_, tally)| tally.plans);
    let (name, fewest) = least.map_or(("", 0), |(name, tally)| (name.as_str(), tally.plans));
    let each = scaled(EACH);
    let cost = report.median_cost;
    [
        figure(
            "distinct plans",
            report.plans.to_string(),
            format!("≥ {asked} in {seconds} s"),
            report.plans >= asked,
        ),
        figure(
            "plans of the smallest workload",
            format!("{fewest} ({name})"),
            format!("≥ {each} in {seconds} s"),
            fewest >= each,
        ),
        figure(
            "core time per plan, median",
            format!("{cost:.1} ms"),
            format!("≤ {COST} ms"),
            cost <= COST && report.plans > 0,
        ),
    ]
}

fn trust(report: &Report) -> [Figure; 2] {
    let (again, alike) = (report.again, report.replayed);
    let Share { compared, masked } = report.fields;
    let share = 100.0 * compared as f64 / (compared + masked).max(1) as f64;
    [
        figure(
            "replays identical",
            format!("{alike} of {again}"),
            "100 %".to_owned(),
            alike == again && again > 0,
        ),
        figure(
            "fields compared",
            format!("{share:.1} %"),
            format!("≥ {FIELDS} %"),
            share >= FIELDS,
        ),
    ]
}

fn figure(name: &'static str, ours: String, asked: String, holds: bool) -> Figure {
    Figure {
        name,
        ours,
        asked,
        holds,
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            name,
            ours,
            asked,
            holds,
        } = self;
        let mark = if *holds { '✓' } else { '✗' };
        writeln!(f, " {mark} {name:32} {ours:24} asked: {asked}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Tally;

    fn report(plans: usize, fewest: usize) -> Report {
        let tally = |plans| Tally {
            plans,
            ..Tally::default()
        };
        let workloads = [("big", plans - fewest), ("small", fewest)];
        let workloads = workloads.map(|(name, plans)| (name.to_owned(), tally(plans)));
        Report {
            plans,
            again: 3,
            replayed: 3,
            median_cost: 2.0,
            fields: Share {
                compared: 99,
                masked: 1,
            },
            workloads: workloads.into(),
            ..Report::default()
        }
    }

    fn falling(report: &Report, seconds: u64) -> Vec<&'static str> {
        let figures = of(report, Duration::from_secs(seconds)).into_iter();
        let falling = figures.filter(|figure| !figure.holds);
        falling.map(|figure| figure.name).collect()
    }

    #[test]
    fn what_is_asked_grows_with_the_time() {
        assert_eq!(falling(&report(20_000, 1_000), 120), [""; 0]);
        assert_eq!(falling(&report(19_999, 1_000), 120), ["distinct plans"]);
        assert_eq!(falling(&report(5_000, 250), 30), [""; 0]);
        assert_eq!(
            falling(&report(20_000, 999), 120),
            ["plans of the smallest workload"]
        );
    }

    #[test]
    fn whatever_falls_short_is_told() {
        let mut report = report(20_000, 1_000);
        report.median_cost = 10.1;
        report.again = 4;
        report.fields.masked = 6;
        report.restless.push("a calm run went wrong".to_owned());
        assert_eq!(
            falling(&report, 120),
            [
                "core time per plan, median",
                "unexplained alarms",
                "replays identical",
                "fields compared"
            ]
        );
    }

    #[test]
    fn nothing_played_again_proves_nothing() {
        let mut report = report(20_000, 1_000);
        (report.again, report.replayed) = (0, 0);
        assert_eq!(falling(&report, 120), ["replays identical"]);
    }
}
