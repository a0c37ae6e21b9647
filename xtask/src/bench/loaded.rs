//! Figures that `neap-load` measures: it prints them as one JSON object, one row is made of each.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Asked, Figure, Row};
use crate::{load::Built, process};

/// Some figures that are measured together.
pub(super) struct Loaded {
    pub(super) name: &'static str,
    /// What `neap-load measure` is told.
    pub(super) arguments: &'static [&'static str],
    pub(super) lines: &'static [Line],
}

/// How one of the figures is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    key: &'static str,
    figure: &'static str,
    unit: &'static str,
    scale: f64,
    asked: Asked,
}

impl Line {
    /// A figure of which nothing is asked.
    pub(super) const fn new(key: &'static str, figure: &'static str, unit: &'static str) -> Self {
        Self {
            key,
            figure,
            unit,
            scale: 1.0,
            asked: Asked::Nothing,
        }
    }

    /// Shown in a unit this many times as large.
    pub(super) const fn scaled(mut self, scale: f64) -> Self {
        self.scale = scale;
        self
    }

    pub(super) const fn asked(mut self, asked: Asked) -> Self {
        self.asked = asked;
        self
    }

    fn row(&self, figures: &Value) -> Result<Row> {
        let ours = figures[self.key].as_f64();
        Ok(Row {
            figure: self.figure,
            unit: self.unit,
            ours: ours.with_context(|| format!("no {} was measured", self.key))? * self.scale,
            peer: None,
            asked: self.asked,
        })
    }
}

impl Figure for Loaded {
    fn name(&self) -> &'static str {
        self.name
    }

    fn measure(&self, subject: &Built) -> Result<Vec<Row>> {
        let mut command = subject.load();
        let text = process::output(command.arg("measure").args(self.arguments))?;
        let figures: Value = serde_json::from_str(&text)?;
        self.lines.iter().map(|line| line.row(&figures)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_was_not_measured_is_an_error() {
        let line = Line::new("start", "start", "s").scaled(0.001);
        let row = line.row(&serde_json::json!({"start": 500.0})).unwrap();
        assert!((row.ours - 0.5).abs() < 1e-9);
        assert!(line.row(&serde_json::json!({})).is_err());
    }
}
