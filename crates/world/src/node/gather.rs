//! Reads what a pod is made of.

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
    apply::{Error, Hand},
    clock::Clock,
    key::Key,
    site::Site,
    watch::{Cache, Ended},
};
use parking_lot::Mutex;

use super::source::Sources;
use crate::workload::{claim_name, reason};

/// What names an object that a pod is made of, such as `configmap shop/colours`.
pub(super) fn reference(kind: &str, namespace: &str, name: &str) -> String {
    format!("{kind} {namespace}/{name}")
}

/// How long a token is used that could not be renewed, before that is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// A token and the time to ask for another.
type Token = (String, Timestamp);

/// Where a pod's parts are read.
pub(super) struct Gatherer {
    pub(super) config_maps: Cache<ConfigMap>,
    pub(super) secrets: Cache<Secret>,
    pub(super) claims: Cache<PersistentVolumeClaim>,
    pub(super) volumes: Cache<PersistentVolume>,
    hand: Hand,
    clock: Clock,
    /// Tokens that were asked for, by pod and audience, with the time to ask again.
    tokens: Mutex<BTreeMap<(String, String), Token>>,
}

impl Gatherer {
    /// Reads at `site`, as `name`.
    pub(super) fn new(site: &Site, name: &str) -> Result<Self, Ended> {
        Ok(Self {
            config_maps: site.all()?,
            secrets: site.all()?,
            claims: site.all()?,
            volumes: site.all()?,
            hand: site.hand(name),
            clock: site.clock,
            tokens: Mutex::default(),
        })
    }

    /// Resolves once everything that was there in the beginning is known.
    pub(super) async fn synced(&self) {
        tokio::join!(self.config_maps.synced(), self.secrets.synced());
        tokio::join!(self.claims.synced(), self.volumes.synced());
    }

    /// Everything that `pod` names and that exists, and when some of it has to be had anew.
    pub(super) async fn sources(&self, pod: &Pod) -> (Sources, Option<Duration>) {
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

    /// Where the data of a claim is.
    fn folder(&self, claim: &PersistentVolumeClaim) -> Result<PathBuf, String> {
        let name = claim.name_any();
        let status = claim.status.as_ref();
        let is_bound = status.and_then(|status| status.phase.as_deref()) == Some("Bound");
        let volume = claim
            .spec
            .as_ref()
            .and_then(|spec| spec.volume_name.as_ref());
        let volume = volume.filter(|_| is_bound).ok_or_else(|| {
            format!("persistentvolumeclaim \"{name}\" is not bound: kubectl describe pvc {name} says why")
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
            format!("persistentvolume \"{volume}\" is of a kind that this node does not have")
        })
    }

    /// A token for the pod's account, asked for anew when most of its time is over. If that fails
    /// the old one is used for as long as it is good.
    async fn token(
        &self,
        pod: &Pod,
        asked: &ServiceAccountTokenProjection,
    ) -> Result<Token, String> {
        let audience = asked.audience.clone().unwrap_or_default();
        let key = (pod.uid().unwrap_or_default(), audience);
        let known = self.tokens.lock().get(&key).cloned();
        let now = self.clock.now();
        if let Some(known) = known.clone().filter(|(_, until)| *until > now) {
            return Ok(known);
        }
        match (self.ask(pod, asked).await, known) {
            (Ok(token), _) => {
                self.tokens.lock().insert(key, token.clone());
                Ok(token)
            }
            (Err(error), Some((token, _))) => {
                tracing::warn!(pod = key.0, %error, "a token could not be renewed");
                Ok((token, now.checked_add(TRY_AGAIN).unwrap_or(now)))
            }
            (Err(error), None) => {
                let why = match &error {
                    Error::Replaced(account) => {
                        format!("serviceaccount \"{}\" not found", account.name())
                    }
                    error => reason(error),
                };
                Err(format!("no token for the pod's service account: {why}"))
            }
        }
    }

    async fn ask(&self, pod: &Pod, asked: &ServiceAccountTokenProjection) -> Result<Token, Error> {
        let audience = asked.audience.clone().unwrap_or_default();
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
        Ok((token, until))
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
        all.extend(claim_name(pod, volume).map(Named::Claim));
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
