//! The OCI registry against its specification and against real clients, in one executable.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod clients;
mod peers;
mod prow_faults;
mod scenario;
mod scenarios;
