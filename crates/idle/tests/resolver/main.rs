//! The path of a connection through a resolver, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_input;
mod end;
mod http1;
mod http2;
mod listeners;
mod pod;
mod scene;
mod shared_port;
mod streams;
mod tcp;
mod whole;
