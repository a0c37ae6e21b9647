//! `neap`: the one binary of Neaptide.
//!
//! Composition only; no logic. It may depend on every other crate of the workspace, and no crate
//! depends on it. Invariants: the exit code reports how the process ended (see [`exit::Exit`]), and
//! a private folder never outlives the process.

mod allocator;
mod areas;
mod cli;
mod completion;
mod dispatch;
mod environment;
mod exit;
mod inspect;
mod launch;
mod logging;
mod manual;
mod printable;
mod sample;
mod symbols;
mod up;
mod version;

use std::{io, process::ExitCode};

use clap::Parser;

use crate::{
    cli::{Cli, Command},
    symbols::Symbols,
};

/// Gives freed memory back to the system: the system's own allocator keeps what a burst of large requests
/// took, one arena for each thread.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Fails only if a provider is already installed, which serves as well.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();

    let cli = Cli::parse_from(areas::with_verbosity(std::env::args_os()));
    if let Command::Launch { description } = &cli.command {
        return launch::run(description);
    }
    let symbols = Symbols::choose(cli.ascii);
    // Dropping `exports` flushes pending traces and errors.
    let done = logging::start(cli.verbose, &cli.command).and_then(|exports| {
        let done = dispatch::run(cli.command, symbols);
        drop(exports);
        done
    });
    let Err(failure) = done else {
        return ExitCode::SUCCESS;
    };
    // If stderr is closed, the exit code still reports the failure.
    let _ = failure.print(&mut io::stderr().lock(), symbols);
    failure.exit().into()
}
