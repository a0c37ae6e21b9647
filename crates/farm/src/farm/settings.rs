//! What the components of a farm have to agree on, from their specs and the status of the storage. Pure.

use std::collections::BTreeMap;

use super::{Component, ComponentKind};
use crate::{
    api::{
        BuildbarnStorageSpec, BuildbarnWorkerSpec, Execution, MAX_SHARDS, ReshardingStage, Shard,
        StorageStatus, parse_quantity, ports,
    },
    configuration::{FarmSettings, SharedStorage},
    platform::has_prefix,
};

const DEFAULT_MESSAGE_BYTES: u64 = 2 << 20;

/// The shards that a spec asks for. Validation refuses more than [`MAX_SHARDS`], and nothing here may grow with
/// such a number.
pub fn wanted_shards(spec: &BuildbarnStorageSpec) -> Vec<Shard> {
    let replicas = spec.replicas.unwrap_or(2).clamp(0, MAX_SHARDS);
    let replicas = usize::try_from(replicas).unwrap_or(0);
    let shards = (0..replicas).map(|replica| {
        let set = spec.shards.get(replica).cloned();
        set.unwrap_or_else(|| Shard {
            key: replica.to_string(),
            weight: 1,
        })
    });
    shards.collect()
}

/// The components of a kind that are not being deleted, in the order of their names.
pub fn of_kind(components: &[Component], kind: ComponentKind) -> impl Iterator<Item = &Component> {
    let components = components.iter();
    components.filter(move |it| it.kind == kind && !it.is_deleting())
}

/// The storage of the farm: the oldest. A farm has one; validation refuses others.
pub fn storage_of(components: &[Component]) -> Option<&Component> {
    oldest(components, ComponentKind::Storage)
}

fn oldest(components: &[Component], kind: ComponentKind) -> Option<&Component> {
    of_kind(components, kind).min_by(|one, other| one.seniority().cmp(&other.seniority()))
}

/// The settings of a farm; none without a storage, which every program needs.
pub fn settings(components: &[Component]) -> Option<FarmSettings> {
    let storage = storage_of(components)?;
    let spec = storage.storage()?;
    let size = spec
        .maximum_message_size
        .as_deref()
        .and_then(parse_quantity);
    Some(FarmSettings {
        namespace: storage.namespace().to_owned(),
        storage: shared_storage(storage.name(), spec, storage.status.storage.as_ref()),
        maximum_message_bytes: size.unwrap_or(DEFAULT_MESSAGE_BYTES),
        browser_url: browser_url(components),
        schedulers: schedulers(components),
    })
}

fn shared_storage(
    name: &str,
    spec: &BuildbarnStorageSpec,
    status: Option<&StorageStatus>,
) -> SharedStorage {
    let Some(status) = status.filter(|status| !status.shards.is_empty()) else {
        let shards = wanted_shards(spec);
        return SharedStorage {
            name: name.to_owned(),
            replicas: shards.len(),
            shards,
            former: None,
        };
    };
    let mut shared = SharedStorage {
        name: name.to_owned(),
        shards: status.shards.clone(),
        former: None,
        replicas: status.shards.len(),
    };
    if let Some(change) = &status.resharding {
        shared.replicas = change.from.len().max(change.to.len());
        if change.stage == ReshardingStage::Copying {
            shared.former = Some(change.from.clone());
        }
    }
    shared
}

fn schedulers(components: &[Component]) -> BTreeMap<String, String> {
    let mut youngest_first: Vec<_> = of_kind(components, ComponentKind::Scheduler).collect();
    youngest_first.sort_by(|one, other| other.seniority().cmp(&one.seniority()));
    // The last one of a prefix is kept.
    youngest_first
        .into_iter()
        .map(|scheduler| (prefix_of(scheduler).to_owned(), scheduler.name().to_owned()))
        .collect()
}

/// The prefix of the instance names that a scheduler serves.
pub fn prefix_of(scheduler: &Component) -> &str {
    let spec = scheduler.scheduler();
    let prefix = spec.and_then(|spec| spec.instance_name_prefix.as_deref());
    prefix.unwrap_or_default()
}

/// The scheduler of a pool: the one with the longest prefix that fits, and the oldest of that prefix.
pub fn scheduler_of<'a>(
    components: &'a [Component],
    worker: &BuildbarnWorkerSpec,
) -> Option<&'a Component> {
    let wanted = worker.instance_name_prefix.as_deref().unwrap_or_default();
    of_kind(components, ComponentKind::Scheduler)
        .filter(|scheduler| has_prefix(wanted, prefix_of(scheduler)))
        .max_by(|one, other| {
            let longer = prefix_of(one).len().cmp(&prefix_of(other).len());
            longer.then_with(|| other.seniority().cmp(&one.seniority()))
        })
}

/// The longest time that an action of the farm may take, in seconds.
pub fn longest_action(components: &[Component]) -> i64 {
    of_kind(components, ComponentKind::Scheduler)
        .filter_map(Component::scheduler)
        .map(|spec| Execution::maximum_seconds(spec.execution.as_ref()))
        .max()
        .unwrap_or_else(|| Execution::maximum_seconds(None))
}

fn browser_url(components: &[Component]) -> String {
    let Some(browser) = oldest(components, ComponentKind::Browser) else {
        return "http://bb-browser.example.com".to_owned();
    };
    let spec = browser.browser();
    let external = spec.and_then(|spec| spec.external_url.clone());
    let host = spec.and_then(|spec| spec.ingress_host.as_deref());
    external.unwrap_or_else(|| match host.filter(|host| !host.is_empty()) {
        Some(host) => format!("http://{host}"),
        None => format!(
            "http://{}.{}:{}",
            browser.name(),
            browser.namespace(),
            ports::BROWSER
        ),
    })
}
