//! `cargo xtask bench`: figures of ours beside those of a peer, and whether they hold.
//!
//! An [`Area`] is a list of figures. A figure is measured in this run, on this machine; where it
//! has a peer, what is asked is a ratio to it, so that a slow machine fails nobody.

mod loaded;
mod pocket;
mod report;
mod up;

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use clap::ValueEnum;

use crate::load::Built;

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Area {
    /// The embedded API server
    Pocket,
}

/// How the rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

/// Something that can be measured.
trait Figure {
    /// What is measured, and its unit, in a few words.
    fn name(&self) -> &'static str;
    /// Measures it, and whatever comes to light on the way.
    fn measure(&self, subject: &Built) -> Result<Vec<Row>>;
}

/// A figure that was measured.
#[derive(Debug)]
struct Row {
    figure: &'static str,
    unit: &'static str,
    ours: f64,
    /// The same figure of the peer, if there is one.
    peer: Option<f64>,
    asked: Asked,
}

/// When a row holds.
#[derive(Debug, Clone, Copy)]
enum Asked {
    /// Our figure is at most this.
    AtMost(f64),
    /// Nothing is asked; the figure is there to be known.
    Nothing,
    /// Our figure is at most this share of the peer's, if the peer could be measured.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "no figure with a peer is measured yet")
    )]
    ShareOfPeer(f64),
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.peer.map(|peer| self.ours / peer)
    }

    /// A row whose peer is missing proves nothing, so it does not hold.
    fn holds(&self) -> bool {
        match self.asked {
            Asked::Nothing => true,
            Asked::AtMost(limit) => self.ours <= limit,
            Asked::ShareOfPeer(share) => self.ratio().is_some_and(|ratio| ratio <= share),
        }
    }
}

/// Measures an area; true if every row holds.
pub(crate) fn run(area: Area, output: Output) -> Result<bool> {
    let figures = match area {
        Area::Pocket => pocket::figures(),
    };
    progress("building neap");
    let subject = Built::new()?;
    let mut rows = Vec::new();
    for (done, figure) in figures.iter().enumerate() {
        progress(&format!("{}/{} {}", done + 1, figures.len(), figure.name()));
        rows.extend(figure.measure(&subject)?);
    }
    progress("");
    match output {
        Output::Table => println!("{}", report::table(&rows)),
        Output::Json => println!("{}", report::json(area, &rows)),
    }
    Ok(rows.iter().all(Row::holds))
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
