//! Finds other controllers that scale the same workload.

use std::{collections::HashMap, time::Duration};

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, GroupVersionKind},
    discovery,
};
use neap_kit::{
    builder::ControllerBuilder,
    clock::Uptime,
    context::Context,
    controller::Enqueuer,
    key::Key,
    watch::{Cache, Index, Selection, WatchesStopped},
};
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    conflict,
    targets::{FoundTarget, dynamic_apis},
};
use crate::{
    api::ElastiService,
    reason::Reason,
    target::{Target, scaled_object_kind},
};

/// The time between two checks whether KEDA is installed by now.
const KEDA_CHECK_INTERVAL: Duration = Duration::from_mins(5);

/// The other controllers that scale workloads.
pub(super) struct OtherScalers {
    context: Context,
    hpas: Cache<HorizontalPodAutoscaler>,
    keda: Mutex<ScaledObjects>,
    by_target: Index<ElastiService>,
    enqueuer: Enqueuer<Key>,
    /// The field managers of the replicas of targets, by the version that was read.
    managers: Mutex<HashMap<Key, ReplicasManager>>,
}

/// The version of a target, and the field manager that applies its replicas.
type ReplicasManager = (Option<String>, Option<Reason>);

/// The cache of ScaledObjects, once the API server has such a kind.
#[derive(Default)]
struct ScaledObjects {
    checked_at: Option<Uptime>,
    objects: Option<Cache<DynamicObject>>,
}

impl OtherScalers {
    pub(super) fn new(
        builder: &mut ControllerBuilder,
        context: &Context,
        by_target: Index<ElastiService>,
    ) -> Result<Self, WatchesStopped> {
        let hpas = builder.scoped::<HorizontalPodAutoscaler>(&Selection::default(), false)?;
        let by = by_target.clone();
        builder.on_change(&hpas, move |change, enqueuer| {
            let target = change.object().spec.scale_target_ref.name.as_str();
            enqueue_by(&by, change.key().namespace(), Some(target), enqueuer);
        });
        Ok(Self {
            context: context.clone(),
            hpas,
            keda: Mutex::default(),
            by_target,
            enqueuer: builder.enqueuer(),
            managers: Mutex::default(),
        })
    }

    /// Another controller that scales the workload of `service`.
    pub(super) async fn conflict(
        &self,
        service: &ElastiService,
        found: &FoundTarget,
    ) -> Option<Reason> {
        let namespace = service.namespace().unwrap_or_default();
        let hpas = self.hpas.list(&namespace);
        let hpas: Vec<_> = hpas.iter().map(|hpa| &**hpa).collect();
        let scaled_objects = self.scaled_objects(&namespace).await;
        let beside = conflict::conflict(service, &hpas, &scaled_objects);
        match beside {
            Some(beside) => Some(beside),
            None => self.replicas_manager(service, found).await,
        }
    }

    pub(super) fn remove(&self, key: &Key) {
        self.managers.lock().remove(key);
    }

    /// Waits until the caches are complete.
    pub(super) async fn synced(&self) {
        self.hpas.synced().await;
    }

    /// The field manager that applies the replicas of the target. Read once for each version of it.
    async fn replicas_manager(
        &self,
        service: &ElastiService,
        found: &FoundTarget,
    ) -> Option<Reason> {
        let (Target::Scaled { metadata, .. }, Some(kind)) = (&found.target, &found.kind) else {
            return None;
        };
        let key = Key::of(service);
        let version = &metadata.resource_version;
        if let Some((known, manager)) = self.managers.lock().get(&key)
            && known == version
        {
            return manager.clone();
        }
        let client = self.context.client.clone();
        let api: Api<DynamicObject> = Api::namespaced_with(client, key.namespace(), &kind.resource);
        let name = &service.spec.scale_target_ref.name;
        // Without a response there is no known conflict.
        let target = api.get_metadata(name).await.ok()?;
        let manager = conflict::replicas_manager(target.managed_fields());
        let known = (target.resource_version(), manager.clone());
        self.managers.lock().insert(key, known);
        manager
    }

    async fn scaled_objects(&self, namespace: &str) -> Vec<(String, Value)> {
        let objects = self.watched_scaled_objects().await;
        let objects = objects.map(|objects| objects.list(namespace));
        let objects = objects.into_iter().flatten();
        objects
            .map(|object| (object.name_any(), object.data["spec"].clone()))
            .collect()
    }

    /// The cache of ScaledObjects, if the API server has such a kind.
    async fn watched_scaled_objects(&self) -> Option<Cache<DynamicObject>> {
        let now = self.context.clock.uptime();
        {
            let mut keda = self.keda.lock();
            let lately = |checked: Uptime| now.saturating_sub(checked) < KEDA_CHECK_INTERVAL;
            if keda.objects.is_some() || keda.checked_at.is_some_and(lately) {
                return keda.objects.clone();
            }
            keda.checked_at = Some(now);
        }
        let kind = scaled_object_kind();
        let gvk = GroupVersionKind::gvk("keda.sh", "v1alpha1", "ScaledObject");
        discovery::pinned_kind(&self.context.client, &gvk)
            .await
            .ok()?;
        let watches = &self.context.watches;
        let parts = dynamic_apis(&self.context, &kind).into_iter();
        let parts = parts.map(|(namespace, api)| {
            let part = watches.cache(api, Selection::default())?;
            Ok::<_, WatchesStopped>((namespace, part))
        });
        let whole = watches.union(parts.collect::<Result<_, _>>().ok()?).ok()?;
        let (by, enqueuer) = (self.by_target.clone(), self.enqueuer.clone());
        whole.subscribe(move |change| {
            let object: &DynamicObject = change.object();
            let target = object.data["spec"]["scaleTargetRef"]["name"].as_str();
            enqueue_by(&by, change.key().namespace(), target, &enqueuer);
        });
        self.keda.lock().objects = Some(whole.clone());
        Some(whole)
    }
}

fn enqueue_by(
    by_target: &Index<ElastiService>,
    namespace: &str,
    target: Option<&str>,
    enqueuer: &Enqueuer<Key>,
) {
    let key = target.map(|target| Key::new(namespace, target).to_string());
    for service in key.into_iter().flat_map(|key| by_target.get(&key)) {
        enqueuer.enqueue(Key::of(&*service));
    }
}
