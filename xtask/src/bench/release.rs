//! Figures of the release tools, beside skopeo where it does the same.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{
    Figure, Subjects,
    loaded::Line,
    row::{
        Asked::{Limit, Times},
        Row,
    },
};
use crate::process;

/// Some figures that are measured together.
struct Release {
    name: &'static str,
    /// The arguments of `neap-load release`.
    what: &'static str,
    lines: &'static [Line],
    /// The key under which the peer's figure is, which is beside the first line.
    peer: Option<&'static str>,
}

pub(super) fn figures() -> Vec<Box<dyn Figure>> {
    ALL.into_iter()
        .map(|figure| Box::new(figure) as Box<dyn Figure>)
        .collect()
}

const ALL: [Release; 3] = [
    Release {
        name: "assembly of 200 components",
        what: "assemble",
        lines: &ASSEMBLE,
        peer: Some("skopeo"),
    },
    Release {
        name: "imports of 5 000 tags",
        what: "imports",
        lines: &IMPORTS,
        peer: None,
    },
    Release {
        name: "100 000 ProwJobs",
        what: "prow-jobs",
        lines: &PROW_JOBS,
        peer: None,
    },
];

/// At most three times as long.
const THREE_TIMES: f64 = 1.0 / 3.0;

const ASSEMBLE: [Line; 1] = [Line::new(
    "assemble",
    "assemble 200 components, beside skopeo copy --all of the payload",
    "ms",
)
.asked(Times(THREE_TIMES))];

const IMPORTS: [Line; 4] = [
    Line::new("work per tag", "CPU per imported tag", "µs"),
    Line::new("requests per tag", "requests per imported tag", ""),
    Line::new("peak", "peak memory, import of 5 000 tags", "MB")
        .scaled(1e-6)
        .asked(Limit(150.0)),
    Line::rate("tags per second", "imported tags"),
];

const PROW_JOBS: [Line; 4] = [
    Line::new("cache", "cache of 100 000 ProwJobs of 8 KiB", "MB")
        .scaled(1e-6)
        .asked(Limit(120.0)),
    Line::new("process", "the whole process with that cache", "MB").scaled(1e-6),
    Line::new("peak", "its peak while it reads them", "MB").scaled(1e-6),
    Line::new("bytes of a ProwJob", "a ProwJob as JSON", "KB").scaled(1e-3),
];

impl Figure for Release {
    fn name(&self) -> &'static str {
        self.name
    }

    fn measure(&self, subjects: &Subjects) -> Result<Vec<Row>> {
        let mut command = subjects.ours.load();
        command.args(["release", self.what]);
        for (name, path) in &subjects.programs {
            command.arg(format!("--{name}")).arg(path);
        }
        let figures: Value = serde_json::from_str(&process::output(&mut command)?)?;
        rows(self, &figures)
    }
}

fn rows(release: &Release, figures: &Value) -> Result<Vec<Row>> {
    let (first, rest) = release.lines.split_first().context("no lines")?;
    let peer = release.peer.and_then(|key| figures.get(key));
    let peer = peer.map(|value| json!({"assemble": value}));
    let mut rows = vec![first.row(figures, peer.as_ref())?];
    for line in rest {
        rows.push(line.row(figures, None)?);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assembly_may_take_three_times_as_long_as_a_copy() {
        for (ours, skopeo, holds) in [(299.0, 100.0, true), (301.0, 100.0, false)] {
            let figures = json!({"assemble": ours, "skopeo": skopeo});
            let row = rows(&ALL[0], &figures).unwrap().remove(0);
            assert_eq!(row.holds(), Some(holds));
        }
        let alone = rows(&ALL[0], &json!({"assemble": 1.0})).unwrap().remove(0);
        assert_eq!(alone.holds(), None, "without a peer nothing is judged");
    }
}
