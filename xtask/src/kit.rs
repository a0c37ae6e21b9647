//! `cargo xtask kit`: kit's own tests, as they are, on a real kube-apiserver.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use crate::{process, stopwatch::Stopwatch, test::tally, tools};

/// Most of them wait, now that time passes as it does.
const AT_ONCE: &str = "16";

/// Runs them; false if one fails or none asks the server anything.
pub(crate) fn run(only: &str) -> Result<bool> {
    let reference = tools::reference()?;
    println!("building kit's tests and what starts the server");
    let build = ["build", "--locked", "--quiet", "--package", "neap-load"];
    process::run(process::cargo().args(build))?;
    let test = ["test", "--locked", "--quiet", "--package", "neap-kit"];
    process::run(process::cargo().args(test).args(["--lib", "--no-run"]))?;
    let watch = Stopwatch::start();
    let notes = process::root().join("target/kit-on-a-server");
    fs::write(&notes, "").context("cannot write target/kit-on-a-server")?;
    let mut beside = Command::new(process::root().join("target/debug/neap-load"));
    let mut child = beside
        .arg("beside")
        .arg("--reference")
        .arg(reference)
        .args(["--told-in", "NEAP_KIT_SERVER", "--"])
        .arg(process::cargo().get_program())
        .args(["test", "--locked", "--package", "neap-kit", "--lib", only])
        .args(["--", "--test-threads", AT_ONCE])
        .env("NEAP_KIT_NOTES", &notes)
        .current_dir(process::root())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run neap-load")?;
    let mut suite = Suite::default();
    let stdout = child.stdout.take().context("neap-load has no output")?;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        suite.add(&line);
    }
    let succeeded = child.wait()?.success();
    suite.add_notes(&fs::read_to_string(&notes)?);
    let paused = paused(&process::root().join("crates/kit/src"))?;
    for line in suite.report_lines(&paused) {
        println!("{line}");
    }
    println!("in {watch}");
    Ok(succeeded && suite.holds())
}

/// What became of the tests, and which of them asked the server anything.
#[derive(Debug, Default)]
struct Suite {
    tests: BTreeMap<String, Outcome>,
}

#[derive(Debug, Default)]
struct Outcome {
    passed: bool,
    /// What it sent to the server.
    requests: u64,
}

impl Suite {
    /// Takes in what `cargo test` prints.
    fn add(&mut self, line: &str) {
        if let Some((name, outcome)) = tally::outcome(line) {
            self.tests.entry(name.to_owned()).or_default().passed = outcome == "ok";
        }
    }

    /// Takes in the lines `SERVED name: requests` that tests write, one for each server they open.
    fn add_notes(&mut self, text: &str) {
        let notes = text
            .lines()
            .filter_map(|line| line.strip_prefix("SERVED ")?.rsplit_once(": "));
        for (name, requests) in notes {
            let requests = requests.parse::<u64>().unwrap_or_default();
            self.tests.entry(name.to_owned()).or_default().requests += requests;
        }
    }

    fn holds(&self) -> bool {
        let served = self.tests.values().any(|test| test.requests > 0);
        served && self.tests.values().all(|test| test.passed)
    }

    /// Who ran on the server; and by name who did not, because it makes sense under a `paused`
    /// clock alone, or deals in values alone.
    fn report_lines(&self, paused: &BTreeSet<String>) -> Vec<String> {
        let (mut served, mut virtually, mut values) = (vec![], vec![], vec![]);
        for (name, test) in &self.tests {
            let mark = if test.passed { '✓' } else { '✗' };
            let function = name.rsplit("::").next().unwrap_or(name);
            if test.requests > 0 {
                served.push(format!(" {mark} {name}, requests: {}", test.requests));
            } else if paused.contains(function) {
                virtually.push(format!(" {mark} {name}"));
            } else {
                values.push(format!(" {mark} {name}"));
            }
        }
        let failed = self.tests.values().filter(|test| !test.passed).count();
        let sum = format!(
            "{} ran on the server; {} ask none and live in virtual time, {} in none; {failed} failed",
            served.len(),
            virtually.len(),
            values.len(),
        );
        let mut lines = Vec::new();
        for (title, group) in [
            ("on the real kube-apiserver", served),
            ("in virtual time, without a server", virtually),
            ("on values, without a server", values),
        ] {
            lines.push(title.to_owned());
            lines.extend(group);
        }
        lines.push(sum);
        lines
    }
}

/// The names of tests that begin under a paused clock, by the sources.
fn paused(folder: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(paused(&path)?);
        } else {
            found.extend(paused_in(&fs::read_to_string(path)?));
        }
    }
    Ok(found)
}

fn paused_in(source: &str) -> impl Iterator<Item = String> {
    let tests = source.split("#[tokio::test(start_paused = true)]").skip(1);
    let names = tests.filter_map(|rest| rest.split_once("async fn ")?.1.split_once('('));
    names.map(|(name, _)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(lines: &[&str], notes: &str) -> Suite {
        let mut suite = Suite::default();
        for line in lines {
            suite.add(line);
        }
        suite.add_notes(notes);
        suite
    }

    #[test]
    fn who_asked_the_server_is_told_from_who_did_not() {
        let lines = ["test a::b ... ok", "test a::c ... ok", "test a::d ... ok"];
        let notes = "SERVED a::b: 3\nSERVED a::b: 4\nSERVED a::c: 0\n";
        let suite = suite(&lines, notes);
        assert!(suite.holds());
        let source = "#[tokio::test(start_paused = true)]\nasync fn c() {}\n#[test]\nfn d() {}\n";
        assert_eq!(
            suite.report_lines(&paused_in(source).collect()),
            [
                "on the real kube-apiserver",
                " ✓ a::b, requests: 7",
                "in virtual time, without a server",
                " ✓ a::c",
                "on values, without a server",
                " ✓ a::d",
                "1 ran on the server; 1 ask none and live in virtual time, 1 in none; 0 failed",
            ]
        );
    }

    #[test]
    fn a_run_that_asks_nothing_or_fails_does_not_hold() {
        assert!(!suite(&["test a ... ok"], "").holds());
        assert!(!suite(&["test a ... FAILED"], "SERVED a: 1\n").holds());
        assert!(
            !suite(&["test a ... ok"], "SERVED b: 1\n").holds(),
            "b never ended"
        );
    }
}
