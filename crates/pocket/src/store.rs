//! The revisioned store, in memory or durable.

pub mod journal;
