//! Derives the protocol of a port from its `appProtocol` or its name.

use crate::api::Protocol;

/// By `appProtocol`, such as `http`, `kubernetes.io/h2c` or `https`.
pub(super) fn by_app_protocol(app_protocol: &str) -> Option<Protocol> {
    let name = app_protocol.to_ascii_lowercase();
    let name = name.strip_prefix("kubernetes.io/").unwrap_or(&name);
    known(name)
}

/// By the name of a port: the part before the first dash, as in `http-admin`.
pub(super) fn by_port_name(name: &str) -> Option<Protocol> {
    // `grpc-web` is HTTP as well, so the first part is enough.
    known(name.split('-').next().unwrap_or(name))
}

fn known(name: &str) -> Option<Protocol> {
    match name {
        "http" | "http2" | "h2c" | "grpc" | "ws" => Some(Protocol::Http),
        "https" | "tls" | "wss" | "grpcs" => Some(Protocol::Tls),
        "tcp" | "postgres" | "postgresql" | "mysql" | "redis" | "mongo" | "mongodb" => {
            Some(Protocol::Tcp)
        }
        _ => None,
    }
}
