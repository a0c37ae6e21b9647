//! `neap idle`: commands about services that sleep, and the operator and resolver processes.

mod change;
mod cluster_scope;
mod list;
mod plan;
mod process;
mod report;
mod show;
mod table;
mod uninstall;

use std::io::Write;

use crate::{cli::IdleCommand, exit::Failure, inspect::block_on, symbols::Symbols};

/// Runs the command.
pub(crate) fn run(
    command: IdleCommand,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    match command {
        IdleCommand::List(options) => block_on(list::run(&options, out)),
        IdleCommand::Show(options) => block_on(show::run(&options, symbols, out)),
        IdleCommand::Plan(options) => block_on(plan::run(&options, symbols, out)),
        IdleCommand::Wake(options) => block_on(change::wake(&options, symbols, out)),
        IdleCommand::Sleep(options) => block_on(change::sleep(&options, symbols, out)),
        IdleCommand::KeepAwake(options) => block_on(change::keep_awake(&options, symbols, out)),
        IdleCommand::Report(options) => block_on(report::run(&options, out)),
        IdleCommand::Uninstall(options) => block_on(uninstall::run(&options, symbols, out)),
        IdleCommand::Operator { words } => process::operator(words),
        IdleCommand::Resolver => process::resolver(),
    }
}
