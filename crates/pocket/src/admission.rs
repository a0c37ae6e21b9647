//! Admission: webhooks and built-in plugins, which may change or refuse a write.
//!
//! Webhooks: which of them a write concerns ([`Webhook::wants`]), the review they are sent
//! ([`Review`]), how their responses are read ([`response`]), and how they are called ([`webhook_client`]).
//! [`Webhooks`] holds the webhooks of every configuration and follows the store, so that a server
//! without webhooks only checks a counter. Built-in plugins are functions of values in [`plugins`].
//!
//! May use everything below `rest`. Nothing here reads the store, the clock or randomness; only
//! [`webhook_client`] does I/O.

pub mod attributes;
mod backend;
mod hook;
mod hooks;
pub mod plugins;
pub mod response;
mod review;
pub mod webhook_client;

pub use attributes::{GroupVersionResource, Operation, WriteAttributes};
pub use backend::endpoint;
pub use hook::{Backend, ReviewVersion, Webhook};
pub use hooks::{Phase, Webhooks};
pub use review::{GroupVersionKind, Review, sent};
pub use webhook_client::{Connection, Destination, Dial, Tcp, WebhookClient};
