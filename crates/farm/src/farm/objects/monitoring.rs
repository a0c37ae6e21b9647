//! ServiceMonitors: how a Prometheus operator finds the metrics of a component. Its kind is not ours, and most
//! clusters do not serve it.

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use kube::{Resource, api::ObjectMeta};
use neap_kit::apply::DesiredObject;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{base, desired, selector, services::metrics_ports, side_name};
use crate::farm::Component;

const GROUP: &str = "monitoring.coreos.com";

/// A ServiceMonitor, of which only our fields are known.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServiceMonitor {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What is scraped.
    #[serde(default)]
    pub spec: Value,
}

impl Resource for ServiceMonitor {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "ServiceMonitor".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "servicemonitors".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The ServiceMonitor of a component. It selects all Services of the component; one of them has the ports.
pub(super) fn service_monitor(component: &Component) -> DesiredObject {
    let ports = metrics_ports(component);
    let endpoints: Vec<_> = ports
        .iter()
        .map(|(name, _)| json!({"port": name}))
        .collect();
    let mut object = base(component, &side_name(component));
    object["spec"] = json!({
        "selector": {"matchLabels": selector(component)},
        "endpoints": endpoints,
    });
    desired::<ServiceMonitor>(object)
}
