//! Open files and scheduling priority of the test.

use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};

/// Raises the limit on open files for this number of connections, or returns why that is not possible.
/// The server is a separate process and raises its own limit.
pub(crate) fn raise_open_files(connections: u64) -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = connections + 200;
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        return Err(format!("the hard limit on open files is below {wanted}"));
    }
    let raised = Rlimit {
        current: Some(wanted),
        ..limit
    };
    setrlimit(Resource::Nofile, raised).map_err(|error| error.to_string())
}

/// Lowers the priority. On Linux this applies only to the calling thread.
pub(crate) fn lower_priority() {
    // If it fails, the test is only harder to pass.
    let _ = nice(19);
}
