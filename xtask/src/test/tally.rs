//! Counts tests from the output of libtest.

use std::fmt;

/// The outcomes of tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: usize,
    /// By name.
    pub(super) failed: Vec<String>,
    /// Name and reason.
    pub(super) skipped: Vec<String>,
}

impl Tally {
    /// Counts a line of the form `test name ... outcome`; other lines are passed over.
    pub(super) fn add(&mut self, line: &str) {
        let Some((name, outcome)) = outcome(line) else {
            return;
        };
        match outcome {
            "ok" => self.passed += 1,
            "FAILED" => self.failed.push(name.to_owned()),
            _ => {
                if let Some(reason) = outcome.strip_prefix("ignored") {
                    let reason = reason.strip_prefix(", ").unwrap_or("ignored");
                    self.skipped.push(format!("{name}: {reason}"));
                }
            }
        }
    }

    /// Counts the lines `SKIPPED name: reason` that tests write when a client is missing. Such a test
    /// returned without failing, so it was counted as passed before.
    pub(super) fn add_skips(&mut self, text: &str) {
        for skip in text
            .lines()
            .filter_map(|line| line.strip_prefix("SKIPPED "))
        {
            self.skipped.push(skip.to_owned());
            self.passed = self.passed.saturating_sub(1);
        }
    }

    /// Adds the outcomes of other tests.
    pub(super) fn join(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.skipped.extend(other.skipped);
    }

    /// Whether no test failed.
    pub(super) fn holds(&self) -> bool {
        self.failed.is_empty()
    }

    /// Prints what failed and what was skipped by name, and the numbers last.
    pub(super) fn print(&self, took: impl fmt::Display) {
        for name in &self.failed {
            println!(" ✗ {name}");
        }
        for skip in &self.skipped {
            println!(" ! skipped {skip}");
        }
        let (passed, failed, skipped) = (self.passed, self.failed.len(), self.skipped.len());
        println!("{passed} passed, {failed} failed, {skipped} skipped in {took}");
    }
}

/// The name and outcome of a test, if the line has one.
pub(crate) fn outcome(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("test ")?.rsplit_once(" ... ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted_by_name() {
        let mut tally = Tally::default();
        for line in [
            "running 4 tests",
            "test a::b ... ok",
            "test c ... ok",
            "test d ... FAILED",
            "test e ... ignored, needs a cluster",
            "test src/lib.rs - f (line 3) ... ignored",
            "test result: FAILED. 2 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out",
        ] {
            tally.add(line);
        }
        tally.add_skips("SKIPPED c: no kubectl\nnoise\n");
        assert_eq!(
            tally,
            Tally {
                passed: 1,
                failed: vec!["d".into()],
                skipped: vec![
                    "e: needs a cluster".into(),
                    "src/lib.rs - f (line 3): ignored".into(),
                    "c: no kubectl".into()
                ],
            }
        );
    }
}
