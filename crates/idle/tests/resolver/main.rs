//! A resolver over real sockets, from the client's connection to the pod.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_input;
mod bad_pods;
mod component;
mod curl;
mod early_body;
mod fixture;
mod grpc;
mod h2load;
mod half_closed;
mod http1;
mod http2;
mod idle_connections;
mod listeners;
mod metrics;
mod past_deadline;
mod pod;
mod postgres;
mod programs;
mod retries;
mod shared_port;
mod shutdown;
mod streams;
mod tcp;
