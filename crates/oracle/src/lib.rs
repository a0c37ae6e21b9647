//! Judges of what an API server did.
//!
//! A test puts [`Watched`] under its clients and forgets about it. At the end it hands over the
//! server's own [`Chronicle`], and everything that passed by is held against it:
//!
//! - [`watch`]: every stream is ordered, unique, atomic, reliable, resumable and bookmarkable;
//! - [`snapshot`]: every page of every list is part of one state of the past;
//! - [`history`]: reads and writes of each object are linearizable.
//!
//! What a server must refuse is one list too, with its judge: [`bad_input`].
//!
//! Only tests use this crate, and it knows none of ours: it reads HTTP and JSON, and has its own
//! idea of selectors, so that a mistake of the server is not repeated by its judge.

pub mod bad_input;
mod chronicle;
mod filter;
mod fingerprint;
pub mod history;
pub mod snapshot;
mod tap;
mod verdict;
pub mod watch;

pub use chronicle::{Chronicle, Commit, State};
pub use filter::Filter;
pub use fingerprint::fingerprint;
pub use tap::{Observer, Tapped, Watched};
pub use verdict::{Verdict, Violation};
