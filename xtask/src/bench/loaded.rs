//! Figures that `neap-load` measures: it prints them as one JSON object, one row is made of each.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{
    Figure, Subjects,
    row::{Better, Requirement, Row},
};
use crate::process;

/// Some figures that are measured together.
pub(super) struct Loaded {
    pub(super) name: &'static str,
    /// The arguments of `neap-load measure`.
    pub(super) arguments: &'static [&'static str],
    /// Whether the peer can be measured in the same way.
    pub(super) has_peer: bool,
    pub(super) lines: &'static [Line],
}

/// How one of the figures is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    key: &'static str,
    figure: &'static str,
    unit: &'static str,
    scale: f64,
    better: Better,
    asked: Requirement,
}

impl Line {
    /// A figure of which less is better, and nothing is asked.
    pub(super) const fn new(key: &'static str, figure: &'static str, unit: &'static str) -> Self {
        Self {
            key,
            figure,
            unit,
            scale: 1.0,
            better: Better::Less,
            asked: Requirement::Nothing,
        }
    }

    /// A figure per second.
    pub(super) const fn rate(key: &'static str, figure: &'static str) -> Self {
        let mut line = Self::new(key, figure, "/s");
        line.better = Better::More;
        line
    }

    /// The same by something else than seconds.
    pub(super) const fn counted_in(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// Shown in a unit this many times as large.
    pub(super) const fn scaled(mut self, scale: f64) -> Self {
        self.scale = scale;
        self
    }

    pub(super) const fn asked(mut self, asked: Requirement) -> Self {
        self.asked = asked;
        self
    }

    /// The name of the figure in what `neap-load` prints.
    pub(super) const fn key(&self) -> &'static str {
        self.key
    }

    /// What was measured of it.
    pub(super) fn of(&self, figures: &Value) -> Result<f64> {
        let figure = figures[self.key].as_f64();
        let figure = figure.with_context(|| format!("no {} was measured", self.key))?;
        Ok(figure * self.scale)
    }

    /// Whether one is better than the other.
    pub(super) fn is_better(&self, one: f64, other: f64) -> bool {
        match self.better {
            Better::Less => one < other,
            Better::More => one > other,
        }
    }

    pub(super) fn row(&self, ours: &Value, peer: Option<&Value>) -> Result<Row> {
        Ok(Row {
            figure: self.figure,
            unit: self.unit,
            better: self.better,
            ours: self.of(ours)?,
            peer: peer.map(|peer| self.of(peer)).transpose()?,
            asked: self.asked,
        })
    }
}

impl Loaded {
    fn figures(&self, subjects: &Subjects, reference: Option<&Path>) -> Result<Value> {
        let mut command = subjects.ours.load();
        command.arg("measure").args(self.arguments);
        if let Some(program) = reference {
            command.arg("--reference").arg(program);
        }
        Ok(serde_json::from_str(&process::output(&mut command)?)?)
    }
}

impl Figure for Loaded {
    fn name(&self) -> &'static str {
        self.name
    }

    fn measure(&self, subjects: &Subjects) -> Result<Vec<Row>> {
        let ours = self.figures(subjects, None)?;
        let peer = subjects.peer.as_deref().filter(|_| self.has_peer);
        let peer = peer.map(|program| self.figures(subjects, Some(program)));
        let peer = peer.transpose()?;
        let lines = self.lines.iter();
        lines.map(|line| line.row(&ours, peer.as_ref())).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_figure_that_was_not_measured_is_an_error() {
        let line = Line::new("start", "start", "s").scaled(0.001);
        let (ours, peer) = (json!({"start": 500.0}), json!({"start": 1500.0}));
        let row = line.row(&ours, Some(&peer)).unwrap();
        assert!((row.ours - 0.5).abs() < 1e-9);
        assert!((row.ratio().unwrap() - 3.0).abs() < 1e-9);
        assert!(line.row(&json!({}), None).is_err());
        assert!(line.row(&ours, Some(&json!({}))).is_err());
    }
}
