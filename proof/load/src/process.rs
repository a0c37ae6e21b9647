//! CPU time and memory of a process and its children, as Linux counts them.

use std::fs;

use anyhow::{Context, Result};

/// Clock ticks per second.
const TICKS: f64 = 100.0;

/// CPU time of a process in seconds, user and system.
pub(crate) fn cpu_seconds(id: u32) -> Result<f64> {
    seconds(id, [11, 12])
}

/// The sum of two fields after the name of the process.
fn seconds(id: u32, at: [usize; 2]) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{id}/stat"))
        .context("work is measured on Linux, of processes that live")?;
    let (_, fields) = text.rsplit_once(") ").context("no stat")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let of = |index: usize| fields.get(index)?.parse::<f64>().ok();
    let ticks = of(at[0]).zip(of(at[1])).context("no times")?;
    Ok((ticks.0 + ticks.1) / TICKS)
}

/// The same for a process and its descendants.
pub(crate) fn cpu_seconds_with_children(id: u32) -> Result<f64> {
    let mut sum = cpu_seconds(id)?;
    for child in children(id)? {
        sum += cpu_seconds_with_children(child)?;
    }
    Ok(sum)
}

/// The same with the descendants that have ended and were waited for.
pub(crate) fn cpu_seconds_of_tree(id: u32) -> Result<f64> {
    let mut sum = cpu_seconds(id)? + reaped_seconds(id)?;
    for child in children(id)? {
        // A child that ends meanwhile is counted with its parent the next time.
        sum += cpu_seconds_of_tree(child).unwrap_or_default();
    }
    Ok(sum)
}

/// CPU time of the children of a process that have ended and were waited for.
pub(crate) fn reaped_seconds(id: u32) -> Result<f64> {
    seconds(id, [13, 14])
}

/// Resident memory.
pub(crate) fn resident_bytes(id: u32) -> Result<u64> {
    status(id, "VmRSS:")
}

/// Peak resident memory since its start, or since [`reset_peak`].
pub(crate) fn peak_bytes(id: u32) -> Result<u64> {
    status(id, "VmHWM:")
}

/// Resets the peak.
pub(crate) fn reset_peak(id: u32) -> Result<()> {
    fs::write(format!("/proc/{id}/clear_refs"), "5").context("peaks are measured on Linux")
}

fn status(id: u32, line: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))
        .context("memory is measured on Linux only")?;
    let found = status.lines().find_map(|found| found.strip_prefix(line));
    let kibibytes = found.and_then(|found| found.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kibibytes.with_context(|| format!("no {line}"))? * 1024)
}

fn children(id: u32) -> Result<Vec<u32>> {
    let mut all = Vec::new();
    for thread in fs::read_dir(format!("/proc/{id}/task"))? {
        // A thread that ends meanwhile leaves no child.
        let text = fs::read_to_string(thread?.path().join("children")).unwrap_or_default();
        all.extend(
            text.split_whitespace()
                .filter_map(|id| id.parse::<u32>().ok()),
        );
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn work_of_children_counts() {
        // The shell waits for its child, which works for a moment and then stays.
        let work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; exec sleep 100";
        let mut shell = Command::new("sh")
            .args(["-c", "sh -c \"$0\"; true", work])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = [0; 4];
        let mut stdout = shell.stdout.take().unwrap();
        std::io::Read::read_exact(&mut stdout, &mut told).unwrap();
        let (alone, all) = (
            cpu_seconds(shell.id()).unwrap(),
            cpu_seconds_with_children(shell.id()).unwrap(),
        );
        let own = children(shell.id()).unwrap();
        for child in &own {
            let _ = Command::new("kill").arg(child.to_string()).status();
        }
        let _ = shell.kill();
        let _ = shell.wait();
        assert_eq!(own.len(), 1);
        assert!(all > alone, "{all} {alone}");
    }
}
