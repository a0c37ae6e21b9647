//! Figures of services that sleep, beside other proxies before the same pod.
//!
//! `neap-load idle` measures all of them in one run, in turn, and says whose each figure is.

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::{
    Figure, Subjects,
    loaded::Line,
    row::{
        Requirement::{Limit, Nothing, Times},
        Row,
    },
};
use crate::process;

/// Some figures that are measured together.
struct Idle {
    name: &'static str,
    /// The arguments of `neap-load idle`.
    what: &'static str,
    lines: &'static [(Line, &'static [&'static str])],
}

/// Proxies that others have made for this.
const CLASSIC: &[&str] = &["nginx", "haproxy"];
/// What wakes services elsewhere.
const GO: &[&str] = &["interceptor", "activator"];
const ALONE: &[&str] = &[];
/// The pod without a proxy in front of it.
const DIRECT: &str = "direct";

pub(super) fn figures() -> Vec<Box<dyn Figure>> {
    ALL.into_iter()
        .map(|figure| Box::new(figure) as Box<dyn Figure>)
        .collect()
}

const ALL: [Idle; 5] = [
    Idle {
        name: "warm path",
        what: "warm",
        lines: &WARM,
    },
    Idle {
        name: "held requests let go",
        what: "held",
        lines: &HELD,
    },
    Idle {
        name: "wakes, also beside a stuck service",
        what: "woken",
        lines: &WOKEN,
    },
    Idle {
        name: "memory of a resolver",
        what: "memory",
        lines: &MEMORY,
    },
    Idle {
        name: "2 000 services that sleep",
        what: "watched",
        lines: &WATCHED,
    },
];

const fn work(key: &'static str, figure: &'static str, unit: &'static str) -> Line {
    Line::rate(key, figure).counted_in(unit)
}

const fn microseconds(key: &'static str, figure: &'static str) -> Line {
    Line::new(key, figure, "µs")
}

const fn milliseconds(key: &'static str, figure: &'static str, limit: f64) -> Line {
    Line::new(key, figure, "ms").asked(Limit(limit))
}

/// At most 1.2 times as long as the better of them.
const NEARLY: f64 = 1.0 / 1.2;

const WARM: [(Line, &[&str]); 10] = [
    (
        work("requests", "warm HTTP/1.1, beside Go", "/CPU s").asked(Times(4.0)),
        GO,
    ),
    (
        work("requests", "warm HTTP/1.1, beside nginx, haproxy", "/CPU s").asked(Times(0.7)),
        CLASSIC,
    ),
    (
        work("megabytes", "warm TCP bytes, beside haproxy", "MB/CPU s").asked(Times(0.8)),
        &["haproxy"],
    ),
    (
        work(
            "connections",
            "warm TCP connections, beside haproxy",
            "/CPU s",
        )
        .asked(Times(0.8)),
        &["haproxy"],
    ),
    (
        microseconds("added p50", "added p50, beside nginx, haproxy").asked(Times(NEARLY)),
        CLASSIC,
    ),
    (
        microseconds("added p50", "added p50, beside Go").asked(Times(1.0)),
        GO,
    ),
    (
        microseconds("added p99", "added p99, beside nginx, haproxy").asked(Times(NEARLY)),
        CLASSIC,
    ),
    (
        microseconds("added p99", "added p99, beside Go").asked(Times(1.0)),
        GO,
    ),
    (
        microseconds("p50", "p50 through ours; beside it, direct").asked(Nothing),
        &[DIRECT],
    ),
    (
        microseconds("p99", "p99 through ours; beside it, direct").asked(Nothing),
        &[DIRECT],
    ),
];

const HELD: [(Line, &[&str]); 6] = [
    (
        milliseconds(
            "p50 of 1",
            "pod ready to first byte there, 1 held, p50",
            5.0,
        ),
        ALONE,
    ),
    (milliseconds("p99 of 1", "the same, p99", 20.0), ALONE),
    (
        milliseconds(
            "p50 of 100",
            "pod ready to first byte there, 100 held, p50",
            5.0,
        ),
        ALONE,
    ),
    (milliseconds("p99 of 100", "the same, p99", 20.0), ALONE),
    (
        milliseconds("last of 1000", "the same, last of 1 000", 100.0),
        ALONE,
    ),
    (
        milliseconds("last of 10000", "the same, last of 10 000", 1000.0),
        ALONE,
    ),
];

const WOKEN: [(Line, &[&str]); 3] = [
    (
        milliseconds("scaled", "first byte in to scale write, p50", 5.0),
        ALONE,
    ),
    (
        Line::new("woken", "first byte in to first byte at the pod, p50", "ms"),
        ALONE,
    ),
    (
        Line::new("stuck", "the same beside 1 000 held for another", "×").asked(Limit(1.1)),
        ALONE,
    ),
];

const MEMORY: [(Line, &[&str]); 2] = [
    (
        Line::new("held", "resolver's memory, 10 000 held", "MB")
            .scaled(1e-6)
            .asked(Limit(256.0)),
        ALONE,
    ),
    (
        Line::new("download", "its growth, download of 1 GiB", "MB")
            .scaled(1e-6)
            .asked(Limit(32.0)),
        ALONE,
    ),
];

const WATCHED: [(Line, &[&str]); 2] = [
    (
        Line::new("memory", "operator's memory, 2 000 services", "MB")
            .scaled(1e-6)
            .asked(Limit(60.0)),
        ALONE,
    ),
    (
        Line::new("writes", "its API writes in a minute of rest", "").asked(Limit(0.0)),
        ALONE,
    ),
];

impl Figure for Idle {
    fn name(&self) -> &'static str {
        self.name
    }

