//! O11: an object that cannot be written delays no other.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use neap_kit::{apply::Error, key::Key};
use neap_trial::judge::{Oracle, Violation};
use serde_json::json;

use crate::toy::{MINUTE, Toy, judged, map, texts, typed, workload};

/// Creates a copy of each map in its namespace.
async fn copied(toy: &Toy, toys: &ConfigMap) -> Result<(), Error> {
    let namespace = toys.namespace().unwrap();
    if toy.maps.get(&Key::new(&namespace, "copy")).is_some() {
        return Ok(());
    }
    let mut copy = map("copy");
    copy["metadata"]["namespace"] = json!(namespace);
    toy.writer.create(&typed(copy)).await.map(drop)
}

fn copy(toy: Toy, toys: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move { copied(&toy, &toys).await }.boxed()
}

/// Reconciles one map at a time, and keeps retrying for a while.
fn stubborn(toy: Toy, toys: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    static TURN: LazyLock<tokio::sync::Mutex<()>> = LazyLock::new(tokio::sync::Mutex::default);
    async move {
        let turn = TURN.lock().await;
        let mut done = copied(&toy, &toys).await;
        for _ in 0..5 {
            if done.is_err() {
                toy.context.clock.sleep(Duration::from_secs(1)).await;
                done = copied(&toy, &toys).await;
            }
        }
        drop(turn);
        done
    }
    .boxed()
}

/// Reconciles all maps at once: a failure for one keeps the earlier ones from being copied.
fn entangled(toy: Toy, _: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        let all = toy.maps.list("").into_iter().rev();
        for toys in all.filter(|map| map.name_any() == "toy") {
            copied(&toy, &toys).await?;
        }
        Ok(())
    }
    .boxed()
}

fn beside_poison(reconcile_toy: crate::toy::ReconcileToy) -> Vec<Violation> {
    let refused = "on write.before ns=poison for any do fail 422";
    judged(&workload(reconcile_toy, MINUTE), refused)
}

#[test]
fn a_controller_that_continues_with_other_objects_passes() {
    assert_eq!(beside_poison(copy), []);
}

#[test]
fn a_controller_that_delays_other_objects_is_reported() {
    let found = beside_poison(stubborn);
    let texts = texts(&found, Oracle::BlastRadius);
    assert!(
        texts
            .iter()
            .any(|texts| texts.contains("copy was done 5000 ms")),
        "{found:#?}"
    );
}

#[test]
fn a_controller_that_skips_other_objects_is_reported() {
    let found = beside_poison(entangled);
    let texts = texts(&found, Oracle::BlastRadius);
    assert!(
        texts.iter().any(|texts| texts.contains("copy is missing")),
        "{found:#?}"
    );
}
