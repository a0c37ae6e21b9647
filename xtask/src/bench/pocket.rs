//! Figures of the embedded API server.

use std::fs;

use anyhow::{Context, Result};

use super::{Asked, Figure, Row, Subject, up::Up};

/// An odd number, so that there is a middle one.
const STARTS: usize = 9;

pub(super) fn figures() -> Vec<Box<dyn Figure>> {
    vec![Box::new(Start), Box::new(Idle)]
}

/// From starting the process to its word that it is ready; the median of some.
struct Start;

impl Figure for Start {
    fn name(&self) -> &'static str {
        "neap up, start to ready"
    }

    fn measure(&self, subject: &Subject) -> Result<Row> {
        let starts = (0..STARTS).map(|_| {
            let up = Up::start(&subject.neap)?;
            Ok(up.ready_after().as_secs_f64() * 1000.0)
        });
        let mut starts = starts.collect::<Result<Vec<f64>>>()?;
        starts.sort_by(f64::total_cmp);
        Ok(Row {
            figure: self.name(),
            unit: "ms",
            ours: starts[STARTS / 2],
            peer: None,
            asked: Asked::AtMost(100.0),
        })
    }
}

/// Memory that a server holds after its start, before the first request.
struct Idle;

impl Figure for Idle {
    fn name(&self) -> &'static str {
        "neap up, resident memory when idle"
    }

    fn measure(&self, subject: &Subject) -> Result<Row> {
        let up = Up::start(&subject.neap)?;
        let status = fs::read_to_string(format!("/proc/{}/status", up.id()))
            .context("memory is measured on Linux only")?;
        Ok(Row {
            figure: self.name(),
            unit: "MB",
            ours: resident_megabytes(&status).context("no VmRSS")?,
            peer: None,
            asked: Asked::AtMost(40.0),
        })
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
