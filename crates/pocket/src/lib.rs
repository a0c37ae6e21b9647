//! A Kubernetes API server as a library.
//!
//! `pocket` knows nobody: the clock, randomness and task spawning are handed to it, so the same
//! value serves kubectl over TLS, an in-process client with no socket, and a test under a paused
//! clock.
//!
//! The rooms, lowest first; each may use those above it in this list and no others:
//!
//! - [`status`]: what a refused request is told;
//! - [`environment`]: the clock, randomness and spawner parameters;
//! - [`schema`]: the shape of built-in and custom objects;
//! - [`quantity`] and [`selector`]: amounts, and which objects are meant;
//! - `store`: the revisioned store, in memory or durable;
//! - [`patch`]: JSON, merge and strategic patches, server-side apply and managed fields;
//! - `crd`: custom resource definitions, their schemas and rules;
//! - `kinds`: the table of built-in kinds, with their defaults and rules. Nothing else knows a
//!   built-in kind by name;
//! - `table`: what `kubectl get` prints;
//! - `digest`, `discovery`, `openapi`: what clients are told of the served kinds;
//! - `rest`: the generic REST machine;
//! - `wire`: HTTP, content negotiation, protobuf, TLS.

pub mod crd;
pub mod environment;
pub mod kinds;
pub mod patch;
pub mod quantity;
pub mod digest;
pub mod discovery;
pub mod environment;
pub mod kinds;
pub mod openapi;
pub mod schema;
pub mod selector;
pub mod status;
pub mod table;
pub mod wire;
pub mod store;
