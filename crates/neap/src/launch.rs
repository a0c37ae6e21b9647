//! One process of a container. What it prints is the container's, so it says nothing but why it
//! could not be started.

use std::{error::Error as _, io::Write, path::Path, process::ExitCode};

use neap_world::node::launch;

pub(crate) fn run(description: &Path) -> ExitCode {
    let error = match launch::run(description) {
        Ok(code) => return code,
        Err(error) => error,
    };
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    let _ = writeln!(std::io::stderr(), "neap: {text}");
    launch::not_started()
}
