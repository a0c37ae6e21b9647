//! `neap manual`: the manual pages of all commands, for packages.

use std::path::Path;

use clap::CommandFactory;

use crate::{
    cli::Cli,
    exit::{Exit, Failure},
};

/// Writes a page for each command that help lists.
pub(crate) fn write(folder: &Path) -> Result<(), Failure> {
    clap_mangen::generate_to(Cli::command(), folder).map_err(|error| {
        let what = format!("cannot write manual pages to {}", folder.display());
        Failure::new("NT-CLI-0020", Exit::Failed, &what, &error.to_string())
            .remedy("name an existing folder that you can write")
    })
}
