//! Figures of the release controllers: beside many objects, and what they write when nothing happens.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{
    Figure, Subjects,
    loaded::Line,
    row::{Requirement::Limit, Row},
};
use crate::process;

pub(super) fn figures() -> Vec<Box<dyn Figure>> {
    vec![
        Box::new(Measured {
            name: "300 streams, 5 000 payloads, 100 000 ProwJobs",
            what: "controllers",
            lines: &LINES,
        }),
        Box::new(Measured {
            name: "the example in neap up",
            what: "example",
            lines: &EXAMPLE,
        }),
        Box::new(Quiet),
    ]
}

/// What `neap-load release` measures: both controllers in one process beside many objects, and the example.
struct Measured {
    name: &'static str,
    /// The argument of `neap-load release`.
    what: &'static str,
    lines: &'static [Line],
}

const EXAMPLE: [Line; 2] = [
    Line::new("accepted", "examples/release applied to accepted", "s").asked(Limit(60.0)),
    Line::new("accepted worst", "the same, the slowest", "s"),
];

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

impl Figure for Measured {
    fn name(&self) -> &'static str {
        self.name
    }

    fn measure(&self, subjects: &Subjects) -> Result<Vec<Row>> {
        let mut command = subjects.ours.load();
        command.args(["release", self.what]);
        let figures: Value = serde_json::from_str(&process::output(&mut command)?)?;
        let lines = self.lines.iter();
        lines.map(|line| line.row(&figures, None)).collect()
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
    fn a_release_after_more_than_a_minute_is_too_late() {
        for (accepted, holds) in [(12.5, true), (60.5, false)] {
            let figures = json!({"accepted": accepted, "accepted worst": accepted});
            let row = EXAMPLE[0].row(&figures, None).unwrap();
            assert_eq!(row.holds(), Some(holds));
        }
    }

    #[test]
    fn one_write_in_quiet_minutes_is_too_many() {
        for (writes, holds) in [(0, true), (1, false)] {
            let row = WRITES.row(&json!({"writes": writes}), None).unwrap();
            assert_eq!(row.holds(), Some(holds));
        }
    }
}
