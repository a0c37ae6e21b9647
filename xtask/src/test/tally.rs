//! Counts tests from what `cargo test` prints.

/// What became of the tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: usize,
    /// By name.
    pub(super) failed: Vec<String>,
    /// Name and reason.
    pub(super) skipped: Vec<String>,
}

impl Tally {
    /// Takes in a line of the form `test name ... outcome`; others say nothing new.
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

    /// Takes in the lines `SKIPPED name: reason` that tests write when a client is missing. Such a
    /// test has returned and was counted as passed, which it did not.
    pub(super) fn add_skips(&mut self, text: &str) {
        for skip in text
            .lines()
            .filter_map(|line| line.strip_prefix("SKIPPED "))
        {
            self.skipped.push(skip.to_owned());
            self.passed = self.passed.saturating_sub(1);
        }
    }
}

/// Name and outcome of a test, if that is what the line tells.
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
