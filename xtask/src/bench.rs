//! `cargo xtask bench`: figures of ours beside those of a peer, and whether they hold.
//!
//! An [`Area`] is a list of figures. A figure is measured in this run, on this machine; where it
//! has a peer, the same client does the same to both, one right after the other, and what is asked
//! is mostly a ratio, so that a slow machine does not fail a figure.

mod farm;
mod fleet;
mod idle;
mod in_process;
mod kit;
mod loaded;
mod pocket;
mod release;
mod release_controllers;
mod report;
mod row;
mod up;

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
};

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::load::Built;
use row::Row;

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Area {
    /// The embedded API server
    Pocket,
    /// A process that watches with kit
    Kit,
    /// All of `neap up`: the API, the controllers and the node
    Up,
    /// Services that sleep
    Idle,
    /// Payloads, imports and ProwJobs
    ReleaseTools,
    /// Streams and verdicts
    Release,
    /// A provider of clusters, and the clusters
    Fleet,
    /// The operator of build farms
    Farm,
}

/// How the rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

/// Whether there is a peer, and which figures are measured.
#[derive(Debug)]
pub(crate) struct Scope {
    /// Measure ours alone; figures that are asked as a ratio are then not judged.
    pub(crate) no_peer: bool,
    /// Only figures whose name has this in it.
    pub(crate) only: Option<String>,
}

/// What is measured, and what it is measured against.
struct Subjects {
    ours: Built,
    /// A real control plane.
    peer: Option<PathBuf>,
    /// Other proxies, by their names.
    proxies: Vec<(&'static str, PathBuf)>,
    /// Programs that a figure needs or compares with, by the flags that name them.
    programs: Vec<(&'static str, PathBuf)>,
    has_peers: bool,
}

impl Subjects {
    /// Ours, and the peers that an area has, unless there are to be none.
    fn new(area: Area, no_peer: bool) -> Result<Self> {
        let ours = match area {
            Area::Idle => Built::as_shipped()?,
            _ => Built::new()?,
        };
        let (mut peer, mut proxies, mut programs) = (None, Vec::new(), Vec::new());
        match area {
            Area::ReleaseTools => programs = crate::tools::registry_programs(!no_peer)?,
            Area::Fleet => {
                programs = crate::tools::postgresql()?;
                programs.push(("kubectl", crate::tools::kubectl()?.path));
            }
            Area::Release | Area::Farm => {}
            _ if no_peer => {}
            Area::Idle => proxies = crate::tools::proxies()?,
            _ => peer = Some(crate::tools::reference()?),
        }
        Ok(Self {
            ours,
            peer,
            proxies,
            programs,
            has_peers: !no_peer,
        })
    }
}

/// Something that can be measured.
trait Figure {
    /// What is measured, in a few words.
    fn name(&self) -> &'static str;
    /// Measures it, and whatever comes to light on the way.
    fn measure(&self, subjects: &Subjects) -> Result<Vec<Row>>;
}

/// Measures an area; true if no row falls short.
pub(crate) fn run(area: Area, output: Output, scope: &Scope) -> Result<bool> {
    let mut figures = match area {
        Area::Pocket => pocket::figures(),
        Area::Kit => kit::figures(),
        Area::Up => up::figures(),
        Area::Idle => idle::figures(),
        Area::ReleaseTools => release::figures(),
        Area::Release => release_controllers::figures(),
        Area::Fleet => fleet::figures(),
        Area::Farm => farm::figures(),
    };
    if let Some(only) = &scope.only {
        figures = chosen(figures, only)?;
    }
    progress("building neap and its peers");
    let subjects = Subjects::new(area, scope.no_peer)?;
    let mut rows = Vec::new();
    for (done, figure) in figures.iter().enumerate() {
        progress(&format!("{}/{} {}", done + 1, figures.len(), figure.name()));
        rows.extend(figure.measure(&subjects)?);
    }
    progress("");
    match output {
        Output::Table => println!("{}", report::table(&rows)),
        Output::Json => println!("{}", report::json(area, &rows)),
    }
    Ok(rows.iter().all(|row| row.holds() != Some(false)))
}

/// The figures whose name has `only` in it. None is an error: nothing would be measured, and nothing
/// fall short.
fn chosen(mut figures: Vec<Box<dyn Figure>>, only: &str) -> Result<Vec<Box<dyn Figure>>> {
    let known: Vec<_> = figures.iter().map(|figure| figure.name()).collect();
    figures.retain(|figure| figure.name().contains(only));
    if figures.is_empty() {
        bail!(
            "no figure has {only:?} in its name; there are: {}",
            known.join(", ")
        );
    }
    Ok(figures)
}

/// One line that is written over on a terminal, and one line per change elsewhere.
fn progress(text: &str) {
    let mut stderr = io::stderr();
    let line = match (stderr.is_terminal(), text) {
        (true, text) => format!("\r\x1b[2K{text}"),
        (false, "") => return,
        (false, text) => format!("{text}\n"),
    };
    // Nothing depends on progress being seen.
    let _ = stderr
        .write_all(line.as_bytes())
        .and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_figure_has_is_an_error_that_names_them_all() {
        let first = pocket::figures()[0].name();
        assert!(!chosen(pocket::figures(), first).unwrap().is_empty());
        let error = chosen(pocket::figures(), "typo!").err().unwrap();
        for figure in pocket::figures() {
            assert!(error.to_string().contains(figure.name()), "{error}");
        }
    }
}
