//! Reads what a pod is made of.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    core::v1::{
        ConfigMap, Container, PersistentVolumeClaim, Pod, Secret, ServiceAccount,
        ServiceAccountTokenProjection,
    },
};
use kube::ResourceExt;
use neap_kit::{
    apply::{Error, Hand},
    clock::Clock,
    key::Key,
    watch::Cache,
};
use parking_lot::Mutex;

use super::source::Sources;

/// What names an object that a pod is made of, such as `configmap shop/colours`.
pub(super) fn reference(kind: &str, namespace: &str, name: &str) -> String {
    format!("{kind} {namespace}/{name}")
}

/// Finds the folder of a claim that is bound.
pub(super) type FolderOf = Box<dyn Fn(&PersistentVolumeClaim) -> Option<PathBuf> + Send + Sync>;

/// Where a pod's parts are read.
pub(super) struct Gatherer {
    pub(super) config_maps: Cache<ConfigMap>,
    pub(super) secrets: Cache<Secret>,
    pub(super) claims: Cache<PersistentVolumeClaim>,
    pub(super) hand: Hand,
    pub(super) clock: Clock,
    /// Tokens that were asked for, by pod and audience, with the time to ask again.
    pub(super) tokens: Mutex<BTreeMap<(String, String), (String, Timestamp)>>,
    /// The folder of a claim's volume.
    pub(super) folder_of: FolderOf,
}

impl Gatherer {
    /// Everything that `pod` names and that exists.
    pub(super) async fn sources(&self, pod: &Pod) -> Result<Sources, Error> {
        let namespace = pod.namespace().unwrap_or_default();
        let mut sources = Sources {
            pod: pod.clone(),
            ..Sources::default()
        };
        for name in named(pod).into_iter().collect::<BTreeSet<_>>() {
            match name {
                Named::ConfigMap(name) => {
                    let found = self.config_maps.get(&Key::new(&namespace, &name));
                    sources
                        .config_maps
                        .extend(found.map(|map| (name, (*map).clone())));
                }
                Named::Secret(name) => {
                    let found = self.secrets.get(&Key::new(&namespace, &name));
                    sources
                        .secrets
                        .extend(found.map(|secret| (name, (*secret).clone())));
                }
                Named::Claim(name) => {
                    let found = self.claims.get(&Key::new(&namespace, &name));
                    let folder = found.and_then(|claim| (self.folder_of)(&claim));
                    sources.claims.extend(folder.map(|folder| (name, folder)));
                }
            }
        }
        for projection in tokens(pod) {
            let audience = projection.audience.clone().unwrap_or_default();
            let token = self.token(pod, projection).await?;
            sources.tokens.insert(audience, token);
        }
        Ok(sources)
    }

    /// A token for the pod's account, asked for anew when most of its time is over.
    async fn token(
        &self,
        pod: &Pod,
        asked: &ServiceAccountTokenProjection,
    ) -> Result<String, Error> {
        let audience = asked.audience.clone().unwrap_or_default();
        let key = (pod.uid().unwrap_or_default(), audience.clone());
        let known = self.tokens.lock().get(&key).cloned();
        if let Some((token, _)) = known.filter(|(_, until)| *until > self.clock.now()) {
            return Ok(token);
        }
        let lasts = asked.expiration_seconds.unwrap_or(3600);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: (!audience.is_empty()).then(|| vec![audience]),
                expiration_seconds: Some(lasts),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: pod.metadata.name.clone(),
                    uid: pod.metadata.uid.clone(),
                }),
            }),
            ..TokenRequest::default()
        };
        let account = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.service_account_name.clone());
        let account = Key::new(
            &pod.namespace().unwrap_or_default(),
            account.as_deref().unwrap_or("default"),
        );
        let answer: TokenRequest = self
            .hand
            .post::<ServiceAccount, _, _>(&account, "token", &request)
            .await?;
        let token = answer
            .status
            .and_then(|status| status.token)
            .unwrap_or_default();
        let good_for = Duration::from_secs(lasts.unsigned_abs()).mul_f64(0.8);
        let until = self
            .clock
            .now()
            .checked_add(good_for)
            .unwrap_or(Timestamp::MAX);
        self.tokens.lock().insert(key, (token.clone(), until));
        Ok(token)
    }

    /// Forgets what was asked for a pod.
    pub(super) fn forget(&self, uid: &str) {
        self.tokens.lock().retain(|(pod, _), _| pod != uid);
    }
}

/// An object that a pod names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    ConfigMap(String),
    Secret(String),
    Claim(String),
}

/// All objects that `pod` names, to find pods by.
pub(super) fn references(pod: &Pod) -> Vec<String> {
    let namespace = pod.namespace().unwrap_or_default();
    let words = named(pod).into_iter().map(|one| match one {
        Named::ConfigMap(name) => reference("configmap", &namespace, &name),
        Named::Secret(name) => reference("secret", &namespace, &name),
        Named::Claim(name) => reference("claim", &namespace, &name),
    });
    words.collect()
}

fn named(pod: &Pod) -> Vec<Named> {
    let Some(spec) = &pod.spec else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for volume in spec.volumes.iter().flatten() {
        all.extend(
            volume
                .config_map
                .iter()
                .map(|map| Named::ConfigMap(map.name.clone())),
        );
        let secret = volume
            .secret
            .as_ref()
            .and_then(|secret| secret.secret_name.clone());
        all.extend(secret.map(Named::Secret));
        let claim = volume.persistent_volume_claim.iter();
        all.extend(claim.map(|claim| Named::Claim(claim.claim_name.clone())));
        for source in volume
            .projected
            .iter()
            .flat_map(|all| all.sources.iter().flatten())
        {
            all.extend(
                source
                    .config_map
                    .iter()
                    .map(|map| Named::ConfigMap(map.name.clone())),
            );
            all.extend(
                source
                    .secret
                    .iter()
                    .map(|secret| Named::Secret(secret.name.clone())),
            );
        }
    }
    let containers = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    containers.for_each(|container| all.extend(of_environment(container)));
    all
}

fn of_environment(container: &Container) -> Vec<Named> {
    let mut all = Vec::new();
    for from in container.env_from.iter().flatten() {
        all.extend(
            from.config_map_ref
                .iter()
                .map(|map| Named::ConfigMap(map.name.clone())),
        );
        all.extend(
            from.secret_ref
                .iter()
                .map(|secret| Named::Secret(secret.name.clone())),
        );
    }
    for from in container
        .env
        .iter()
        .flatten()
        .filter_map(|one| one.value_from.as_ref())
    {
        all.extend(
            from.config_map_key_ref
                .iter()
                .map(|map| Named::ConfigMap(map.name.clone())),
        );
        all.extend(
            from.secret_key_ref
                .iter()
                .map(|secret| Named::Secret(secret.name.clone())),
        );
    }
    all
}

fn tokens(pod: &Pod) -> impl Iterator<Item = &ServiceAccountTokenProjection> {
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    let projected = volumes.filter_map(|volume| volume.projected.as_ref());
    let sources = projected.flat_map(|projected| projected.sources.iter().flatten());
    sources.filter_map(|source| source.service_account_token.as_ref())
}