    fn measure(&self, subjects: &Subjects) -> Result<Vec<Row>> {
        let mut command = subjects.ours.load();
        command.args(["idle", self.what]);
        for (name, path) in &subjects.proxies {
            command.arg(format!("--{name}")).arg(path);
        }
        let all = serde_json::from_str(&process::output(&mut command)?)?;
        let all = with_added(all)?;
        let ours = all.get("ours").context("nothing of ours was measured")?;
        let lines = self.lines.iter();
        lines
            .map(|(line, peers)| line.row(ours, best(line, &all, peers).as_ref()))
            .collect()
    }
}

/// What each proxy adds to the time that an answer takes.
fn with_added(mut all: Map<String, Value>) -> Result<Map<String, Value>> {
    let Some(direct) = all.get(DIRECT).cloned() else {
        return Ok(all);
    };
    for (name, figures) in &mut all {
        let figures = figures.as_object_mut();
        let figures = figures.with_context(|| format!("{name} has no figures"))?;
        for (key, added) in [("p50", "added p50"), ("p99", "added p99")] {
            let alone = direct[key]
                .as_f64()
                .context("nothing direct was measured")?;
            let through = figures.get(key).and_then(Value::as_f64);
            let through = through.with_context(|| format!("no {key} of {name} was measured"))?;
            // A proxy cannot add less than nothing, and a ratio needs more than zero.
            figures.insert(added.to_owned(), (through - alone).max(1.0).into());
        }
    }
    Ok(all)
}

/// The figures of the best of those peers that were measured.
fn best(line: &Line, all: &Map<String, Value>, peers: &[&str]) -> Option<Value> {
    let measured = peers.iter().filter_map(|name| all.get(*name));
    let measured = measured.filter_map(|figures| Some((line.of(figures).ok()?, figures)));
    measured
        .reduce(|one, other| {
            if line.is_better(other.0, one.0) {
                other
            } else {
                one
            }
        })
        .map(|(_, figures)| figures.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn all() -> Map<String, Value> {
        let all = json!({
            "direct": {"p50": 40.0, "p99": 90.0},
            "ours": {"requests": 50.0, "p50": 100.0, "p99": 190.0},
            "nginx": {"requests": 60.0, "p50": 90.0, "p99": 290.0},
            "haproxy": {"requests": 40.0, "p50": 80.0, "p99": 390.0},
        });
        with_added(all.as_object().unwrap().clone()).unwrap()
    }

    #[test]
    fn ours_is_held_against_the_best_of_its_peers() {
        let all = all();
        let row = |index: usize| {
            let (line, peers) = &WARM[index];
            line.row(&all["ours"], best(line, &all, peers).as_ref())
                .unwrap()
        };
        let requests = row(1);
        assert_eq!((requests.ours, requests.peer), (50.0, Some(60.0)));
        assert_eq!(requests.holds(), Some(true));
        let (p50, p99) = (row(4), row(6));
        assert_eq!((p50.ours, p50.peer), (60.0, Some(40.0)));
        assert_eq!((p50.holds(), p99.holds()), (Some(false), Some(true)));
        assert_eq!(row(0).holds(), None);
    }
}
