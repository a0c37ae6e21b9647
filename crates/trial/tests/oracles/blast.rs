//! O11: what cannot be done for one object keeps no other waiting.

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

use crate::toy::{MINUTE, Toy, judged, map, said, typed, workload};

/// Keeps a copy of each map in its namespace.
async fn copied(toy: &Toy, toys: &ConfigMap) -> Result<(), Error> {
    let namespace = toys.namespace().unwrap();
    if toy.maps.get(&Key::new(&namespace, "copy")).is_some() {
        return Ok(());
    }
    let mut copy = map("copy");
    copy["metadata"]["namespace"] = json!(namespace);
    toy.hand.create(&typed(copy)).await.map(drop)
}

fn copy(toy: Toy, toys: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move { copied(&toy, &toys).await }.boxed()
}

/// One at a time, and whoever is at it does not give up for a while.
fn stubborn(toy: Toy, toys: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    static TURN: LazyLock<tokio::sync::Mutex<()>> = LazyLock::new(tokio::sync::Mutex::default);
    async move {
        let turn = TURN.lock().await;
        let mut done = copied(&toy, &toys).await;
        for _ in 0..5 {
            if done.is_err() {
                toy.site.clock.sleep(Duration::from_secs(1)).await;
                done = copied(&toy, &toys).await;
            }
        }
        drop(turn);
        done
    }
    .boxed()
}

/// The last for all: if nothing can be done for one, nothing is done for those before it.
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

fn beside_poison(look: crate::toy::Look) -> Vec<Violation> {
    let refused = "on write.before ns=poison for any do fail 422";
    judged(&workload(look, MINUTE), refused)
}

#[test]
fn whoever_goes_on_with_the_others_is_not_spoken_of() {
    assert_eq!(beside_poison(copy), []);
}

#[test]
fn whoever_keeps_the_others_waiting_is_found_out() {
    let found = beside_poison(stubborn);
    let said = said(&found, Oracle::BlastRadius);
    assert!(
        said.iter()
            .any(|said| said.contains("copy was done 5000 ms")),
        "{found:#?}"
    );
}

#[test]
fn whoever_does_nothing_for_the_others_is_found_out() {
    let found = beside_poison(entangled);
    let said = said(&found, Oracle::BlastRadius);
    assert!(
        said.iter().any(|said| said.contains("copy is missing")),
        "{found:#?}"
    );
}
