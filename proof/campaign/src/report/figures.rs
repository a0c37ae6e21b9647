//! The requirements of a campaign, and whether they are met.

use std::time::Duration;

use neap_trial::judge::FieldCoverage;
use serde::Serialize;

use super::CampaignReport;

/// The time that the requirements refer to.
const REFERENCE_TIME: Duration = Duration::from_mins(2);
/// Plans on two cores.
const MIN_PLANS: usize = 20_000;
/// Plans of each workload.
const MIN_PLANS_EACH: usize = 1_000;
/// CPU time per plan, in milliseconds.
const MAX_COST: f64 = 10.0;
/// Share of all fields that must be compared, in percent.
const MIN_COMPARED: f64 = 95.0;
/// Permitted differences at most.
const MAX_ALLOWANCES: usize = 10;

/// A figure and its requirement.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    #[serde(rename = "figure")]
    name: &'static str,
    ours: String,
    asked: String,
    pub(crate) holds: bool,
}

/// All figures. Those that depend on the speed of the machine are scaled to the time it had.
pub(crate) fn of(report: &CampaignReport, time: Duration) -> Vec<Figure> {
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
            format!("≤ {MAX_ALLOWANCES}"),
            allowed <= MAX_ALLOWANCES,
        ),
    ];
    // Walks and start states by themselves play no plans.
    if !report.workloads.is_empty() {
        figures.splice(0..0, speed(report, time));
        figures.extend(trust(report));
    }
    figures
}

fn speed(report: &CampaignReport, time: Duration) -> [Figure; 3] {
    let part = time.as_secs_f64() / REFERENCE_TIME.as_secs_f64();
    let scaled = |asked: usize| (asked as f64 * part).round() as usize;
    let seconds = time.as_secs();
    let asked = scaled(MIN_PLANS);
    let least = report.workloads.iter().min_by_key(|(_, tally)| tally.plans);
    let (name, fewest) = least.map_or(("", 0), |(name, tally)| (name.as_str(), tally.plans));
    let each = scaled(MIN_PLANS_EACH);
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
            format!("≤ {MAX_COST} ms"),
            cost <= MAX_COST && report.plans > 0,
        ),
    ]
}

fn trust(report: &CampaignReport) -> [Figure; 2] {
    let (again, alike) = (report.again, report.replayed);
    let FieldCoverage { compared, masked } = report.fields;
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
            format!("≥ {MIN_COMPARED} %"),
            share >= MIN_COMPARED,
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
        writeln!(f, " {mark} {name:32} {ours:24} required: {asked}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::WorkloadTally;

    fn report(plans: usize, fewest: usize) -> CampaignReport {
        let tally = |plans| WorkloadTally {
            plans,
            ..WorkloadTally::default()
        };
        let workloads = [("big", plans - fewest), ("small", fewest)];
        let workloads = workloads.map(|(name, plans)| (name.to_owned(), tally(plans)));
        CampaignReport {
            plans,
            again: 3,
            replayed: 3,
            median_cost: 2.0,
            fields: FieldCoverage {
                compared: 99,
                masked: 1,
            },
            workloads: workloads.into(),
            ..CampaignReport::default()
        }
    }

    fn failing(report: &CampaignReport, seconds: u64) -> Vec<&'static str> {
        let figures = of(report, Duration::from_secs(seconds)).into_iter();
        let failing = figures.filter(|figure| !figure.holds);
        failing.map(|figure| figure.name).collect()
    }

    #[test]
    fn what_is_asked_grows_with_the_time() {
        assert_eq!(failing(&report(20_000, 1_000), 120), [""; 0]);
        assert_eq!(failing(&report(19_999, 1_000), 120), ["distinct plans"]);
        assert_eq!(failing(&report(5_000, 250), 30), [""; 0]);
        assert_eq!(
            failing(&report(20_000, 999), 120),
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
            failing(&report, 120),
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
        assert_eq!(failing(&report, 120), ["replays identical"]);
    }
}
