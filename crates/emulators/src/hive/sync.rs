//! Applies SyncSets and SelectorSyncSets to installed clusters, and reports it in their ClusterSyncs.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
};
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::{Enqueuer, Outcome},
    key::Key,
    manager::Component,
    watch::{Cache, WatchesStopped},
};
use serde_json::Value;

use super::{
    ClusterDeployment, ClusterFactory,
    api::{ClusterSync, ClusterSyncSpec, SelectorSyncSet, SyncSet},
    sync_sets::{Synced, Wanted, copied, outdated, source_namespace, status, wanted},
};

/// The delay after a set could not be applied.
const RETRY_DELAY: Duration = Duration::from_secs(10);
/// How often sets are applied again, as users may change what they have made.
const REAPPLY_INTERVAL: Duration = Duration::from_hours(2);
/// Who the objects of sets belong to.
const FIELD_MANAGER: &str = "hive";

/// The part of Hive that applies sets.
pub fn sync_component(
    context: &Context,
    name: &'static str,
    factory: Arc<dyn ClusterFactory>,
) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, name);
    let deployments = builder.primary::<ClusterDeployment>()?;
    let sets = builder.cache::<SyncSet>()?;
    let selector_sets = builder.cache::<SelectorSyncSet>()?;
    let syncs = builder.cache::<ClusterSync>()?;
    // All clusters of the namespace: the set may have named another one before.
    let all = deployments.clone();
    builder.on_change(&sets, move |change, enqueuer| {
        enqueue_all(&all, change.key().namespace(), enqueuer);
    });
    let all = deployments.clone();
    builder.on_change(&selector_sets, move |_, enqueuer| {
        enqueue_all(&all, "", enqueuer);
    });
    let reconciler = SyncReconciler {
        deployments,
        sets,
        selector_sets,
        syncs,
        tools: builder.tools(),
        hive: context.client.clone(),
        factory,
    };
    Ok(builder.build(reconciler, SyncReconciler::reconcile))
}

fn enqueue_all(deployments: &Cache<ClusterDeployment>, namespace: &str, enqueuer: &Enqueuer<Key>) {
    for deployment in deployments.list(namespace) {
        let namespace = deployment.namespace().unwrap_or_default();
        enqueuer.enqueue(Key::new(&namespace, &deployment.name_any()));
    }
}

struct SyncReconciler {
    deployments: Cache<ClusterDeployment>,
    sets: Cache<SyncSet>,
    selector_sets: Cache<SelectorSyncSet>,
    syncs: Cache<ClusterSync>,
    tools: Tools,
    /// The cluster of Hive, whose Secrets are read when they are copied: a cache would keep all of them.
    hive: Client,
    factory: Arc<dyn ClusterFactory>,
}

