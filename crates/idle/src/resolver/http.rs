//! Forwards HTTP requests to pods.
//!
//! The resolver reads the head of a request and answers it itself if a probe rule matches. Otherwise it
//! holds the request before it connects to a pod, and then sends it once. Bodies are streamed in both
//! directions.

mod client_end;
mod counted_stream;
mod forward;
mod handle;
mod headers;
mod host_routing;
mod http1_validator;
mod pod_connection;
mod pool;
mod pooled;
mod probe_rules;
mod request_body;
mod response_body;
mod responses;
mod serve;
#[cfg(test)]
mod tests;
mod upgrade;
mod validated_stream;

pub use self::{
    handle::ListenPort,
    host_routing::HostRouting,
    pool::ConnectionPool,
    probe_rules::{CannedResponse, ProbeRules},
    serve::serve,
};
pub(super) use self::{responses::UNKNOWN, serve::TOO_SLOW};
