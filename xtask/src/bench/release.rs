//! Figures of the release tools, beside skopeo where it does the same.

use anyhow::Result;
use serde_json::Value;

use super::{
    Figure, Subjects,
    loaded::Line,
    row::{
        Requirement::{Limit, Times},
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
    /// For lines with a peer: its key, and the key of the peer's figure.
    peers: &'static [(&'static str, &'static str)],
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
        peers: &[
            ("assemble", "skopeo"),
            ("assemble again", "skopeo"),
            ("assemble in neap up", "skopeo in neap up"),
        ],
    },
    Release {
        name: "imports of 5 000 tags",
        what: "imports",
        lines: &IMPORTS,
        peers: &[],
    },
    Release {
        name: "100 000 ProwJobs",
        what: "prow-jobs",
        lines: &PROW_JOBS,
        peers: &[],
    },
];

/// At most three times as long.
const THREE_TIMES: f64 = 1.0 / 3.0;

const ASSEMBLE: [Line; 3] = [
    Line::new(
        "assemble",
        "assemble 200 components in Debian's registry, beside skopeo copy --all of the payload",
        "ms",
    )
    .asked(Times(THREE_TIMES)),
    Line::new(
        "assemble in neap up",
        "the same in the registry of neap up",
        "ms",
    )
    .asked(Times(THREE_TIMES)),
    Line::new(
        "assemble again",
        "in Debian's registry, with --cache, the second time",
        "ms",
    ),
];

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
    let mut peers = serde_json::Map::new();
    for (key, of_peer) in release.peers {
        peers.extend(
            figures
                .get(of_peer)
                .map(|value| ((*key).to_owned(), value.clone())),
        );
    }
    let peers = Value::Object(peers);
    let rows = release.lines.iter().map(|line| {
        let has_peer = peers.get(line.key()).is_some();
        line.row(figures, has_peer.then_some(&peers))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn assembly_may_take_three_times_as_long_as_a_copy() {
        for (ours, skopeo, holds) in [(299.0, 100.0, true), (301.0, 100.0, false)] {
            let figures = json!({
                "assemble": ours, "skopeo": skopeo, "assemble again": 1.0,
                "assemble in neap up": 1.0, "skopeo in neap up": 1.0,
            });
            let rows = rows(&ALL[0], &figures).unwrap();
            assert_eq!(rows[0].holds(), Some(holds));
            assert_eq!(rows[1].holds(), Some(true));
            assert_eq!(rows[2].holds(), None, "only the first time is judged");
        }
        let alone = json!({"assemble": 1.0, "assemble again": 1.0, "assemble in neap up": 1.0});
        for row in rows(&ALL[0], &alone).unwrap() {
            assert_eq!(row.holds(), None, "without a peer nothing is judged");
        }
    }
}
