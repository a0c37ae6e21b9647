//! Reads the objects that a pod refers to.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    core::v1::{
        ConfigMap, Container, PersistentVolume, PersistentVolumeClaim, Pod, Secret, ServiceAccount,
        ServiceAccountTokenProjection,
    },
};
use kube::ResourceExt;
use neap_kit::{
    apply::{Error, Writer},
    clock::Clock,
    context::Context,
    key::Key,
    watch::{Cache, WatchesStopped},
};
use parking_lot::Mutex;

use super::sources::PodSources;
use crate::workload::{claim_name, error_message};

/// The index key of an object that a pod refers to, such as `configmap shop/colours`.
pub(super) fn reference(kind: &str, namespace: &str, name: &str) -> String {
    format!("{kind} {namespace}/{name}")
}

/// The delay before another attempt to renew a token.
const TOKEN_RETRY_DELAY: Duration = Duration::from_secs(10);

/// A token and the time to renew it.
type Token = (String, Timestamp);

/// Reads the ConfigMaps, Secrets, claims and tokens of pods.
pub(super) struct SourceReader {
    pub(super) config_maps: Cache<ConfigMap>,
    pub(super) secrets: Cache<Secret>,
    pub(super) claims: Cache<PersistentVolumeClaim>,
    pub(super) volumes: Cache<PersistentVolume>,
    writer: Writer,
    clock: Clock,
    /// Requested tokens by pod uid and audience.
    tokens: Mutex<BTreeMap<(String, String), Token>>,
}

impl SourceReader {
    /// Reads from the caches of `context`; requests tokens as `name`.
    pub(super) fn new(context: &Context, name: &str) -> Result<Self, WatchesStopped> {
        Ok(Self {
            config_maps: context.cache()?,
            secrets: context.cache()?,
            claims: context.cache()?,
            volumes: context.cache()?,
            writer: context.writer(name),
            clock: context.clock,
            tokens: Mutex::default(),
        })
    }

    /// Resolves once all caches are synced.
    pub(super) async fn synced(&self) {
        tokio::join!(self.config_maps.synced(), self.secrets.synced());
        tokio::join!(self.claims.synced(), self.volumes.synced());
    }

    /// Everything that `pod` refers to and that exists, and the time until a token has to be
    /// renewed.
    pub(super) async fn sources(&self, pod: &Pod) -> (PodSources, Option<Duration>) {
        let namespace = pod.namespace().unwrap_or_default();
        let mut sources = PodSources {
            pod: pod.clone(),
            ..PodSources::default()
        };
        for name in pod_references(pod).into_iter().collect::<BTreeSet<_>>() {
            match name {
                PodReference::ConfigMap(name) => {
                    let found = self.config_maps.get(&Key::new(&namespace, &name));
                    sources
                        .config_maps
                        .extend(found.map(|map| (name, (*map).clone())));
                }
                PodReference::Secret(name) => {
                    let found = self.secrets.get(&Key::new(&namespace, &name));
                    sources
                        .secrets
                        .extend(found.map(|secret| (name, (*secret).clone())));
                }
                PodReference::Claim(name) => {
                    let found = self.claims.get(&Key::new(&namespace, &name));
                    let folder = match found {
                        Some(claim) => self.folder(&claim),
                        None => Err(format!("persistentvolumeclaim \"{name}\" not found")),
                    };
                    sources.claims.insert(name, folder);
                }
            }
        }
        let mut soonest: Option<Timestamp> = None;
        for projection in tokens(pod) {
            let audience = projection.audience.clone().unwrap_or_default();
            let token = self.token(pod, projection).await.map(|(token, until)| {
                soonest = Some(soonest.map_or(until, |soonest| soonest.min(until)));
                token
            });
            sources.tokens.insert(audience, token);
        }
        let now = self.clock.now();
        let wait = |until: Timestamp| Duration::try_from(until.duration_since(now));
        (
            sources,
            soonest.map(|until| wait(until).unwrap_or_default()),
        )
    }

    /// The folder with the data of a claim.
    fn folder(&self, claim: &PersistentVolumeClaim) -> Result<PathBuf, String> {
        let name = claim.name_any();
        let status = claim.status.as_ref();
        let is_bound = status.and_then(|status| status.phase.as_deref()) == Some("Bound");
        let volume = claim
            .spec
            .as_ref()
            .and_then(|spec| spec.volume_name.as_ref());
        let volume = volume.filter(|_| is_bound).ok_or_else(|| {
            format!("persistentvolumeclaim \"{name}\" is not bound: kubectl describe pvc {name} shows why")
        })?;
        let found = self.volumes.get(&Key::new("", volume));
        let found = found.ok_or_else(|| format!("persistentvolume \"{volume}\" not found"))?;
        let spec = found.spec.clone().unwrap_or_default();
        let of_this = spec
            .claim_ref
            .is_some_and(|claimed| claimed.uid == claim.metadata.uid);
        if !of_this {
            return Err(format!(
                "persistentvolume \"{volume}\" belongs to another claim"
            ));
        }
        let path = spec.host_path.map(|path| path.path);
        let path = path.or_else(|| spec.local.map(|local| local.path));
        path.map(PathBuf::from).ok_or_else(|| {
            format!(
                "persistentvolume \"{volume}\" has a volume type that this node does not support"
            )
        })
    }

