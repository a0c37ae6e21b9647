//! Records in a ConfigMap which resolver ports were freed and when, so that they are not given away again
//! while a resolver may still listen on them for the former service.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use neap_kit::{
    apply::{Error, ResourceKind},
    builder::Tools,
    key::Key,
};
use serde_json::{Value, json};

use super::super::{
    controller::ServiceReconciler,
    facts::{freed, freed_data},
};

impl ServiceReconciler {
    /// Records that `ports` are freed. Until then, they belong to their last holder.
    pub(in crate::elasti_service) async fn free_ports(&self, ports: &[i32]) -> Result<(), Error> {
        if ports.is_empty() {
            return Ok(());
        }
        let allotment = &self.sources.ports;
        let (key, now) = (allotment.freed_ports_key(), self.tools.clock.now());
        match self.tools.writer.find::<ConfigMap>(&key).await? {
            Some(live) => update(&self.tools, live, ports, now).await?,
            None => create(&self.tools, &key, ports, now).await?,
        }
        allotment.forget(ports);
        Ok(())
    }
}

async fn create(tools: &Tools, key: &Key, ports: &[i32], now: Timestamp) -> Result<(), Error> {
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(key.name().to_owned()),
            namespace: Some(key.namespace().to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(freed_data(&BTreeMap::new(), ports, now)),
        ..ConfigMap::default()
    };
    match tools.writer.create(&map).await? {
        Some(_) => Ok(()),
        None => Err(Error::Conflict(Key::of(&map))),
    }
}

/// Writes only new entries and those whose quarantine is over: another operator may write beside us.
async fn update(
    tools: &Tools,
    live: ConfigMap,
    ports: &[i32],
    now: Timestamp,
) -> Result<(), Error> {
    let before = freed(&live);
    let kept = freed_data(&before, ports, now);
    let had = live.data.unwrap_or_default();
    let gone = had.keys().filter(|port| !kept.contains_key(*port));
    let gone = gone.map(|port| (port.clone(), Value::Null));
    let new = ports.iter().map(|port| (port.to_string(), json!(now)));
    let data: BTreeMap<String, Value> = gone.chain(new).collect();
    let metadata = ObjectMeta {
        resource_version: None,
        ..live.metadata
    };
    let kind = ResourceKind::of::<ConfigMap>();
    let change = json!({"data": data});
    tools
        .writer
        .merge(&kind, &metadata, None, change)
        .await
        .map(drop)
}
