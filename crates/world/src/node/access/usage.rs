//! The resource usage of the machine and of containers.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    sync::Arc,
    time::Duration,
};

use neap_kit::clock::{Clock, Uptime};
use nix::unistd::{SysconfVar, sysconf};
use parking_lot::Mutex;

use crate::node::{
    process::RunningProcess,
    process_tree::{self, ProcessStat},
};

/// The time for which a snapshot of the machine's processes is reused, so that a request for many
/// pods needs only one.
const SNAPSHOT_TTL: Duration = Duration::from_millis(200);
/// The minimum time between two samples of a CPU rate; a shorter one means little.
const MIN_RATE_INTERVAL: Duration = Duration::from_secs(1);

/// A usage sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// The container; empty for the node.
    pub container: String,
    /// CPU usage in millionths of a core, since the last sample.
    pub cpu_micros: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// Keeps the last samples, from which rates are computed.
#[derive(Debug)]
pub(in crate::node) struct UsageMeter {
    clock: Clock,
    /// Rates by the pid and start time of a launcher; zeros stand for the machine.
    rates: Mutex<HashMap<(u32, u64), CpuRate>>,
    /// The last snapshot of all processes.
    snapshot: Mutex<Option<(Uptime, Arc<ProcessTable>)>>,
}

type ProcessTable = BTreeMap<u32, ProcessStat>;

impl UsageMeter {
    pub(in crate::node) fn new(clock: Clock) -> Self {
        let meter = Self {
            clock,
            rates: Mutex::default(),
            snapshot: Mutex::default(),
        };
        // The first request covers the time since now.
        meter.rate((0, 0), machine_ticks(), Duration::ZERO);
        meter
    }

    /// The usage of a container; none if it has ended.
    pub(in crate::node) fn of(&self, container: &str, running: &RunningProcess) -> Option<Usage> {
        let launcher = running.id()?;
        let all = self.all_processes(launcher);
        let began = all.get(&launcher)?.started;
        let mut tree = process_tree::descendants_in(&all, launcher);
        let cpu_ticks = tree.iter().map(|process| all[process].cpu_ticks).sum();
        if running.has_namespaces() {
            // Its first process is the init of the launcher, whose memory is not the container's.
            tree.retain(|process| all[process].parent != launcher);
        }
        let pages: u64 = tree.iter().map(|process| all[process].pages).sum();
        let uptime = machine_uptime().unwrap_or_default();
        let age = uptime.saturating_sub(Duration::from_secs_f64(began as f64 / ticks() as f64));
        Some(Usage {
            container: container.to_owned(),
            cpu_micros: self.rate((launcher, began), cpu_ticks, age),
            memory_bytes: pages * page(),
        })
    }

    /// The usage of the whole machine.
    pub(in crate::node) fn of_machine(&self) -> Usage {
        Usage {
            container: String::new(),
            cpu_micros: self.rate((0, 0), machine_ticks(), Duration::ZERO),
            memory_bytes: machine_memory(),
        }
    }

    /// All processes, from a recent snapshot if that contains `process`. Rates of processes that
    /// are gone are dropped.
    fn all_processes(&self, process: u32) -> Arc<ProcessTable> {
        let now = self.clock.uptime();
        let mut snapshot = self.snapshot.lock();
        if let Some((at, all)) = &*snapshot
            && now.saturating_sub(*at) < SNAPSHOT_TTL
            && all.contains_key(&process)
        {
            return all.clone();
        }
        let all = Arc::new(process_tree::all_processes());
        let is_same_process = |process, began| {
            process == 0 || all.get(&process).is_some_and(|stat| stat.started == began)
        };
        self.rates
            .lock()
            .retain(|&(process, began), _| is_same_process(process, began));
        *snapshot = Some((now, all.clone()));
        all
    }

    fn rate(&self, of: (u32, u64), cpu_ticks: u64, age: Duration) -> u64 {
        let now = self.clock.uptime();
        let mut rates = self.rates.lock();
        let rate = rates.entry(of).or_insert(CpuRate {
            at: now,
            cpu_ticks,
            micros: micros(cpu_ticks, age),
        });
        rate.sample(now, cpu_ticks);
        rate.micros
    }
}

/// The CPU rate of a process tree or the machine.
#[derive(Debug, Clone, Copy)]
struct CpuRate {
    at: Uptime,
    cpu_ticks: u64,
    micros: u64,
}

impl CpuRate {
    fn sample(&mut self, now: Uptime, cpu_ticks: u64) {
        let passed = now.saturating_sub(self.at);
        if passed >= MIN_RATE_INTERVAL {
            self.micros = micros(cpu_ticks.saturating_sub(self.cpu_ticks), passed);
            (self.at, self.cpu_ticks) = (now, cpu_ticks);
        }
    }
}

/// The rate of ticks per time, in millionths of a core.
fn micros(cpu_ticks: u64, time: Duration) -> u64 {
    let time = time.as_micros().max(1);
    let cpu_ticks = u128::from(cpu_ticks) * 1_000_000 / u128::from(ticks());
    u64::try_from(cpu_ticks * 1_000_000 / time).unwrap_or(0)
}

/// The number of ticks per second.
fn ticks() -> u64 {
    system(SysconfVar::CLK_TCK, 100)
}

fn page() -> u64 {
    system(SysconfVar::PAGE_SIZE, 4096)
}

fn system(value: SysconfVar, default: u64) -> u64 {
    let found = sysconf(value).ok().flatten();
    let found = found.and_then(|found| u64::try_from(found).ok());
    found.filter(|found| *found > 0).unwrap_or(default)
}

/// The uptime of the machine.
fn machine_uptime() -> Option<Duration> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    let seconds = text.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The busy ticks of all processors: the fourth and fifth number are idle time.
fn machine_ticks() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    let numbers = first.split_whitespace().skip(1).take(8).enumerate();
    let cpu_ticks = numbers.filter(|(at, _)| !matches!(at, 3 | 4));
    cpu_ticks
        .filter_map(|(_, number)| number.parse::<u64>().ok())
        .sum()
}

/// The memory of the machine that is not available.
fn machine_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    (kilobytes("MemTotal:").saturating_sub(kilobytes("MemAvailable:"))) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_reported_as_a_share_of_a_core() {
        let second = Duration::from_secs(1);
        assert_eq!(micros(ticks(), second), 1_000_000);
        assert_eq!(micros(ticks() / 2, 2 * second), 250_000);
        let mut rate = CpuRate {
            at: second,
            cpu_ticks: 10,
            micros: 7,
        };
        rate.sample(second + second / 2, 10 + ticks());
        assert_eq!(rate.micros, 7, "too early for a new rate");
        rate.sample(3 * second, 10 + ticks());
        assert_eq!(rate.micros, 500_000);
    }

    #[tokio::test(start_paused = true)]
    async fn one_snapshot_serves_concurrent_requests() {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let meter = UsageMeter::new(clock);
        let own = std::process::id();
        let first = meter.all_processes(own);
        assert!(Arc::ptr_eq(&first, &meter.all_processes(own)));
        // A process that is not in the snapshot causes a new one.
        let missing = u32::MAX;
        let again = meter.all_processes(missing);
        assert!(!Arc::ptr_eq(&first, &again));
        clock.sleep(SNAPSHOT_TTL).await;
        assert!(!Arc::ptr_eq(&again, &meter.all_processes(own)));
    }

    #[tokio::test]
    async fn a_machine_uses_memory() {
        let usage = UsageMeter::new(Clock::system()).of_machine();
        assert!(usage.memory_bytes > 1 << 20, "{usage:?}");
    }
}
