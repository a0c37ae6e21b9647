//! The check of an area: reads what it needs, and leaves the judgement to it.

use futures::future::join_all;
use neap_kit::{
    area::{AreaCheck, CheckFacts, Finding},
    clock::Clock,
};

use crate::inspect::{cluster::Cluster, read};

/// Checks all namespaces.
pub(super) async fn check(cluster: &Cluster, check: &AreaCheck) -> Vec<Finding> {
    let lists = check.reads.iter().map(async |kind| {
        let found = read::list_served(&cluster.client, *kind, None, None).await;
        (kind, found)
    });
    let (mut objects, mut unserved) = (Vec::new(), Vec::new());
    for (kind, found) in join_all(lists).await {
        match found {
            Ok(Some(found)) => objects.extend(found),
            Ok(None) => unserved.push(kind.name),
            // What is not seen would be taken for absent.
            Err(error) => {
                let failure = cluster.failed(&format!("the kind {}", kind.name), &error);
                let finding = Finding::failed("objects", failure.to_string(), failure.advice());
                return vec![finding];
            }
        }
    }
    (check.judge)(&CheckFacts {
        objects,
        unserved,
        now: Clock::system().now(),
    })
}
