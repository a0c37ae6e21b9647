//! Where the time of the test command went.

use crate::stopwatch::Stopwatch;

/// The parts of a run, each with its time.
pub(super) struct Stages {
    whole: Stopwatch,
    stages: Vec<(&'static str, String)>,
}

impl Stages {
    pub(super) fn start() -> Self {
        Self {
            whole: Stopwatch::start(),
            stages: Vec::new(),
        }
    }

    /// Does `work` and records how long it took.
    pub(super) fn time<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let watch = Stopwatch::start();
        let done = work();
        self.stages.push((name, watch.to_string()));
        done
    }

    pub(super) fn total(&self) -> Stopwatch {
        self.whole
    }

    pub(super) fn print(&self) {
        println!("time");
        for (name, time) in &self.stages {
            println!("   {name:<20} {time:>8}");
        }
    }
}
