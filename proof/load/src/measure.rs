//! Figures of a running server, as a client sees them.
//!
//! Figures that can also be measured on the real control plane take a [`Subject`], and treat both
//! alike.

mod bound;
mod definition;
mod kit;
mod list;
mod namespace;
mod neighbour;
mod pace;
mod restart;
mod rollout;
mod sample;
mod start;
mod stored;
mod watch;

use std::time::Duration;

use anyhow::{Context, Result};
use http::Method;
use serde_json::json;

use crate::{bulk::BulkRequest, client::Connection, objects::NAMESPACE, objects::Resource};

pub use bound::bound;
pub use definition::definition;
pub use kit::{kit, writing};
pub use list::list;
pub use namespace::namespace;
pub use neighbour::neighbour;
pub use pace::{single, throughput};
pub use restart::restart;
pub use rollout::rollout;
pub use sample::sample;
pub use start::start;
pub use stored::stored;
pub use watch::{event_latency, fan_out};

/// Connections of the clients.
pub const CONNECTIONS: usize = 16;
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";
/// With its metadata, such an object takes 0.7 KB as JSON.
const PADDING: usize = 300;

/// A named figure.
pub type Figure = (&'static str, f64);

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

pub(crate) fn median(mut figures: Vec<f64>) -> Result<f64> {
    figures.sort_by(f64::total_cmp);
    let middle = figures.get(figures.len() / 2).copied();
    middle.context("nothing was measured")
}

/// Creates the namespace in which everything is measured.
async fn prepare(connection: &mut Connection) -> Result<()> {
    make_namespace(connection, NAMESPACE).await
}

async fn make_namespace(connection: &mut Connection, name: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let body = namespace.to_string();
    let made = connection.send(Method::POST, "/api/v1/namespaces", body);
    made.await?.success().map(drop)
}

/// The create of a ConfigMap of the size that figures are stated for.
pub fn create(number: usize) -> BulkRequest {
    create_as("object", number)
}

fn create_as(family: &str, number: usize) -> BulkRequest {
    let resource = Resource::ConfigMaps;
    let object = resource.object(&format!("{family}-{number}"), number as u64, PADDING);
    BulkRequest {
        method: Method::POST,
        path: resource.collection(),
        content_type: JSON,
        body: object.to_string(),
    }
}

/// A small change of one of `objects` ConfigMaps; each one changes something.
pub fn update(number: usize, objects: usize) -> BulkRequest {
    let resource = Resource::ConfigMaps;
    BulkRequest {
        method: Method::PATCH,
        path: resource.path(&format!("object-{}", number % objects)),
        content_type: MERGE,
        body: resource.patch((objects + number) as u64).to_string(),
    }
}

/// The get of a ConfigMap that [`create`] created.
pub fn read(number: usize) -> BulkRequest {
    BulkRequest {
        method: Method::GET,
        path: Resource::ConfigMaps.path(&format!("object-{number}")),
        content_type: JSON,
        body: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_needs_a_figure() {
        assert!((median(vec![3.0, 1.0, 2.0]).unwrap() - 2.0).abs() < 1e-9);
        assert!(median(Vec::new()).is_err());
    }
}
