//! Oracles that judge what an API server did.
//!
//! A test places an [`ObservedService`] below its clients. At the end it passes the server's own
//! [`CommitLog`], and everything that was observed is compared with it:
//!
//! - [`watch`]: every stream is ordered, unique, atomic, reliable, resumable and bookmarkable;
//! - [`snapshot`]: every page of every list is part of one past state;
//! - [`history`]: reads and writes of each object are linearizable.
//!
//! Requests that a server must refuse are listed, with the check of their answers, in
//! [`bad_input`].
//!
//! Only tests use this crate, and it depends on none of ours: it reads HTTP and JSON, and has its
//! own implementation of selectors, so that a mistake of the server is not repeated by its judge.

pub mod bad_input;
mod commit_log;
mod filter;
mod fingerprint;
pub mod history;
mod observer;
pub mod snapshot;
mod verdict;
pub mod watch;

pub use commit_log::{Commit, CommitLog, ObjectState};
pub use filter::Filter;
pub use fingerprint::fingerprint;
pub use observer::{ObservedBody, ObservedService, Observer};
pub use verdict::{Verdict, Violation};
