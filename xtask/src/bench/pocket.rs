//! Figures of the embedded API server.

use std::fs;

use anyhow::{Context, Result};

use super::{
    Asked, Figure, Row,
    loaded::{Line, Loaded},
    up::Up,
};
use crate::load::Built;

/// An odd number, so that there is a middle one.
const STARTS: usize = 9;

pub(super) fn figures() -> Vec<Box<dyn Figure>> {
    vec![
        Box::new(Start),
        Box::new(Idle),
        Box::new(Loaded {
            name: "memory per object",
            arguments: &["memory", "--objects", "50000"],
            lines: &MEMORY,
        }),
        Box::new(Loaded {
            name: "creates and gets",
            arguments: &["throughput", "--objects", "20000"],
            lines: &THROUGHPUT,
        }),
        Box::new(Loaded {
            name: "from a definition to its resource",
            arguments: &["definition"],
            lines: &DEFINITION,
        }),
        Box::new(Loaded {
            name: "start after a million writes; takes some minutes",
            arguments: &["restart", "--objects", "50000", "--writes", "1000000"],
            lines: &RESTART,
        }),
    ]
}

const MEMORY: [Line; 2] = [
    Line::new("memory per object", "memory per ConfigMap, of 50 000", "KB")
        .scaled(0.001)
        .asked(Asked::AtMost(2.5)),
    Line::new(
        "bytes of an object",
        "size of such a ConfigMap as JSON",
        "KB",
    )
    .scaled(0.001),
];

const THROUGHPUT: [Line; 6] = [
    Line::new("creates", "durable creates, 16 connections", "/s"),
    Line::new("create p50", "durable create, half of them within", "ms"),
    Line::new("create p99", "durable create, 99 of 100 within", "ms"),
    Line::new("gets", "gets, 16 connections", "/s"),
    Line::new("get p50", "get, half of them within", "ms"),
    Line::new("get p99", "get, 99 of 100 within", "ms"),
];

const DEFINITION: [Line; 1] = [
    Line::new("definition", "definition to served and described", "ms").asked(Asked::AtMost(10.0)),
];

const RESTART: [Line; 4] = [
    Line::new(
        "start",
        "start with 50 000 objects after 1 000 000 writes",
        "ms",
    )
    .asked(Asked::AtMost(500.0)),
    Line::new(
        "updates",
        "durable updates of 50 000 objects, 16 connections",
        "/s",
    ),
    Line::new("update p99", "durable update, 99 of 100 within", "ms"),
    Line::new(
        "update worst",
        "durable update, the slowest of 950 000",
        "ms",
    ),
];

/// From starting the process to its word that it is ready; the median of some.
struct Start;

impl Figure for Start {
    fn name(&self) -> &'static str {
        "neap up, start to ready"
    }

    fn measure(&self, subject: &Built) -> Result<Vec<Row>> {
        let starts = (0..STARTS).map(|_| {
            let up = Up::start(&subject.neap)?;
            Ok(up.ready_after().as_secs_f64() * 1000.0)
        });
        let mut starts = starts.collect::<Result<Vec<f64>>>()?;
        starts.sort_by(f64::total_cmp);
        Ok(vec![Row {
            figure: self.name(),
            unit: "ms",
            ours: starts[STARTS / 2],
            peer: None,
            asked: Asked::AtMost(100.0),
        }])
    }
}

/// Memory that a server holds after its start, before the first request.
struct Idle;

impl Figure for Idle {
    fn name(&self) -> &'static str {
        "neap up, resident memory when idle"
    }

    fn measure(&self, subject: &Built) -> Result<Vec<Row>> {
        let up = Up::start(&subject.neap)?;
        let status = fs::read_to_string(format!("/proc/{}/status", up.id()))
            .context("memory is measured on Linux only")?;
        Ok(vec![Row {
            figure: self.name(),
            unit: "MB",
            ours: resident_megabytes(&status).context("no VmRSS")?,
            peer: None,
            asked: Asked::AtMost(40.0),
        }])
    }
}

fn resident_megabytes(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024.0 / 1_000_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_status() {
        let status = "Name:\tneap\nVmRSS:\t   15625 kB\nThreads:\t3\n";
        assert_eq!(resident_megabytes(status), Some(16.0));
        assert_eq!(resident_megabytes("Name:\tneap\n"), None);
    }
}
