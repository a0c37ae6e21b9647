//! Figures of a provider of clusters, beside a bare handler and the benchmark of its database.
//!
//! `neap-load fleet` measures a figure and its peer in one run, and says whose each is.

use anyhow::{Context, Result};
use serde_json::{Map, Value};

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
struct Fleet {
    name: &'static str,
    /// The argument of `neap-load fleet`.
    what: &'static str,
    /// The name of the peer.
    peer: Option<&'static str>,
    lines: &'static [Line],
}

pub(super) fn figures() -> Vec<Box<dyn Figure>> {
    ALL.into_iter()
        .map(|figure| Box::new(figure) as Box<dyn Figure>)
        .collect()
}

const ALL: [Fleet; 7] = [
    Fleet {
        name: "GET of a cluster on SQLite",
        what: "sqlite",
        peer: Some("bare"),
        lines: &SQLITE,
    },
    Fleet {
        name: "GET of a cluster on PostgreSQL",
        what: "postgresql",
        peer: Some("pgbench"),
        lines: &POSTGRESQL,
    },
    Fleet {
        name: "PUT of distinct clusters",
        what: "writes",
        peer: Some("pgbench"),
        lines: &WRITES,
    },
    Fleet {
        name: "take-over of a killed backend",
        what: "takeover",
        peer: None,
        lines: &TAKEOVER,
    },
    Fleet {
        name: "writes of a step",
        what: "steps",
        peer: None,
        lines: &STEPS,
    },
    Fleet {
        name: "10 000 clusters",
        what: "many",
        peer: None,
        lines: &MANY,
    },
    Fleet {
        name: "50 installed clusters",
        what: "installed",
        peer: None,
        lines: &INSTALLED,
    },
];

const SQLITE: [Line; 1] = [Line::rate(
    "gets per CPU second",
    "GET on SQLite; beside it, a bare handler",
)
.counted_in("/CPU s")
.asked(Times(0.4))];

const POSTGRESQL: [Line; 1] = [Line::rate(
    "gets per CPU second",
    "GET on PostgreSQL; beside it, pgbench -S",
)
.counted_in("/CPU s")
.asked(Times(0.3))];

const WRITES: [Line; 1] = [Line::new(
    "p99 of a put",
    "PUT, 16 connections, p99; beside it, pgbench",
    "ms",
)
.asked(Times(1.0 / 3.0))];

const TAKEOVER: [Line; 2] = [
    Line::new("longest", "take-over after kill -9, longest of 20", "s")
        .scaled(0.001)
        .asked(Limit(15.0)),
    Line::new("median", "the same, median", "s").scaled(0.001),
];

const STEPS: [Line; 3] = [
    Line::new(
        "writes per step",
        "durable writes of the engine per step",
        "",
    )
    .asked(Limit(2.5)),
    Line::new(
        "all writes per step",
        "all durable writes per step, with leases",
        "",
    ),
    Line::new("steps", "steps of an installation that are not skipped", ""),
];

const MANY: [Line; 2] = [
    Line::new("p99 of a page", "10 000 clusters, list page, p99", "ms").asked(Limit(20.0)),
    Line::new("memory", "the same, memory of the provider", "MB")
        .scaled(1e-6)
        .asked(Limit(120.0)),
];

const INSTALLED: [Line; 4] = [
    Line::new(
        "first",
        "create to Succeeded in neap up, first cluster",
        "s",
    )
    .scaled(0.001)
    .asked(Limit(10.0)),
    Line::new("slowest", "the same, slowest of the next nine", "s")
        .scaled(0.001)
        .asked(Limit(10.0)),
    Line::new("memory of few", "memory of neap up, 10 clusters used", "MB").scaled(1e-6),
    Line::new(
        "memory per cluster",
        "its growth per cluster, 10 to 50",
        "MB",
    )
    .scaled(1e-6)
    .asked(Limit(8.0)),
];

impl Figure for Fleet {
    fn name(&self) -> &'static str {
        self.name
    }

    fn measure(&self, subjects: &Subjects) -> Result<Vec<Row>> {
        let mut command = subjects.ours.load();
        command.args(["fleet", self.what]);
        for (name, path) in &subjects.programs {
            command.arg(format!("--{name}")).arg(path);
        }
        if !subjects.has_peers {
            command.arg("--no-peer");
        }
        let all: Map<String, Value> = serde_json::from_str(&process::output(&mut command)?)?;
        let ours = all.get("ours").context("nothing of ours was measured")?;
        let peer = self.peer.and_then(|name| all.get(name));
        let lines = self.lines.iter();
        lines.map(|line| line.row(ours, peer)).collect()
    }
}
