//! `neap`: the one binary of Neaptide.
//!
//! Composition only; no logic. It may depend on every other crate of the workspace, and none of
//! them on it. The invariant it keeps: whatever way it ends, the exit code says how (see
//! [`exit::Exit`]) and a private folder is gone.

mod ask;
mod cli;
mod completion;
mod environment;
mod exit;
mod idle;
mod launch;
mod logging;
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

fn main() -> ExitCode {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    // Refused only if a provider is there already, which is just as good.
    let _ = provider.install_default();

    let cli = Cli::parse();
    if let Command::Launch { description } = &cli.command {
        return launch::run(description);
    }
    let symbols = Symbols::choose(cli.ascii);
    // What is still to be sent is sent when `exports` goes.
    let done = logging::start(cli.verbose, &cli.command).and_then(|exports| {
        let done = run(cli.command, symbols);
        drop(exports);
        done
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // With stderr gone there is nobody left to tell; the exit code still says it.
            let _ = failure.print(&mut io::stderr().lock(), symbols);
            failure.exit().into()
        }
    }
}

fn run(command: Command, symbols: Symbols) -> Result<(), Failure> {
    match command {
        Command::Up(options) => up::run(options, symbols),
        Command::Ask(question) => ask::run(question, symbols, &mut io::stdout().lock()),
        Command::Idle { command } => idle::run(command, symbols, &mut io::stdout().lock()),
        Command::Sample(sample) => sample::run(sample),
        // Came to its end in `main`: its exit code is that of the container.
        Command::Launch { .. } => Ok(()),
        Command::Version { output } => version::print(output, &mut io::stdout().lock()),
        Command::Completion { shell } => completion::print(shell, &mut io::stdout().lock()),
    }
}
