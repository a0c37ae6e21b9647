//! Figures of the operator of farms, beside many of them.

use super::{
    Figure,
    loaded::Line,
    row::{Requirement::Limit, Row},
};
use crate::process;

pub(super) fn figures() -> Vec<Box<dyn Figure>> {
    vec![Box::new(Operator)]
}

/// The operator in a process of its own, beside 200 farms of five resources and their pods.
struct Operator;

const LINES: [Line; 8] = [
    Line::new(
        "ready",
        "200 farms of 5 resources, from the first until all are ready",
        "s",
    )
    .asked(Limit(20.0)),
    Line::new("writes", "writes of the operator for a farm", ""),
    Line::new("objects", "objects of a farm", ""),
    Line::new(
        "writes beyond",
        "writes beyond objects + 2 per resource",
        "",
    )
    .asked(Limit(0.0)),
    Line::new(
        "resident",
        "memory of the operator beside them and their pods",
        "MB",
    )
    .scaled(1e-6)
    .asked(Limit(80.0)),
    Line::new("peak", "its peak", "MB").scaled(1e-6),
    Line::new("empty", "its memory without a farm", "MB").scaled(1e-6),
    Line::new("writes at rest", "writes in a minute of rest", "").asked(Limit(0.0)),
];

impl Figure for Operator {
    fn name(&self) -> &'static str {
        "200 farms of five resources"
    }

    fn measure(&self, subjects: &super::Subjects) -> anyhow::Result<Vec<Row>> {
        let mut command = subjects.ours.load();
        let figures = process::output(command.arg("farm"))?;
        let figures = serde_json::from_str(&figures)?;
        LINES.iter().map(|line| line.row(&figures, None)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fewer_writes_than_allowed_hold_and_more_do_not() {
        let line = LINES
            .iter()
            .find(|line| line.of(&json!({"writes beyond": 1.0})).is_ok());
        for (beyond, holds) in [(-3.0, true), (0.0, true), (0.2, false)] {
            let row = line.unwrap().row(&json!({"writes beyond": beyond}), None);
            assert_eq!(row.unwrap().holds(), Some(holds));
        }
    }
}
