//! `neap completion`.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{cli::Cli, exit::Failure};

/// Writes the completion script of `shell`.
pub(crate) fn print(shell: Shell, out: &mut dyn Write) -> Result<(), Failure> {
    // The generator panics on a closed pipe, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "neap", &mut script);
    out.write_all(&script)
        .map_err(|error| Failure::output(&error))
}
