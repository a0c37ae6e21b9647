//! What the system grants the test: open files, and a place behind others.

use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};

/// Room for so many connections at this end; why not, if that cannot be had. The server is a process
/// of its own, and raises its own limit.
pub(crate) fn raise_open_files(connections: u64) -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = connections + 200;
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|most| most < wanted) {
        return Err(format!("{wanted} open files are not allowed here"));
    }
    let raised = Rlimit {
        current: Some(wanted),
        ..limit
    };
    setrlimit(Resource::Nofile, raised).map_err(|error| error.to_string())
}

/// Lets others run first. On Linux this is about the calling thread alone.
pub(crate) fn stand_back() {
    // Without it the test is only harder to pass.
    let _ = nice(19);
}
