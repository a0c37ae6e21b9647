//! `neap farm list`, `pools` and `bazelrc`.

use std::{collections::BTreeMap, io::Write};

use neap_farm::{
    api::{State, ports},
    area::state_word,
    bazelrc as flags,
    farm::{Component, ComponentKind},
    platform::QueueName,
};
use serde_json::{Value, json};

use super::{
    BazelrcOptions, ListOptions,
    scope::{FarmScope, farm_label, no_such, shown_farm},
};
use crate::{
    exit::Failure,
    inspect::{
        listing::{self, Column, Listed, Listing},
        print,
    },
};

const FARM_COLUMNS: &[Column] = &[
    Column::new("NAMESPACE"),
    Column::new("FARM"),
    Column::new("STATE"),
    Column::new("COMPONENTS"),
    Column::new("WORKERS"),
    Column::new("POOLS").wide(),
    Column::new("WHY"),
];

const POOL_COLUMNS: &[Column] = &[
    Column::new("NAMESPACE"),
    Column::new("NAME"),
    Column::new("STATE"),
    Column::new("PODS"),
    Column::new("ACTIONS"),
    Column::new("DRAINED"),
    Column::new("FARM").wide(),
    Column::new("QUEUE"),
];

pub(super) async fn farms(options: &ListOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let scope = FarmScope::of(&options.scope).await?;
    let read = async || {
        let components = scope.components().await?;
        let mut farms: BTreeMap<(&str, &str), Vec<&Component>> = BTreeMap::new();
        for component in &components {
            let farm = (component.namespace(), component.farm());
            farms.entry(farm).or_default().push(component);
        }
        let items = farms.iter().map(|(farm, it)| Listed {
            name: shown_farm(farm.1),
            cells: farm_row(*farm, it),
            data: farm_json(*farm, it),
        });
        Ok(Listing {
            kind: "FarmList",
            resource: "farm",
            columns: FARM_COLUMNS,
            items: items.collect(),
            empty: format!("No build farm {}.", place(&scope)),
        })
    };
    listing::show(options.listing, scope.clock, out, read).await
}

fn place(scope: &FarmScope) -> String {
    let namespace = scope.namespace.as_deref();
    namespace.map_or("anywhere".to_owned(), |name| format!("in namespace {name}"))
}

fn is_ready(component: &Component) -> bool {
    component.status.state == Some(State::Ready)
}

fn workers(components: &[&Component]) -> (i32, i32) {
    let pools = components
        .iter()
        .filter(|it| it.kind == ComponentKind::Worker);
    pools.fold((0, 0), |(ready, wanted), pool| {
        (ready + pool.status.ready_replicas, wanted + pool.replicas())
    })
}

fn pool_names(components: &[&Component]) -> String {
    let pools = components
        .iter()
        .filter(|it| it.kind == ComponentKind::Worker);
    let names: Vec<_> = pools.map(|pool| pool.name()).collect();
    if names.is_empty() {
        "-".to_owned()
    } else {
        names.join(",")
    }
}

fn farm_row((namespace, farm): (&str, &str), components: &[&Component]) -> Vec<String> {
    let ready = components.iter().filter(|it| is_ready(it)).count();
    let worst = components.iter().find(|it| !is_ready(it));
    let why = worst.map_or(String::new(), |it| {
        let ready = it.status.conditions.iter().find(|it| it.type_ == "Ready");
        let message = ready.map_or("", |it| it.message.lines().next().unwrap_or_default());
        format!("{} {}: {message}", it.kind.kind(), it.name())
    });
    let (ready_workers, wanted) = workers(components);
    vec![
        namespace.to_owned(),
        shown_farm(farm),
        worst
            .map_or("ready", |it| state_word(it.status.state))
            .to_owned(),
        format!("{ready}/{} ready", components.len()),
        format!("{ready_workers}/{wanted}"),
        pool_names(components),
        why,
    ]
}

fn farm_json((namespace, farm): (&str, &str), components: &[&Component]) -> Value {
    let components: Vec<_> = components
        .iter()
        .map(|it| json!({"kind": it.kind.kind(), "name": it.name(), "status": it.status}))
        .collect();
    json!({"namespace": namespace, "farm": farm, "components": components})
}

pub(super) async fn pools(options: &ListOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let scope = FarmScope::of(&options.scope).await?;
    let read = async || {
        let pools = scope.pools().await?;
        let items = pools.iter().map(|pool| Listed {
            name: pool.name().to_owned(),
            cells: pool_row(pool),
            data: pool_json(pool),
        });
        Ok(Listing {
            kind: "FarmPoolList",
            resource: "buildbarnworker.buildbarn.io",
            columns: POOL_COLUMNS,
            items: items.collect(),
            empty: format!("No pool of workers {}.", place(&scope)),
        })
    };
    listing::show(options.listing, scope.clock, out, read).await
}

fn pool_row(pool: &Component) -> Vec<String> {
    let spec = pool.worker().cloned().unwrap_or_default();
    let concurrency = spec.concurrency.unwrap_or(8);
    vec![
        pool.namespace().to_owned(),
        pool.name().to_owned(),
        state_word(pool.status.state).to_owned(),
        format!("{}/{}", pool.status.ready_replicas, pool.replicas()),
        pool.replicas().saturating_mul(concurrency).to_string(),
        pool.status.drains.len().to_string(),
        shown_farm(pool.farm()),
        QueueName::of(&spec).to_string(),
    ]
}

fn pool_json(pool: &Component) -> Value {
    let spec = pool.worker().cloned().unwrap_or_default();
    let queue = QueueName::of(&spec);
    json!({
        "namespace": pool.namespace(),
        "name": pool.name(),
        "replicas": pool.replicas(),
        "concurrency": spec.concurrency.unwrap_or(8),
        "queue": {
            "instanceNamePrefix": queue.instance_name_prefix,
            "platform": queue.platform,
            "sizeClass": queue.size_class,
        },
        "status": pool.status,
    })
}

pub(super) async fn bazelrc(options: &BazelrcOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let scope = FarmScope::named(&options.cluster, options.namespace.as_deref()).await?;
    let namespace = scope.namespace.clone().unwrap_or_default();
    let mut components = scope.components().await?;
    components.retain(|it| it.farm() == farm_label(&options.farm));
    if let Some(pool) = &options.pool
        && !components
            .iter()
            .any(|it| it.kind == ComponentKind::Worker && it.name() == pool)
    {
        return Err(no_such("pool", pool, &namespace));
    }
    let address = match flags::frontend(&components) {
        Some(frontend) if options.cluster_ip => {
            Some(scope.service_address(frontend, ports::FRONTEND).await?)
        }
        _ => None,
    };
    match flags::bazelrc(&components, options.pool.as_deref(), address.as_deref()) {
        Some(text) => print::text(out, &text),
        None => Err(no_such("frontend of the farm", &options.farm, &namespace)),
    }
}
