//! `cargo xtask check`: everything that is checked without running the product.
//!
//! Each check is a row of [`CHECKS`], prints one line, and is run even if another failed.

mod advisories;
mod crates;
mod dependencies;
mod layout;
mod modules;
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

/// The result of one check.
#[derive(Debug, Default)]
struct Findings {
    /// What was checked, in a few words.
    detail: String,
    /// Each makes the check fail.
    problems: Vec<String>,
    /// Shown, without failing the check.
    notes: Vec<String>,
}

/// The input of the checks.
struct Project {
    packages: Vec<Package>,
    advisories: Option<PathBuf>,
}

type Check = fn(&Project) -> Result<Findings>;

const CHECKS: [(&str, Check); 11] = [
    ("format", format),
    ("lints", lints),
    ("generated files", generated),
    ("crate dependencies", |project| Ok(crates::check(project))),
    ("module dependencies", modules::check),
    ("no mod.rs", layout::no_mod_rs),
    ("file lengths", layout::lengths),
    ("licences", |project| Ok(dependencies::licences(project))),
    ("duplicate versions", |project| {
        Ok(dependencies::duplicates(project))
    }),
    ("yanked versions", yanked::check),
    ("advisories", advisories::check),
];

/// Runs the checks whose name has `only` in it; true if all hold.
pub(crate) fn run(advisories: Option<PathBuf>, only: &str) -> Result<bool> {
    let project = Project {
        packages: workspace::packages()?,
        advisories,
    };
    let mut holds = true;
    let chosen = CHECKS.iter().filter(|(name, _)| name.contains(only));
    anyhow::ensure!(
        chosen.clone().next().is_some(),
        "no check has {only:?} in its name; there are: {}",
        CHECKS.map(|(name, _)| name).join(", ")
    );
    for (name, check) in chosen {
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

/// One run with every feature, so that the parts behind `otlp`, `sentry`, `seeded`, `reference` and
/// `crowds` are compiled and linted too. What a feature leaves out is compiled by the tests.
fn lints(_: &Project) -> Result<Findings> {
    let clippy = ["clippy", "--workspace", "--all-targets", "--all-features"];
    let strict = ["--locked", "--quiet", "--", "-D", "warnings"];
    process::output(process::cargo().args(clippy).args(strict))?;
    Ok(Findings {
        detail: "every target, every feature".to_owned(),
        ..Findings::default()
    })
}

/// What the inputs say; the definitions, which follow from types, are checked by tests of their crates.
fn generated(_: &Project) -> Result<Findings> {
    generate::check().context("run `cargo xtask generate`")?;
    Ok(Findings::default())
}
