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

/// Descriptors that connections may not use: those of the store, of pods and their logs, of listeners.
/// The store needs a few at any moment, or no write is possible.
const RESERVED_FILES: u64 = 512;
/// Connections to the API server, at most, however many files may be open.
const MAX_API_CONNECTIONS: u64 = 20_000;

/// Connections to the API server of an installed cluster, at least: its clients wait for each other if the
/// process may open few files.
const MIN_CLUSTER_CONNECTIONS: usize = 16;

/// How many connections there may be at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    /// To the API server.
    pub(super) api: usize,
    /// Through service addresses; each takes two descriptors.
    pub(super) proxy: usize,
    /// To the API servers of all installed clusters together.
    clusters: usize,
}

impl ConnectionLimits {
    /// Those that fit the limit on open files.
    pub(crate) fn of_process() -> Self {
        Self::within(getrlimit(Resource::Nofile).current)
    }

    /// Half of the files that are not reserved are for service addresses, a quarter is for the API
    /// server, an eighth for installed clusters, and the rest for the resolver and for what API connections
    /// open.
    fn within(files: Option<u64>) -> Self {
        let files = files.unwrap_or(u64::MAX);
        let free = files.saturating_sub(RESERVED_FILES.min(files / 2));
        let count = |share: u64| usize::try_from(share.max(1)).unwrap_or(usize::MAX);
        Self {
            api: count((free / 4).min(MAX_API_CONNECTIONS)),
            proxy: count(free / 4),
            clusters: count(free / 8),
        }
    }

    /// Connections to the API server of one of `clusters` installed clusters.
    pub(crate) fn of_cluster(self, clusters: usize) -> usize {
        (self.clusters / clusters.max(1)).max(MIN_CLUSTER_CONNECTIONS)
    }
}

/// Bounds the send buffers of the connections that `listener` accepts.
pub(super) fn bound_send_buffers(listener: impl AsFd) {
    if let Err(error) = set_socket_send_buffer_size(listener, SEND_BUFFER_BYTES) {
        tracing::debug!(%error, "cannot bound the send buffers");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_store() {
        for (files, api, proxy, clusters) in [
            (Some(0), 1, 1, 1),
            (Some(256), 32, 32, 16),
            (Some(1024), 128, 128, 64),
            (Some(4096), 896, 896, 448),
            (Some(1 << 20), 20_000, 262_016, 131_008),
        ] {
            let limits = ConnectionLimits::within(files);
            let expected = ConnectionLimits {
                api,
                proxy,
                clusters,
            };
            assert_eq!(limits, expected, "{files:?}");
        }
        assert_eq!(ConnectionLimits::within(None).api, 20_000);
    }

    #[test]
    fn clusters_share_their_connections() {
        let limits = |files| ConnectionLimits::within(Some(files));
        assert_eq!(limits(1 << 20).of_cluster(100), 1310);
        assert_eq!(limits(1 << 20).of_cluster(0), 131_008);
        assert_eq!(limits(1024).of_cluster(100), 16, "few, and not none");
    }
}
