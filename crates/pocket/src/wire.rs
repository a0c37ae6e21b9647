//! HTTP, content negotiation, the encodings of bodies, TLS.
//!
//! May use every other module; no other module uses it.

mod authenticate;
mod authorize;
mod body;
mod channels;
mod connection;
pub mod decode;
mod documents;
mod exec;
mod form;
mod forward;
mod half_close;
mod host;
mod impersonate;
mod measured;
mod metrics;
mod negotiate;
mod openid;
mod paced;
mod payload;
pub mod protobuf;
mod request_metrics;
mod responses;
mod route;
mod serve;
mod service;
mod sessions;
mod spdy;
mod swagger;
mod tasks;
mod warnings;

pub use crate::identity::Authenticate;
pub use body::Body;
pub use serve::serve;
pub use service::Service;
