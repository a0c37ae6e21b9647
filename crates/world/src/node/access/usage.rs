//! How much of the machine is used, and by which container.

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
    family::{self, Told},
    process::Running,
};

/// What was seen of the machine's processes holds for this long: whoever asks for many pods at once
/// is told of all of them by one look.
const FRESH: Duration = Duration::from_millis(200);
/// What is used between two looks that are closer than this means little.
const SHORTEST: Duration = Duration::from_secs(1);

/// What is used now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Which container; empty for the node.
    pub container: String,
    /// Processor time in millionths of a core, over the time since the last look.
    pub cpu_micros: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// Remembers what was used, to tell how fast.
#[derive(Debug)]
pub(in crate::node) struct Meter {
    clock: Clock,
    /// By the number of a launcher and when it began; that of the machine is nobody's.
    looks: Mutex<HashMap<(u32, u64), Rate>>,
    /// The last look at all processes.
    seen: Mutex<Option<(Uptime, Arc<Everybody>)>>,
}

type Everybody = BTreeMap<u32, Told>;

impl Meter {
    pub(in crate::node) fn new(clock: Clock) -> Self {
        let meter = Self {
            clock,
            looks: Mutex::default(),
            seen: Mutex::default(),
        };
        // The first question is about the time since now.
        meter.rate((0, 0), machine_ticks(), Duration::ZERO);
        meter
    }

    /// What a container uses; nothing if it has ended.
    pub(in crate::node) fn of(&self, container: &str, running: &Running) -> Option<Usage> {
        let launcher = running.id()?;
        let all = self.everybody(launcher);
        let began = all.get(&launcher)?.began;
        let mut family = family::below_in(&all, launcher);
        let worked = family.iter().map(|process| all[process].worked).sum();
        if running.has_rooms() {
            // Its first process is ours as well, and holds no memory of the container's.
            family.retain(|process| all[process].parent != launcher);
        }
        let pages: u64 = family.iter().map(|process| all[process].pages).sum();
        let uptime = machine_uptime().unwrap_or_default();
        let age = uptime.saturating_sub(Duration::from_secs_f64(began as f64 / ticks() as f64));
        Some(Usage {
            container: container.to_owned(),
            cpu_micros: self.rate((launcher, began), worked, age),
            memory_bytes: pages * page(),
        })
    }

    /// What the whole machine uses.
    pub(in crate::node) fn of_machine(&self) -> Usage {
        Usage {
            container: String::new(),
            cpu_micros: self.rate((0, 0), machine_ticks(), Duration::ZERO),
            memory_bytes: machine_memory(),
        }
    }

    /// Everybody, as seen a moment ago if `process` was there by then. Whoever is no longer there is
    /// forgotten.
    fn everybody(&self, process: u32) -> Arc<Everybody> {
        let now = self.clock.uptime();
        let mut seen = self.seen.lock();
        if let Some((at, all)) = &*seen
            && now.saturating_sub(*at) < FRESH
            && all.contains_key(&process)
        {
            return all.clone();
        }
        let all = Arc::new(family::everybody());
        let is_there = |process, began| {
            process == 0 || all.get(&process).is_some_and(|told| told.began == began)
        };
        self.looks
            .lock()
            .retain(|&(process, began), _| is_there(process, began));
        *seen = Some((now, all.clone()));
        all
    }

    fn rate(&self, who: (u32, u64), worked: u64, age: Duration) -> u64 {
        let now = self.clock.uptime();
        let mut looks = self.looks.lock();
        let rate = looks.entry(who).or_insert(Rate {
            at: now,
            worked,
            micros: micros(worked, age),
        });
        rate.look(now, worked);
        rate.micros
    }
}

/// How fast somebody works.
#[derive(Debug, Clone, Copy)]
struct Rate {
    at: Uptime,
    worked: u64,
    micros: u64,
}

impl Rate {
    fn look(&mut self, now: Uptime, worked: u64) {
        let passed = now.saturating_sub(self.at);
        if passed >= SHORTEST {
            self.micros = micros(worked.saturating_sub(self.worked), passed);
            (self.at, self.worked) = (now, worked);
        }
    }
}

/// Ticks in a time, in millionths of a core.
fn micros(worked: u64, time: Duration) -> u64 {
    let time = time.as_micros().max(1);
    let worked = u128::from(worked) * 1_000_000 / u128::from(ticks());
    u64::try_from(worked * 1_000_000 / time).unwrap_or(0)
}

/// How many ticks a second has.
fn ticks() -> u64 {
    system(SysconfVar::CLK_TCK, 100)
}

fn page() -> u64 {
    system(SysconfVar::PAGE_SIZE, 4096)
}

fn system(value: SysconfVar, usual: u64) -> u64 {
    let found = sysconf(value).ok().flatten();
    let found = found.and_then(|found| u64::try_from(found).ok());
    found.filter(|found| *found > 0).unwrap_or(usual)
}

/// How long the machine has been running.
fn machine_uptime() -> Option<Duration> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    let seconds = text.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Ticks that all processors have worked: all but the fourth and fifth number, which are idleness.
fn machine_ticks() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    let numbers = first.split_whitespace().skip(1).take(8).enumerate();
    let worked = numbers.filter(|(at, _)| !matches!(at, 3 | 4));
    worked
        .filter_map(|(_, number)| number.parse::<u64>().ok())
        .sum()
}

/// What is not available of the machine's memory.
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
    fn work_is_told_as_a_share_of_a_core() {
        let second = Duration::from_secs(1);
        assert_eq!(micros(ticks(), second), 1_000_000);
        assert_eq!(micros(ticks() / 2, 2 * second), 250_000);
        let mut rate = Rate {
            at: second,
            worked: 10,
            micros: 7,
        };
        rate.look(second + second / 2, 10 + ticks());
        assert_eq!(rate.micros, 7, "too early to tell");
        rate.look(3 * second, 10 + ticks());
        assert_eq!(rate.micros, 500_000);
    }

    #[tokio::test(start_paused = true)]
    async fn one_look_serves_all_who_ask_at_once() {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let meter = Meter::new(clock);
        let own = std::process::id();
        let first = meter.everybody(own);
        assert!(Arc::ptr_eq(&first, &meter.everybody(own)));
        // Somebody who was not there yet is looked for.
        let nobody = u32::MAX;
        let again = meter.everybody(nobody);
        assert!(!Arc::ptr_eq(&first, &again));
        clock.sleep(FRESH).await;
        assert!(!Arc::ptr_eq(&again, &meter.everybody(own)));
    }

    #[tokio::test]
    async fn a_machine_uses_memory() {
        let usage = Meter::new(Clock::system()).of_machine();
        assert!(usage.memory_bytes > 1 << 20, "{usage:?}");
    }
}
