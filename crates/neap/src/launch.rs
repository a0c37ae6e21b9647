//! One process of a container. What it prints is the container's, so it says nothing but why it
//! could not be started.

use std::{io::Write, path::Path, process::ExitCode};

use neap_world::node::launch;

pub(crate) fn run(description: &Path) -> ExitCode {
    let error = match launch::run(description) {
        Ok(code) => return code,
        Err(error) => error,
    };
    let _ = writeln!(std::io::stderr(), "neap: {}", error.in_full());
    launch::not_started()
}
