//! Limits of connections: open files and socket buffers.

use std::os::fd::AsFd;

use rustix::{
    net::sockopt::set_socket_send_buffer_size,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// Send buffer of a connection. The default of the operating system is megabytes; a thousand clients
/// that never read would exhaust the socket memory.
const SEND_BUFFER_BYTES: usize = 256 << 10;

/// Raises the soft limit on open files to the hard limit. The soft limit is low for the sake of programs
/// that use `select`, which this one does not.
pub(crate) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "cannot raise the limit on open files");
    }
}

/// Bounds the send buffers of the connections that `listener` accepts.
pub(super) fn bound_send_buffers(listener: impl AsFd) {
    if let Err(error) = set_socket_send_buffer_size(listener, SEND_BUFFER_BYTES) {
        tracing::debug!(%error, "cannot bound the send buffers");
    }
}
