//! HTTP servers of the areas: TLS, limits, access log, errors, authentication, etags.
//!
//! An area builds an `axum::Router` and gives it to [`server`]; the router runs in tests without a
//! socket. [`HttpLimits`] bound what a client can make a server hold. What a client proved of itself is in
//! the extensions of each request: [`Peer`].
//!
//! Invariants:
//! - every body is read with a limit, and every request ends within a time;
//! - a server that stops answers what it has accepted, for as long as its grace lasts;
//! - a request names its host once;
//! - no header that says who the caller is is trusted unless the area says by whom it may be set.

mod access;
mod body;
mod etag;
mod listener;
mod problem;
#[cfg(test)]
mod tests;
mod tls;
mod token;

pub use self::{
    access::{AccessLog, RequestId, access_log},
    body::{BodyError, read_json, reject_duplicate_keys},
    etag::{IfMatch, IfNoneMatch, if_match, if_none_match},
    listener::{HttpLimits, Peer, server},
    problem::Problem,
    tls::{ClientCertificates, TlsError, TlsFiles, TlsIdentity, reload},
    token::{BearerError, TokenReviews, UserInfo},
};
pub use crate::host_header::check_host;
