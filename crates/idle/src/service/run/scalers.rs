//! Looks for others who scale the same.

use std::{collections::HashMap, time::Duration};

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, GroupVersionKind},
    discovery,
};
use neap_kit::{
    clock::Uptime,
    controller::Trigger,
    key::Key,
    site::Site,
    watch::{Cache, Ended, Index, Selection},
    wiring::Wiring,
};
use parking_lot::Mutex;
use serde_json::Value;

use super::targets::{Found, dynamic};
use crate::{
    api::ElastiService,
    service::{conflict, verdict::Because},
    target::{Target, scaled_objects},
};

/// So often it is looked whether KEDA has come.
const OFTEN: Duration = Duration::from_mins(5);

/// Knows who else scales what.
pub(super) struct Scalers {
    site: Site,
    hpas: Cache<HorizontalPodAutoscaler>,
    keda: Mutex<Keda>,
    by_target: Index<ElastiService>,
    trigger: Trigger<Key>,
    /// Who holds the replicas of a target, by the version in which it was looked at.
    held: Mutex<HashMap<Key, Held>>,
}

/// The version of a target, and who holds its replicas then.
type Held = (Option<String>, Option<Because>);

/// ScaledObjects, once the server has such a kind.
#[derive(Default)]
struct Keda {
    asked: Option<Uptime>,
    objects: Option<Cache<DynamicObject>>,
}

impl Scalers {
    pub(super) fn new(
        wiring: &mut Wiring,
        site: &Site,
        by_target: Index<ElastiService>,
    ) -> Result<Self, Ended> {
        let hpas = wiring.here::<HorizontalPodAutoscaler>(&Selection::default(), false)?;
        let by = by_target.clone();
        wiring.follow(&hpas, move |change, trigger| {
            let aim = change.object().spec.scale_target_ref.name.as_str();
            tell(&by, change.key().namespace(), Some(aim), trigger);
        });
        Ok(Self {
            site: site.clone(),
            hpas,
            keda: Mutex::default(),
            by_target,
            trigger: wiring.trigger(),
            held: Mutex::default(),
        })
    }

    /// Who else scales what `service` scales.
    pub(super) async fn conflict(&self, service: &ElastiService, found: &Found) -> Option<Because> {
        let namespace = service.namespace().unwrap_or_default();
        let hpas = self.hpas.list(&namespace);
        let hpas: Vec<_> = hpas.iter().map(|hpa| &**hpa).collect();
        let scaled_objects = self.scaled_objects(&namespace).await;
        let beside = conflict::conflict(service, &hpas, &scaled_objects);
        match beside {
            Some(beside) => Some(beside),
            None => self.held(service, found).await,
        }
    }

    pub(super) fn forget(&self, key: &Key) {
        self.held.lock().remove(key);
    }

    /// Who holds the replicas of the target. Asked once for each version of it.
    async fn held(&self, service: &ElastiService, found: &Found) -> Option<Because> {
        let (Target::Scaled { seen, .. }, Some(kind)) = (&found.target, &found.kind) else {
            return None;
        };
        let key = Key::of(service);
        let version = &seen.resource_version;
        if let Some((known, held)) = self.held.lock().get(&key)
            && known == version
        {
            return held.clone();
        }
        let client = self.site.client.clone();
        let api: Api<DynamicObject> = Api::namespaced_with(client, key.namespace(), &kind.resource);
        let name = &service.spec.scale_target_ref.name;
        // Whoever does not say is not known to be in the way.
        let target = api.get_metadata(name).await.ok()?;
        let held = conflict::held(target.managed_fields());
        let known = (target.resource_version(), held.clone());
        self.held.lock().insert(key, known);
        held
    }

    async fn scaled_objects(&self, namespace: &str) -> Vec<(String, Value)> {
        let objects = self.watched().await;
        let objects = objects.map(|objects| objects.list(namespace));
        let objects = objects.into_iter().flatten();
        objects
            .map(|object| (object.name_any(), object.data["spec"].clone()))
            .collect()
    }

    /// ScaledObjects, if the server has such a kind.
    async fn watched(&self) -> Option<Cache<DynamicObject>> {
        let now = self.site.clock.uptime();
        {
            let mut keda = self.keda.lock();
            let lately = |asked: Uptime| now.saturating_sub(asked) < OFTEN;
            if keda.objects.is_some() || keda.asked.is_some_and(lately) {
                return keda.objects.clone();
            }
            keda.asked = Some(now);
        }
        let kind = scaled_objects();
        let named = GroupVersionKind::gvk("keda.sh", "v1alpha1", "ScaledObject");
        discovery::pinned_kind(&self.site.client, &named)
            .await
            .ok()?;
        let watches = &self.site.watches;
        let parts = dynamic(&self.site, &kind).into_iter();
        let parts = parts.map(|(namespace, api)| {
            let part = watches.of(api, Selection::default())?;
            Ok::<_, Ended>((namespace, part))
        });
        let whole = watches
            .together(parts.collect::<Result<_, _>>().ok()?)
            .ok()?;
        let (by, trigger) = (self.by_target.clone(), self.trigger.clone());
        whole.follow(move |change| {
            let object: &DynamicObject = change.object();
            let aim = object.data["spec"]["scaleTargetRef"]["name"].as_str();
            tell(&by, change.key().namespace(), aim, &trigger);
        });
        self.keda.lock().objects = Some(whole.clone());
        Some(whole)
    }
}

fn tell(
    by_target: &Index<ElastiService>,
    namespace: &str,
    aim: Option<&str>,
    trigger: &Trigger<Key>,
) {
    let key = aim.map(|aim| Key::new(namespace, aim).to_string());
    for service in key.into_iter().flat_map(|key| by_target.get(&key)) {
        trigger.changed(Key::of(&*service));
    }
}
