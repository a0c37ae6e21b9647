//! Decisions about streams.

mod properties;
