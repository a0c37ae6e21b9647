//! Figures of the release controllers: beside many objects, and what they write when nothing happens.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{
    Figure, Subjects,
    loaded::Line,
    row::{Asked::Limit, Row},
};
use crate::process;

pub(super) fn figures() -> Vec<Box<dyn Figure>> {
    vec![Box::new(Controllers), Box::new(Quiet)]
}

/// Both controllers in one process, beside 300 streams, 5,000 payloads and 100,000 ProwJobs.
struct Controllers;

/// Writes in ten minutes of virtual time in which nothing happens.
struct Quiet;

const LINES: [Line; 5] = [
    Line::new(
        "resident",
        "memory of both controllers, 100 000 ProwJobs",
        "MB",
    )
    .scaled(1e-6)
    .asked(Limit(400.0)),
    Line::new("peak", "its peak while they start", "MB").scaled(1e-6),
    Line::new("cold start", "from start to the first decision", "s").asked(Limit(20.0)),
    Line::new("payload p99", "ImageStream update to payload, p99", "ms").asked(Limit(200.0)),
    Line::new("verdict p99", "job result to verdict, p99", "ms").asked(Limit(100.0)),
];

const WRITES: Line = Line::new("writes", "writes in 10 quiet minutes", "").asked(Limit(0.0));

impl Figure for Controllers {
    fn name(&self) -> &'static str {
        "300 streams, 5 000 payloads, 100 000 ProwJobs"
    }

    fn measure(&self, subjects: &Subjects) -> Result<Vec<Row>> {
        let mut command = subjects.ours.load();
        command.args(["release", "controllers"]);
        let figures: Value = serde_json::from_str(&process::output(&mut command)?)?;
        LINES.iter().map(|line| line.row(&figures, None)).collect()
    }
}

impl Figure for Quiet {
    fn name(&self) -> &'static str {
        "ten quiet minutes"
    }

    fn measure(&self, _: &Subjects) -> Result<Vec<Row>> {
        let run = [
            "run",
            "--locked",
            "--quiet",
            "--package",
            "neap-release-trial",
        ];
        let mut command = process::cargo();
        let text = process::output(command.args(run).args(["--example", "quiet"]))?;
        let line = text.lines().find(|line| line.starts_with('{'));
        let figures = serde_json::from_str(line.context("the program has no figures")?)?;
        Ok(vec![WRITES.row(&figures, None)?])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_write_in_quiet_minutes_is_too_many() {
        for (writes, holds) in [(0, true), (1, false)] {
            let row = WRITES.row(&json!({"writes": writes}), None).unwrap();
            assert_eq!(row.holds(), Some(holds));
        }
    }
}