    /// A token for the pod's service account, renewed when most of its lifetime is over. If that
    /// fails the old one is used while it is valid.
    async fn token(
        &self,
        pod: &Pod,
        projection: &ServiceAccountTokenProjection,
    ) -> Result<Token, String> {
        let audience = projection.audience.clone().unwrap_or_default();
        let key = (pod.uid().unwrap_or_default(), audience);
        let cached = self.tokens.lock().get(&key).cloned();
        let now = self.clock.now();
        if let Some(cached) = cached.clone().filter(|(_, until)| *until > now) {
            return Ok(cached);
        }
        match (self.request_token(pod, projection).await, cached) {
            (Ok(token), _) => {
                self.tokens.lock().insert(key, token.clone());
                Ok(token)
            }
            (Err(error), Some((token, _))) => {
                tracing::warn!(pod = key.0, %error, "a token could not be renewed");
                Ok((token, now.checked_add(TOKEN_RETRY_DELAY).unwrap_or(now)))
            }
            (Err(error), None) => {
                let why = match &error {
                    Error::Conflict(account) => {
                        format!("serviceaccount \"{}\" not found", account.name())
                    }
                    error => error_message(error),
                };
                Err(format!("no token for the pod's service account: {why}"))
            }
        }
    }

    async fn request_token(
        &self,
        pod: &Pod,
        projection: &ServiceAccountTokenProjection,
    ) -> Result<Token, Error> {
        let audience = projection.audience.clone().unwrap_or_default();
        let lifetime = projection.expiration_seconds.unwrap_or(3600);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: (!audience.is_empty()).then(|| vec![audience]),
                expiration_seconds: Some(lifetime),
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
            .writer
            .post::<ServiceAccount, _, _>(&account, "token", &request)
            .await?;
        let token = answer
            .status
            .and_then(|status| status.token)
            .unwrap_or_default();
        let renew_after = Duration::from_secs(lifetime.unsigned_abs()).mul_f64(0.8);
        let until = self
            .clock
            .now()
            .checked_add(renew_after)
            .unwrap_or(Timestamp::MAX);
        Ok((token, until))
    }

    /// Drops the tokens of a pod.
    pub(super) fn forget(&self, uid: &str) {
        self.tokens.lock().retain(|(pod, _), _| pod != uid);
    }
}

/// An object that a pod refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum PodReference {
    ConfigMap(String),
    Secret(String),
    Claim(String),
}

/// The index keys of all objects that `pod` refers to.
pub(super) fn references(pod: &Pod) -> Vec<String> {
    let namespace = pod.namespace().unwrap_or_default();
    let keys = pod_references(pod).into_iter().map(|one| match one {
        PodReference::ConfigMap(name) => reference("configmap", &namespace, &name),
        PodReference::Secret(name) => reference("secret", &namespace, &name),
        PodReference::Claim(name) => reference("claim", &namespace, &name),
    });
    keys.collect()
}

fn pod_references(pod: &Pod) -> Vec<PodReference> {
    let Some(spec) = &pod.spec else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for volume in spec.volumes.iter().flatten() {
        all.extend(
            volume
                .config_map
                .iter()
                .map(|map| PodReference::ConfigMap(map.name.clone())),
        );
        let secret = volume
            .secret
            .as_ref()
            .and_then(|secret| secret.secret_name.clone());
        all.extend(secret.map(PodReference::Secret));
        all.extend(claim_name(pod, volume).map(PodReference::Claim));
        for source in volume
            .projected
            .iter()
            .flat_map(|all| all.sources.iter().flatten())
        {
            all.extend(
                source
                    .config_map
                    .iter()
                    .map(|map| PodReference::ConfigMap(map.name.clone())),
            );
            all.extend(
                source
                    .secret
                    .iter()
                    .map(|secret| PodReference::Secret(secret.name.clone())),
            );
        }
    }
    let containers = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    containers.for_each(|container| all.extend(env_references(container)));
    all
}

fn env_references(container: &Container) -> Vec<PodReference> {
    let mut all = Vec::new();
    for from in container.env_from.iter().flatten() {
        all.extend(
            from.config_map_ref
                .iter()
                .map(|map| PodReference::ConfigMap(map.name.clone())),
        );
        all.extend(
            from.secret_ref
                .iter()
                .map(|secret| PodReference::Secret(secret.name.clone())),
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
                .map(|map| PodReference::ConfigMap(map.name.clone())),
        );
        all.extend(
            from.secret_key_ref
                .iter()
                .map(|secret| PodReference::Secret(secret.name.clone())),
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
