//! `cargo xtask check`: what can be said about the project without running it.
//!
//! Each check is a row of [`CHECKS`], prints one line, and is run even if another failed.

mod advisories;
mod dependencies;
mod edges;
mod layout;
mod yanked;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use anyhow::{Context, Result};

use crate::{
    generate, process,
    stopwatch::Stopwatch,
    workspace::{self, Package},
};

/// What a check finds.
#[derive(Debug, Default)]
struct Findings {
    /// What was looked at.
    detail: String,
    /// What is wrong; any makes the check fail.
    problems: Vec<String>,
    /// What could not be found out, or should be known.
    notes: Vec<String>,
}

/// What the checks look at.
struct Project {
    packages: Vec<Package>,
    advisories: Option<PathBuf>,
}

type Check = fn(&Project) -> Result<Findings>;

const CHECKS: [(&str, Check); 10] = [
    ("format", format),
    ("lints", lints),
    ("generated files", generated),
    ("crate arrows", |project| Ok(edges::check(project))),
    ("no mod.rs", layout::no_mod_rs),
    ("file lengths", layout::lengths),
    ("licences", |project| Ok(dependencies::licences(project))),
    ("duplicate versions", |project| {
        Ok(dependencies::duplicates(project))
    }),
    ("yanked versions", yanked::check),
    ("advisories", advisories::check),
];

/// Runs every check; true if all hold.
pub(crate) fn run(advisories: Option<PathBuf>) -> Result<bool> {
    let project = Project {
        packages: workspace::packages()?,
        advisories,
    };
    let mut holds = true;
    for (name, check) in CHECKS {
        let watch = Stopwatch::start();
        progress(&format!(" … {name}"));
        let result = check(&project);
        progress("");
        holds &= report(name, watch, result);
    }
    Ok(holds)
}

fn progress(text: &str) {
    if io::IsTerminal::is_terminal(&io::stderr()) {
        eprint!("\r\x1b[2K{text}");
        // A terminal that cannot be written shows no progress; nothing else depends on it.
        let _ = io::stderr().flush();
    }
}

fn report(name: &str, watch: Stopwatch, result: Result<Findings>) -> bool {
    let findings = result.unwrap_or_else(|error| Findings {
        problems: vec![format!("{error:#}")],
        ..Findings::default()
    });
    let holds = findings.problems.is_empty();
    let mark = match (holds, findings.notes.is_empty()) {
        (true, true) => "✓",
        (true, false) => "!",
        (false, _) => "✗",
    };
    println!(" {mark} {name:<20} {:<52} {watch:>8}", findings.detail);
    for problem in &findings.problems {
        println!("   ✗ {}", problem.replace('\n', "\n     "));
    }
    for note in &findings.notes {
        println!("   ! {note}");
    }
    holds
}

fn format(_: &Project) -> Result<Findings> {
    process::output(process::cargo().args(["fmt", "--all", "--check"]))
        .context("run `cargo fmt --all`")?;
    Ok(Findings::default())
}

fn lints(_: &Project) -> Result<Findings> {
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--quiet",
    ];
    let strict = ["--", "-D", "warnings"];
    process::output(process::cargo().args(clippy).args(strict))?;
    // Mistakes that the trial is tried with are behind a feature that nothing else turns on.
    let package = ["clippy", "--package", "neap-faults", "--features", "seeded"];
    let quiet = ["--locked", "--quiet"];
    process::output(process::cargo().args(package).args(quiet).args(strict))?;
    Ok(Findings::default())
}

fn generated(_: &Project) -> Result<Findings> {
    generate::run(true).context("run `cargo xtask generate`")?;
    Ok(Findings::default())
}
