//! What a spec must not say, beyond what the definitions refuse. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Component, ComponentKind, ComponentSpec, objects, settings};
use crate::{
    api::{
        Access, Authentication, Authorizer, BuildbarnStorageSpec, BuildbarnWorkerSpec, Execution,
        MAX_PODS, MAX_SHARDS, PlatformProperty, parse_quantity,
    },
    configuration::geometry,
    sharding::duplicate_key,
};

/// Why a component is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The reason of the condition.
    pub reason: &'static str,
    /// What is wrong and what to do.
    pub message: String,
}

impl Problem {
    /// A problem.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { reason, message }
    }
}

/// The first problem of a component, as one of its farm.
pub fn problem(component: &Component, farm: &[Component]) -> Option<Problem> {
    let name = component.name();
    if !is_label(name) {
        let message = format!(
            "metadata.name is {name:?}, and Services of that name cannot exist: use at most 63 \
             lower-case letters, digits and dashes, beginning with a letter"
        );
        return Some(Problem::new("InvalidName", message));
    }
    let excluded = too_many_replicas(component).or_else(|| empty_image(component));
    if excluded.is_some() {
        return excluded;
    }
    let found = match &component.spec {
        ComponentSpec::Storage(spec) => storage(component, spec, farm),
        ComponentSpec::Scheduler(spec) => scheduler(component, farm).or_else(|| {
            let execution = spec.execution.as_ref();
            let (default, maximum) = (
                Execution::default_seconds(execution),
                Execution::maximum_seconds(execution),
            );
            (default > maximum).then(|| {
                let message = format!(
                    "spec.execution: the default timeout of {default} s is longer than the maximum \
                     of {maximum} s"
                );
                Problem::new("InvalidTimeouts", message)
            })
        }),
        ComponentSpec::Worker(spec) => worker(component, spec, farm),
        ComponentSpec::Frontend(spec) => spec.access.as_ref().and_then(access),
        ComponentSpec::Browser(_) => None,
    };
    found.or_else(|| reserved_variable(component))
}

/// The definitions exclude such numbers. An object from before they did has a finding.
fn too_many_replicas(component: &Component) -> Option<Problem> {
    let (maximum, what) = match component.kind {
        ComponentKind::Storage => (MAX_SHARDS, "shards"),
        _ => (MAX_PODS, "pods"),
    };
    let replicas = component.replicas();
    (replicas > maximum).then(|| {
        let message = format!(
            "spec.replicas is {replicas}, and at most {maximum} {what} are possible: use fewer"
        );
        Problem::new("TooManyReplicas", message)
    })
}

/// The server would refuse the pods of an image without a name.
fn empty_image(component: &Component) -> Option<Problem> {
    let worker = component.worker();
    let runner = worker.and_then(|it| it.runner_image.as_deref());
    let installer = worker.and_then(|it| it.runner_installer_image.as_deref());
    let images = [
        ("image", Some(component.image())),
        ("runnerImage", runner),
        ("runnerInstallerImage", installer),
    ];
    let is_empty = |(_, image): &(&str, Option<&str>)| image.is_some_and(|it| it.trim().is_empty());
    images.into_iter().find(is_empty).map(|(field, _)| {
        let message =
            format!("spec.{field} is empty: name an image, or leave the field out for the default");
        Problem::new("InvalidImage", message)
    })
}

fn is_label(name: &str) -> bool {
    let valid = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    name.len() <= 63
        && name.bytes().all(valid)
        && name
            .bytes()
            .next()
            .is_some_and(|it| it.is_ascii_lowercase())
        && !name.ends_with('-')
}

fn storage(
    component: &Component,
    spec: &BuildbarnStorageSpec,
    farm: &[Component],
) -> Option<Problem> {
    let first = settings::storage_of(farm).map(Component::name);
    if first.is_some_and(|first| first != component.name() && !component.is_deleting()) {
        let message = format!(
            "the farm has the storage {} already; give one of them another label buildbarn.io/farm",
            first.unwrap_or_default()
        );
        return Some(Problem::new("SecondStorage", message));
    }
    let shards = settings::wanted_shards(spec);
    if shards.is_empty() {
        let message = "spec.replicas is 0, and a farm without shards keeps nothing: use at least 1";
        return Some(Problem::new("NoShards", message));
    }
    if spec.shards.len() > shards.len() {
        let message = format!(
            "spec.shards has {} entries, and spec.replicas is {}: make them equal",
            spec.shards.len(),
            shards.len()
        );
        return Some(Problem::new("InvalidShards", message));
    }
    if let Some(key) = duplicate_key(&shards) {
        let message =
            format!("spec.shards: the key {key:?} occurs twice; a key is one shard's identity");
        return Some(Problem::new("DuplicateShardKey", message));
    }
    if shards
        .iter()
        .any(|shard| shard.weight == 0 || shard.key.is_empty())
    {
        let message = "spec.shards: every shard needs a key and a weight of at least 1";
        return Some(Problem::new("InvalidShards", message));
    }
    let names = objects::volume_names(spec);
    for required in ["cas", "ac"] {
        if !names.iter().any(|name| name == required) {
            let message = format!("spec.volumeClaimTemplates has no claim {required:?}");
            return Some(Problem::new("MissingVolume", message));
        }
    }
    names.iter().find_map(|volume| sizes(spec, volume))
}

