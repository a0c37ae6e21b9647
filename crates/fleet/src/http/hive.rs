//! Routes for administrators that read from Hive.

use axum::extract::{Path, Request, State};
use neap_kit::why::chain;
use serde_json::{Value, json};

use super::{
    Frontend, Params,
    answer::ok,
    clusters::{Answer, cluster_id, missing, param},
    middleware::{Head, query, split},
};
use crate::{
    cloud_error::CloudError,
    cluster_api::ApiError,
    documents::text,
    install::{Hive, SyncSets},
};

impl Frontend {
    fn hive(&self) -> Result<&Hive, CloudError> {
        self.hive.as_ref().ok_or_else(|| {
            let message = "The frontend reaches no Hive: start it with --hive-kubeconfig.";
            CloudError::new(503, "HiveNotConfigured", "", message)
        })
    }

    /// The namespace of a cluster at Hive.
    async fn hive_namespace(&self, params: &Params) -> Result<String, super::Failure> {
        let id = cluster_id(params)?;
        let document = self.read_cluster(&id).await?;
        let document = document.ok_or_else(|| missing(&id))?;
        let pointer = "/openShiftCluster/properties/hiveProfile/namespace";
        let namespace = text(&document.body, pointer);
        if namespace.is_empty() {
            return Err(not_managed().into());
        }
        Ok(namespace.to_owned())
    }
}

fn not_managed() -> CloudError {
    let message = "The cluster is not managed by Hive.";
    CloudError::new(404, "NotManagedByHive", "", message)
}

fn unreachable(error: &ApiError) -> CloudError {
    let message = format!("Hive could not be read: {}.", chain(error));
    CloudError::new(502, "HiveUnavailable", "", message)
}

fn found(read: Result<Option<Value>, ApiError>) -> Answer {
    let found = read.map_err(|error| unreachable(&error))?;
    Ok(ok(&found.ok_or_else(not_managed)?))
}

pub(super) async fn cluster_deployment(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
) -> Answer {
    let namespace = frontend.hive_namespace(&params).await?;
    found(frontend.hive()?.cluster_deployment(&namespace).await)
}

pub(super) async fn cluster_sync(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
) -> Answer {
    let namespace = frontend.hive_namespace(&params).await?;
    found(frontend.hive()?.cluster_sync(&namespace).await)
}

/// Which sets a request names: SyncSets are in the namespace of a cluster, SelectorSyncSets in none. Pure.
fn sync_sets(is_sync_set: bool, namespace: &str) -> Result<SyncSets<'_>, CloudError> {
    match (is_sync_set, namespace) {
        (true, "") => {
            let message = "A SyncSet is in a namespace: name it with cdnamespace.";
            Err(CloudError::invalid("cdnamespace", message))
        }
        (true, namespace) => Ok(SyncSets::OfNamespace(namespace)),
        (false, "") => Ok(SyncSets::ForLabels),
        (false, _) => {
            let message = "A SelectorSyncSet is in no namespace: leave cdnamespace out.";
            Err(CloudError::invalid("cdnamespace", message))
        }
    }
}

fn asked(request: &Head) -> (bool, String) {
    let is_sync_set = query(request, "issyncset");
    let is_sync_set = is_sync_set.is_none_or(|it| !it.eq_ignore_ascii_case("false"));
    (
        is_sync_set,
        query(request, "cdnamespace").unwrap_or_default(),
    )
}

pub(super) async fn list_sync_sets(State(frontend): State<Frontend>, request: Request) -> Answer {
    let (request, _) = split(request);
    let (is_sync_set, namespace) = asked(&request);
    let sets = sync_sets(is_sync_set, &namespace)?;
    let label = query(&request, "label").unwrap_or_default();
    let found = frontend.hive()?.sync_sets(sets, &label).await;
    let found = found.map_err(|error| unreachable(&error))?;
    Ok(ok(&json!({ "value": found })))
}

pub(super) async fn get_sync_set(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    let (request, _) = split(request);
    let (is_sync_set, namespace) = asked(&request);
    let sets = sync_sets(is_sync_set, &namespace)?;
    let name = param(&params, "name");
    let found = frontend.hive()?.sync_set(sets, name).await;
    let found = found.map_err(|error| unreachable(&error))?;
    let found = found.ok_or_else(|| {
        let message = format!("There is no set of objects '{name}'.");
        CloudError::new(404, "NotFound", "", message)
    })?;
    Ok(ok(&found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_sets_have_a_namespace_and_selector_sync_sets_have_none() {
        assert_eq!(
            sync_sets(true, "aro-7").unwrap(),
            SyncSets::OfNamespace("aro-7")
        );
        assert_eq!(sync_sets(false, "").unwrap(), SyncSets::ForLabels);
        for (is_sync_set, namespace) in [(true, ""), (false, "aro-7")] {
            let error = sync_sets(is_sync_set, namespace).unwrap_err();
            assert_eq!((error.status, &*error.target), (400, "cdnamespace"));
        }
    }
}
