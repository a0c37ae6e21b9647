//! Platform queues: which actions a pool of workers runs.
//!
//! The scheduler compares sets of platform properties for equality, and needs them in the order of names and
//! values. The instance name of an action has to begin with the prefix of the queue.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

use crate::api::{BuildbarnWorkerSpec, PlatformProperty};

/// The image in which actions run, unless the spec names another.
pub const DEFAULT_RUNNER_IMAGE: &str = "ghcr.io/catthehacker/ubuntu:act-22.04";

/// A queue of the scheduler, with one size class.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueName {
    /// The prefix of the instance names.
    pub instance_name_prefix: String,
    /// The platform properties, in order.
    pub platform: Vec<PlatformProperty>,
    /// The size class.
    pub size_class: u32,
}

impl QueueName {
    /// The queue of a pool.
    pub fn of(spec: &BuildbarnWorkerSpec) -> Self {
        Self {
            instance_name_prefix: spec.instance_name_prefix.clone().unwrap_or_default(),
            platform: ordered(&platform(spec)),
            size_class: spec.size_class.unwrap_or(0),
        }
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let properties: Vec<_> = self
            .platform
            .iter()
            .map(|it| format!("{}={}", it.name, it.value))
            .collect();
        let prefix = &self.instance_name_prefix;
        write!(
            f,
            "instance {prefix:?} platform {{{}}}",
            properties.join(", ")
        )?;
        if self.size_class != 0 {
            write!(f, " size class {}", self.size_class)?;
        }
        Ok(())
    }
}

/// The platform properties of a pool.
pub fn platform(spec: &BuildbarnWorkerSpec) -> Vec<PlatformProperty> {
    spec.platform.clone().unwrap_or_else(|| {
        let image = spec.runner_image.as_deref().unwrap_or(DEFAULT_RUNNER_IMAGE);
        vec![
            PlatformProperty::new("OSFamily", "linux"),
            PlatformProperty::new("container-image", format!("docker://{image}")),
        ]
    })
}

/// The properties in the order that the scheduler needs, each once.
pub fn ordered(properties: &[PlatformProperty]) -> Vec<PlatformProperty> {
    let set: BTreeSet<_> = properties.iter().cloned().collect();
    set.into_iter().collect()
}

/// Why an action finds no workers: the nearest pool, and how it differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestPool {
    /// The pool.
    pub pool: String,
    /// The differences, each a sentence.
    pub differences: Vec<String>,
}

/// The pool that differs least from what an action asks for; none if there are no pools. No differences
/// means that it matches.
pub fn nearest_pool(
    instance_name: &str,
    wanted: &[PlatformProperty],
    pools: &[(String, QueueName)],
) -> Option<NearestPool> {
    let compared = pools.iter().map(|(pool, queue)| NearestPool {
        pool: pool.clone(),
        differences: differences(instance_name, wanted, queue),
    });
    compared.min_by_key(|it| (it.differences.len(), it.pool.clone()))
}

fn differences(instance_name: &str, wanted: &[PlatformProperty], queue: &QueueName) -> Vec<String> {
    let mut found = Vec::new();
    let prefix = &queue.instance_name_prefix;
    if !has_prefix(instance_name, prefix) {
        found.push(format!(
            "the instance name {instance_name:?} does not begin with {prefix:?}"
        ));
    }
    let (wanted, offered): (BTreeSet<_>, BTreeSet<_>) =
        (wanted.iter().collect(), queue.platform.iter().collect());
    for property in wanted.difference(&offered) {
        let others = offered.iter().find(|it| it.name == property.name);
        let PlatformProperty { name, value } = property;
        found.push(match others {
            Some(other) => format!(
                "the action has {name}={value:?}, the pool has {name}={:?}",
                other.value
            ),
            None => format!("the action has {name}={value:?}, which the pool does not have"),
        });
    }
    for property in offered.difference(&wanted) {
        if wanted.iter().all(|it| it.name != property.name) {
            let PlatformProperty { name, value } = property;
            found.push(format!(
                "the pool has {name}={value:?}, which the action does not have"
            ));
        }
    }
    found
}

/// Instance names consist of parts between slashes, and a prefix of whole parts.
pub fn has_prefix(instance_name: &str, prefix: &str) -> bool {
    let rest = instance_name.strip_prefix(prefix);
    prefix.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The instance name and the platform in the scheduler's message that no workers exist for them, such as
/// `No workers exist for instance name prefix "" platform {"properties":[{"name":"a","value":"b"}]}`.
pub fn parse_refusal(message: &str) -> Option<(String, Vec<PlatformProperty>)> {
    let (before, platform) = message.split_once("platform ")?;
    let instance = before.rsplit_once("instance").map_or("", |(_, rest)| rest);
    let instance = instance.split('"').nth(1).unwrap_or_default();
    let start = platform.find('{')?;
    let mut values = serde_json::Deserializer::from_str(&platform[start..]).into_iter();
    let value: serde_json::Value = values.next()?.ok()?;
    let properties = value["properties"].as_array().into_iter().flatten();
    let text = |property: &serde_json::Value, field: &str| {
        property[field].as_str().unwrap_or_default().to_owned()
    };
    let properties = properties
        .map(|it| PlatformProperty::new(text(it, "name"), text(it, "value")))
        .collect();
    Some((instance.to_owned(), properties))
}
