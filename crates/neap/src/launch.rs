//! `neap launch`: runs one process of a container. Its output belongs to the container, so the only
//! message of its own is the error that prevented the start.

use std::{io::Write, path::Path, process::ExitCode};

use neap_world::node::launch;

use crate::exit::chain;

pub(crate) fn run(description: &Path) -> ExitCode {
    let error = match launch::run(description) {
        Ok(code) => return code,
        Err(error) => error,
    };
    let _ = writeln!(std::io::stderr(), "neap: {}", chain(&error));
    launch::not_started()
}