impl SyncReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(deployment) = self.deployments.get(&key) else {
            return Ok(Outcome::Gone);
        };
        if !deployment.spec.installed || deployment.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        // The cluster is only used, never started: it may be removed at this moment.
        let Some(cluster) = self.factory.running(key.namespace()).await else {
            return Ok(Outcome::RequeueAfter(RETRY_DELAY));
        };
        let (sets, selector_sets) = (self.sets.list(""), self.selector_sets.list(""));
        let wanted = wanted(
            &deployment,
            sets.iter().map(|it| &**it),
            selector_sets.iter().map(|it| &**it),
        );
        let found = self.syncs.get(&key);
        let before = found.as_ref().and_then(|it| it.status.clone());
        let before = &before.map_or(Value::Null, |it| it.0.into_iter().collect());
        let mut failed = false;
        for reference in outdated(before, &wanted) {
            failed |= delete(&cluster.client, &reference).await.is_err();
        }
        let mut synced = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            let failure = self
                .apply(&cluster.client, key.namespace(), &wanted)
                .await
                .err();
            failed |= failure.is_some();
            synced.push(Synced { wanted, failure });
        }
        let status = status(before, &synced, self.tools.clock.now());
        self.report(&deployment, found.as_deref(), status).await?;
        let delay = if failed {
            RETRY_DELAY
        } else {
            REAPPLY_INTERVAL
        };
        Ok(Outcome::RequeueAfter(delay))
    }

    /// Applies the resources of a set, then its Secrets, then its patches. An error names the first that
    /// failed.
    async fn apply(&self, cluster: &Client, own: &str, wanted: &Wanted) -> Result<(), String> {
        for object in &wanted.content.resources {
            apply(cluster, object).await?;
        }
        for mapping in &wanted.content.secret_mappings {
            let (source, target) = (&mapping.source_ref.name, &mapping.target_ref.name);
            let secret = async {
                let namespace = source_namespace(wanted, mapping, own)?;
                let secrets: Api<Secret> = Api::namespaced(self.hive.clone(), namespace);
                let found = secrets.get_opt(source).await;
                let found = found.map_err(|error| error.to_string())?;
                found.ok_or_else(|| format!("there is none in the namespace {namespace}"))
            };
            let secret = secret.await;
            let secret = secret.map_err(|why| format!("Secret {source} was not copied: {why}"))?;
            if mapping.target_ref.namespace.is_empty() {
                return Err(format!(
                    "Secret {source} was not copied: the target {target} has no namespace"
                ));
            }
            apply(cluster, &copied(&secret, mapping)).await?;
        }
        for patch in &wanted.content.patches {
            let (kind, name) = (text(patch, "/kind"), text(patch, "/name"));
            let patched = patched(cluster, patch).await;
            patched.map_err(|error| format!("{kind} {name} was not patched: {error}"))?;
        }
        Ok(())
    }

    /// Writes the ClusterSync, which has the name of the deployment and is deleted with it.
    async fn report(
        &self,
        deployment: &ClusterDeployment,
        found: Option<&ClusterSync>,
        status: Value,
    ) -> Result<(), Error> {
        let status = serde_json::from_value(status).ok();
        match found {
            Some(found) if found.status == status => {}
            Some(found) => {
                let mut changed = found.clone();
                changed.status = status;
                self.tools.writer.replace(&changed).await?;
            }
            None => {
                let mut new = ClusterSync::new(&deployment.name_any(), ClusterSyncSpec {});
                new.status = status;
                new.metadata.namespace = deployment.namespace();
                let owner = deployment.controller_owner_ref(&());
                new.metadata.owner_references = owner.map(|it| vec![it]);
                // One that exists is seen by the next look.
                self.tools.writer.create(&new).await?;
            }
        }
        Ok(())
    }
}

async fn api(
    client: &Client,
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
) -> Result<Api<DynamicObject>, String> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    let found = pinned_kind(client, &kind).await;
    let (resource, capabilities) = found.map_err(|error| error.to_string())?;
    Ok(match (capabilities.scope, namespace) {
        (Scope::Cluster, _) | (_, None) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, Some(namespace)) => {
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
    })
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

async fn apply(client: &Client, object: &Value) -> Result<(), String> {
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    let namespace = object
        .pointer("/metadata/namespace")
        .and_then(Value::as_str);
    let applied = async {
        let api = api(client, text(object, "/apiVersion"), kind, namespace).await?;
        let applied = api.patch(name, &parameters, &Patch::Apply(object)).await;
        applied.map(drop).map_err(|error| error.to_string())
    };
    let applied = applied.await;
    applied.map_err(|error| format!("{kind} {name} was not applied: {error}"))
}

async fn patched(client: &Client, patch: &Value) -> Result<(), String> {
    let namespace = patch["namespace"].as_str();
    let kind = text(patch, "/kind");
    let api = api(client, text(patch, "/apiVersion"), kind, namespace).await?;
    let content: Value =
        serde_json::from_str(text(patch, "/patch")).map_err(|error| error.to_string())?;
    let content = match text(patch, "/patchType") {
        "merge" => Patch::Merge(content),
        "" | "strategic" => Patch::Strategic(content),
        other => {
            return Err(format!(
                "the patch type {other:?} is not supported by this Hive"
            ));
        }
    };
    let (name, parameters) = (text(patch, "/name"), PatchParams::default());
    let done = api.patch(name, &parameters, &content).await;
    done.map(drop).map_err(|error| error.to_string())
}

/// Deletes what a set wants no more.
async fn delete(client: &Client, reference: &Value) -> Result<(), String> {
    let of = |pointer: &str| text(reference, pointer);
    let namespace = reference["namespace"].as_str();
    let api = api(client, of("/apiVersion"), of("/kind"), namespace).await?;
    match api.delete(of("/name"), &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
