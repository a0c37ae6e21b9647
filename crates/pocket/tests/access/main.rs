//! Who may do what, at a server without a socket.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends where it is surprised"
)]

mod allowed;
mod asker;
mod escalation;
mod first_roles;
mod impersonation;
mod restart;
mod reviews;
