//! The path of a connection through a resolver, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_input;
mod bad_pods;
mod crowd;
mod curl;
mod early;
mod end;
mod grpc;
mod h2load;
mod http1;
mod http2;
mod listeners;
mod metrics;
mod past_deadline;
mod pod;
mod postgres;
mod programs;
mod scene;
mod shared_port;
mod streams;
mod tcp;
mod unsent;
mod whole;
