//! Runs test executables, two at a time: most of them wait for clocks, processes and sockets at some
//! point, and leave a core to the other.

use std::{
    collections::VecDeque,
    fs::{self, File},
    process::{Command, Stdio},
    sync::Mutex,
    thread,
};

use anyhow::{Context, Result, anyhow};

use super::{Environment, build::Executable, shown, tally::Tally};
use crate::{process, stopwatch::Stopwatch};

/// Executables that run at the same time.
const LANES: usize = 2;

/// Those that take longest, first, so that none of them is left alone at the end.
const LONGEST_FIRST: [&str; 6] = [
    "neap suite",
    "pocket lib",
    "idle lib",
    "world lib",
    "trial suite",
    "pocket suite",
];

/// Runs all of them, prints a line for each and the output of those that failed, and counts.
pub(super) fn run(executables: &[Executable], environment: &Environment) -> Result<Tally> {
    let logs = process::root().join("target/test-logs");
    fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let mut order: Vec<_> = executables.iter().collect();
    let rank = |name: &str| LONGEST_FIRST.iter().position(|first| *first == name);
    order.sort_by_key(|it| rank(&it.name).unwrap_or(LONGEST_FIRST.len()));
    let queue = Mutex::new(VecDeque::from(order));
    let next = || queue.lock().map_or(None, |mut queue| queue.pop_front());
    let lane = || {
        let mut tally = Tally::default();
        while let Some(executable) = next() {
            tally.join(run_one(executable, environment)?);
        }
        Ok::<_, anyhow::Error>(tally)
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        let mut tally = Tally::default();
        for lane in lanes {
            tally.join(lane.join().map_err(|_| anyhow!("a lane panicked"))??);
        }
        Ok(tally)
    })
}

fn run_one(executable: &Executable, environment: &Environment) -> Result<Tally> {
    let Executable { name, path, folder } = executable;
    let log = process::root().join(format!("target/test-logs/{}.log", name.replace(' ', "-")));
    let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let watch = Stopwatch::start();
    let mut command = Command::new(path);
    command
        .current_dir(folder)
        // As cargo sets them for the tests that it runs.
        .env("CARGO_MANIFEST_DIR", folder)
        .env("CARGO", process::cargo().get_program())
        .stdin(Stdio::null())
        .stderr(file.try_clone()?)
        .stdout(file);
    environment.apply(&mut command);
    let status = command
        .status()
        .with_context(|| format!("cannot run {name}"))?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let mut tally = Tally::default();
    text.lines().for_each(|line| tally.add(line));
    if !status.success() && tally.failed.is_empty() {
        tally
            .failed
            .push(format!("{name}: {status} outside of a test"));
    }
    let mark = if tally.holds() { '✓' } else { '✗' };
    let counted = format!("{} passed", tally.passed);
    let output = if tally.holds() { String::new() } else { text };
    // One write, so that the lanes do not mix.
    println!("{output} {mark} {name:<34} {counted:<14} {watch:>8}");
    if !tally.holds() {
        println!("   its output is in {}", shown(&log));
    }
    Ok(tally)
}
