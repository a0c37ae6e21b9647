//! `neap`: the one binary of Neaptide.
//!
//! Composition only; no logic. It may depend on every other crate of the workspace, and no crate
//! depends on it. Invariants: the exit code reports how the process ended (see [`exit::Exit`]), and
//! a private folder never outlives the process.

mod areas;
mod cli;
mod completion;
mod environment;
mod exit;
mod inspect;
mod launch;
mod logging;
mod manual;
mod sample;
mod symbols;
mod up;
mod version;

use std::{io, process::ExitCode};

use clap::Parser;

use crate::{
    cli::{Cli, Command},
    exit::Failure,
    symbols::Symbols,
};

/// Gives freed memory back to the system: the system's own allocator keeps what a burst of large requests
/// took, one arena for each thread.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    // Fails only if a provider is already installed, which serves as well.
    let _ = provider.install_default();

    let cli = Cli::parse();
    if let Command::Launch { description } = &cli.command {
        return launch::run(description);
    }
    let symbols = Symbols::choose(cli.ascii);
    // Dropping `exports` flushes pending traces and errors.
    let done = logging::start(cli.verbose, &cli.command).and_then(|exports| {
        let done = run(cli.command, symbols);
        drop(exports);
        done
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // If stderr is closed, the exit code still reports the failure.
            let _ = failure.print(&mut io::stderr().lock(), symbols);
            failure.exit().into()
        }
    }
}

fn run(command: Command, symbols: Symbols) -> Result<(), Failure> {
    match command {
        Command::Up(options) => up::run(options, symbols),
        Command::Down(options) => up::background::down(&options, &mut io::stdout().lock()),
        Command::Logs(options) => up::background::logs(&options, &mut io::stdout().lock()),
        Command::Manual { folder } => manual::write(&folder),
        Command::Inspect(command) => inspect::run(command, symbols, &mut io::stdout().lock()),
        Command::Area(command) => command.run(symbols, &mut io::stdout().lock()),
        Command::Demo(command) => inspect::block_on(command.run(symbols, &mut io::stdout().lock())),
        Command::Sample(sample) => sample::run(sample),
        // Handled in `main`, because its exit code is that of the container.
        Command::Launch { .. } => Ok(()),
        Command::Version { output } => version::print(output, &mut io::stdout().lock()),
        Command::Completion { shell } => completion::print(shell, &mut io::stdout().lock()),
    }
}
