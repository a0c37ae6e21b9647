//! HTTP between operators and resolvers: the server that both run, and the client with which each calls
//! the other.
//!
//! Routes are values behind [`Handler`], so they are tested without a socket; [`serve`] is the only place
//! that has one.

mod client;
mod response;
mod server;

pub use self::{
    client::{ApiClient, CallError},
    response::{ApiRequest, ApiResponse, Handler},
    server::serve,
};
pub(crate) use self::{
    client::{CALL_TIMEOUT, WAKE_RESPONSE_TIMEOUT},
    response::{denied, json, metrics, parse_body, require_method, text, with_content_type},
};
