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
//! - [`quantity`] and [`selector`]: amounts, and which objects are meant;
//! - [`schema`]: the shape of built-in and custom objects;
//! - `store`: the revisioned store, in memory or durable;
//! - [`identity`]: who somebody is, by certificate, by token, or as nobody in particular;
//! - [`access`]: who may do what: roles, bindings and the decision;
//! - [`patch`]: JSON, merge and strategic patches, server-side apply and managed fields;
//! - `crd`: custom resource definitions, their schemas and rules;
//! - `kinds`: the table of built-in kinds, with their defaults and rules;
//! - `digest`, `discovery`, `openapi`: what clients are told of the served kinds;
//! - `table`: what `kubectl get` prints;
//! - `runtime`: what an embedder may add: something that runs pods;
//! - [`admission`]: webhooks and what the server itself adds to or refuses of a write;
//! - `rest`: the generic REST machine;
//! - `housekeeping`: garbage collection, namespaces that end, objects that expire;
//! - `wire`: HTTP, content negotiation, protobuf, TLS.

pub mod access;
pub mod admission;
pub mod crd;
pub mod digest;
pub mod discovery;
pub mod environment;
mod housekeeping;
pub mod identity;
pub mod kinds;
pub mod openapi;
pub mod patch;
mod pocket;
pub mod quantity;
pub mod rest;
pub mod runtime;
pub mod schema;
#[cfg(feature = "seeded")]
pub mod seeded;
pub mod selector;
pub mod status;
pub mod store;
pub mod table;
pub mod wire;

pub use pocket::{Error, Options, Pocket, Storage};
