//! Which function carries a command out.

use std::io;

use crate::{
    cli::Command, completion, exit::Failure, inspect, manual, sample, symbols::Symbols, up, version,
};

/// Carries a command out.
pub(crate) fn run(command: Command, symbols: Symbols) -> Result<(), Failure> {
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
