//! The figure of a client that shares the server's process, measured by a bench of `neap-pocket`.

use anyhow::{Context, Result};

use super::{
    Figure, Subjects,
    loaded::Line,
    row::{Requirement, Row},
};
use crate::process;

/// Creates by clients that have no socket between them and the server.
pub(super) struct InProcess;

const LINE: Line =
    Line::rate("creates", "create, in-process client").asked(Requirement::Limit(40_000.0));

impl Figure for InProcess {
    fn name(&self) -> &'static str {
        "creates without a socket"
    }

    fn measure(&self, _: &Subjects) -> Result<Vec<Row>> {
        let bench = ["bench", "--locked", "--quiet", "--package", "neap-pocket"];
        let mut command = process::cargo();
        let text = process::output(command.args(bench).args(["--bench", "in_process"]))?;
        let line = text.lines().find(|line| line.starts_with('{'));
        let figures = serde_json::from_str(line.context("the bench has no figures")?)?;
        Ok(vec![LINE.row(&figures, None)?])
    }
}
