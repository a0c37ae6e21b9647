//! What connections may take of the system: files, and memory for what is on its way.

use std::os::fd::AsFd;

use rustix::{
    net::sockopt::set_socket_send_buffer_size,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// What the system keeps of an answer that a client has not taken. It would keep megabytes, which
/// a thousand clients who never read turn into all that it has for connections.
const UNTAKEN: usize = 256 << 10;

/// Takes as many as the system grants. What is granted without asking is made for programs that
/// cannot have many, which does not hold for this one.
pub(crate) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

/// Connections that are accepted by `listener` keep little that was not taken.
pub(super) fn bound_send_buffers(listener: impl AsFd) {
    if let Err(error) = set_socket_send_buffer_size(listener, UNTAKEN) {
        tracing::debug!(%error, "the send buffers stay as they are");
    }
}
