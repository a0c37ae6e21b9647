//! A Kubernetes API server as a library.
//!
//! `pocket` depends on no other crate of the project: the clock, randomness and task spawning are
//! parameters, so the same value serves kubectl over TLS, an in-process client with no socket, and
//! a test under a paused clock.
//!
//! ```
//! use k8s_openapi::api::core::v1::Namespace;
//! use kube::{Api, Client};
//! use neap_pocket::{Options, Pocket, environment::Environment};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pocket = Pocket::open(Options::new(Environment::simulated(1))).await?;
//! let namespaces: Api<Namespace> = Api::all(Client::new(pocket.service(), "default"));
//! assert!(namespaces.get_opt("kube-system").await?.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! The modules, lowest first; each may use those above it in this list and no others:
//!
//! - [`status`]: errors, as the API reports them;
//! - [`environment`]: the clock, randomness and spawner parameters;
//! - [`quantity`] and [`selector`]: resource amounts, label and field selectors;
//! - [`schema`]: the schemas of built-in and custom objects;
//! - `store`: the revisioned store, in memory or durable;
//! - [`identity`]: authentication by certificate or token;
//! - [`access`]: authorization: roles, bindings and the decision;
//! - [`patch`]: JSON, merge and strategic patches, server-side apply and managed fields;
//! - `crd`: custom resource definitions, their schemas and rules;
//! - `kinds`: the table of built-in kinds, with their defaults and validation;
//! - `digest`, `discovery`, `openapi`: the documents about the served kinds;
//! - `table`: the columns of `kubectl get`;
//! - `runtime`: the interface of an embedder's pod runtime;
//! - [`admission`]: webhooks and built-in admission plugins;
//! - `rest`: the generic REST machine;
//! - `housekeeping`: garbage collection, removal of namespaces, expiry of objects;
//! - `wire`: HTTP, content negotiation, protobuf, TLS.

// In the order of dependencies: a module uses only those above it. `cargo xtask check` enforces it.

pub mod environment;

#[cfg(feature = "seeded")]
pub mod seeded;

pub mod status;

pub mod store;

pub mod identity;

pub mod selector;

pub mod access;

pub mod quantity;

pub mod schema;

pub mod crd;

pub mod kinds;

pub mod admission;

pub mod digest;

pub mod discovery;

pub mod table;

pub mod patch;

pub mod runtime;

pub mod rest;

mod housekeeping;

pub mod openapi;

pub mod wire;

mod pocket;

pub use pocket::{Error, Options, Pocket, Storage};
