//! O12: nobody looks again before it sees what it wrote.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use neap_kit::{apply::Error, key::Key};
use neap_trial::judge::Oracle;

use crate::toy::{MINUTE, Toy, judged, map, said, typed, workload};

/// Keeps a copy of it.
fn copy(toy: Toy, toys: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        let mut copy = typed(map("copy"));
        copy.data.clone_from(&toys.data);
        match toy.maps.get(&Key::new("default", "copy")) {
            None => toy.hand.create(&copy).await.map(drop),
            Some(found) if found.data != copy.data => {
                copy.metadata.resource_version = found.resource_version();
                toy.hand.replace(&copy).await.map(drop)
            }
            Some(_) => Ok(()),
        }
    }
    .boxed()
}

/// Lets go of a copy, and of nothing else.
fn drop_copy(toy: Toy, toys: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        let found = toy.maps.get(&Key::new("default", "copy"));
        match found {
            Some(found) => toy.hand.remove(&*found, None).await,
            None if toys.data.is_none() => toy.hand.create(&typed(map("copy"))).await.map(drop),
            None => Ok(()),
        }
    }
    .boxed()
}

const LATE: &str = "on watch.event kind=configmaps name=copy #1 for controller do delay 8s";

#[test]
fn whoever_waits_for_its_writes_is_not_spoken_of() {
    let workload = workload(copy, MINUTE);
    assert_eq!(judged(&workload, ""), []);
    assert_eq!(judged(&workload, LATE), []);
}

#[test]
fn whoever_looks_again_before_its_write_is_shown_is_found_out() {
    let found = judged(&workload(copy, Duration::ZERO), LATE);
    let said = said(&found, Oracle::ReadYourWrites);
    assert!(!said.is_empty(), "{found:#?}");
    assert!(
        said[0].contains("configmaps did not show version"),
        "{said:?}"
    );
}

#[test]
fn whoever_overlooks_its_own_delete_is_found_out() {
    let late = "on watch.event kind=configmaps name=copy #2 for controller do delay 8s";
    let found = judged(&workload(drop_copy, Duration::ZERO), late);
    let said = said(&found, Oracle::ReadYourWrites);
    assert!(
        said.iter().any(|said| said.contains("still showed")),
        "{found:#?}"
    );
}