fn sizes(spec: &BuildbarnStorageSpec, volume: &str) -> Option<Problem> {
    let invalid = |message: String| Some(Problem::new("InvalidSize", message));
    let Some(geometry) = geometry(spec, volume) else {
        return invalid(format!(
            "spec.stores.{volume}: a size is no quantity such as 32Gi"
        ));
    };
    let claims = objects::claims(spec);
    let claim = claims.iter().find(|it| it["metadata"]["name"] == *volume);
    let request = claim.and_then(|it| it.pointer("/spec/resources/requests/storage"));
    let request = request.and_then(Value::as_str).and_then(parse_quantity);
    let needed = geometry.size.saturating_add(geometry.index_size);
    if request.is_some_and(|request| request < needed) {
        return invalid(format!(
            "spec.stores.{volume} needs {needed} bytes, and the volume {volume} has {} bytes: make \
             the volume larger or the store smaller",
            request.unwrap_or_default()
        ));
    }
    if geometry.block_size() < 4096 {
        return invalid(format!(
            "spec.stores.{volume}: a block, the largest blob that can be stored, would have {} bytes",
            geometry.block_size()
        ));
    }
    None
}

fn scheduler(component: &Component, farm: &[Component]) -> Option<Problem> {
    if component.replicas() > 1 {
        let message = "spec.replicas is more than 1, and each scheduler would have its own queue: \
             use 1, or several schedulers with different instanceNamePrefix";
        return Some(Problem::new("TooManyReplicas", message));
    }
    let prefix = settings::prefix_of(component);
    let mut others = settings::of_kind(farm, ComponentKind::Scheduler);
    let other = others
        .find(|it| it.seniority() < component.seniority() && settings::prefix_of(it) == prefix);
    other.map(|other| {
        let message = format!(
            "the scheduler {} has the instance name prefix {prefix:?} too: use another",
            other.name()
        );
        Problem::new("DuplicatePrefix", message)
    })
}

fn worker(
    component: &Component,
    spec: &BuildbarnWorkerSpec,
    farm: &[Component],
) -> Option<Problem> {
    let instance = spec.instance_name();
    if !is_label(instance) {
        let message = format!(
            "spec.instance is {instance:?}: use at most 63 lower-case letters, digits and dashes, \
             beginning with a letter"
        );
        return Some(Problem::new("InvalidInstance", message));
    }
    let mut seen = BTreeSet::new();
    for property in spec.platform.iter().flatten() {
        let PlatformProperty { name, value } = property;
        if name.is_empty() {
            let message = "spec.platform: a property has no name";
            return Some(Problem::new("InvalidPlatform", message));
        }
        if !seen.insert(property) {
            let message = format!("spec.platform: {name}={value:?} occurs twice");
            return Some(Problem::new("InvalidPlatform", message));
        }
    }
    if settings::scheduler_of(farm, spec).is_none() && !component.is_deleting() {
        let message =
            "the farm has no BuildbarnScheduler for the instance name prefix of this pool";
        return Some(Problem::new("WaitingForScheduler", message));
    }
    None
}

#[expect(
    clippy::too_many_lines,
    reason = "one list of fields for each of two checks"
)]
fn access(access: &Access) -> Option<Problem> {
    let Access {
        authentication,
        execute,
        read,
        write,
        action_cache_write,
        ..
    } = access;
    if let Some(authentication) = authentication {
        let Authentication {
            allow,
            deny,
            client_certificate,
            jwt,
        } = authentication;
        let set = [
            allow.is_some(),
            deny.is_some(),
            client_certificate.is_some(),
            jwt.is_some(),
        ];
        if set.iter().filter(|set| **set).count() != 1 {
            let message = "spec.access.authentication: set exactly one of allow, deny, \
                 clientCertificate and jwt";
            return Some(Problem::new("InvalidAccess", message));
        }
        if client_certificate.is_some() && access.tls.is_none() {
            let message = "spec.access: client certificates need spec.access.tls";
            return Some(Problem::new("InvalidAccess", message));
        }
    }
    let authorizers = [
        ("execute", execute),
        ("read", read),
        ("write", write),
        ("actionCacheWrite", action_cache_write),
    ];
    let mut authorizers = authorizers.into_iter();
    let invalid = authorizers.find(|(_, authorizer)| {
        let Some(authorizer) = authorizer else {
            return false;
        };
        let Authorizer {
            allow,
            deny,
            instance_name_prefixes,
            jmespath,
        } = authorizer;
        let set = [
            allow.is_some(),
            deny.is_some(),
            instance_name_prefixes.is_some(),
            jmespath.is_some(),
        ];
        set.iter().filter(|set| **set).count() != 1
    });
    invalid.map(|(name, _)| {
        let message = format!(
            "spec.access.{name}: set exactly one of allow, deny, instanceNamePrefixes and jmespath"
        );
        Problem::new("InvalidAccess", message)
    })
}

/// Variables that the configurations read.
fn reserved_variable(component: &Component) -> Option<Problem> {
    let reserved = ["NODE_NAME", "POD_NAME", "POD_IP"];
    let env = component.pod().map(|pod| &pod.env)?;
    let mut names = env.iter().filter_map(|it| it["name"].as_str());
    let taken = names.find(|name| reserved.contains(name))?;
    let message = format!("spec.pod.env: {taken} is set by the operator");
    Some(Problem::new("ReservedVariable", message))
}
