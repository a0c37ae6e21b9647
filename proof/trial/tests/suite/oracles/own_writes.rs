//! O12: no key is reconciled before its own writes are observed.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use neap_kit::{apply::Error, key::Key};
use neap_trial::judge::Oracle;

use crate::toy::{MINUTE, Toy, judged, map, texts, typed, workload};

/// Keeps a copy of the map.
fn copy(toy: Toy, toys: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        let mut copy = typed(map("copy"));
        copy.data.clone_from(&toys.data);
        match toy.maps.get(&Key::new("default", "copy")) {
            None => toy.writer.create(&copy).await.map(drop),
            Some(found) if found.data != copy.data => {
                copy.metadata.resource_version = found.resource_version();
                toy.writer.replace(&copy).await.map(drop)
            }
            Some(_) => Ok(()),
        }
    }
    .boxed()
}

/// Deletes the copy.
fn drop_copy(toy: Toy, toys: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        let found = toy.maps.get(&Key::new("default", "copy"));
        match found {
            Some(found) => toy.writer.remove(&*found, None).await,
            None if toys.data.is_none() => toy.writer.create(&typed(map("copy"))).await.map(drop),
            None => Ok(()),
        }
    }
    .boxed()
}

const LATE: &str = "on watch.event kind=configmaps name=copy #1 for controller do delay 8s";

#[test]
fn a_controller_that_waits_for_its_writes_passes() {
    let workload = workload(copy, MINUTE);
    assert_eq!(judged(&workload, ""), []);
    assert_eq!(judged(&workload, LATE), []);
}

#[test]
fn a_reconcile_before_the_own_write_is_observed_is_reported() {
    let found = judged(&workload(copy, Duration::ZERO), LATE);
    let texts = texts(&found, Oracle::ReadYourWrites);
    assert!(!texts.is_empty(), "{found:#?}");
    assert!(
        texts[0].contains("configmaps did not show version"),
        "{texts:?}"
    );
}

#[test]
fn a_reconcile_before_the_own_delete_is_observed_is_reported() {
    let late = "on watch.event kind=configmaps name=copy #2 for controller do delay 8s";
    let found = judged(&workload(drop_copy, Duration::ZERO), late);
    let texts = texts(&found, Oracle::ReadYourWrites);
    assert!(
        texts.iter().any(|texts| texts.contains("still showed")),
        "{found:#?}"
    );
}
