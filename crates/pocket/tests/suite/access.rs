//! Authorization at a server without a socket.

mod allowed;
mod bootstrap_policy;
mod client;
mod escalation;
mod impersonation;
mod restart;
mod reviews;
