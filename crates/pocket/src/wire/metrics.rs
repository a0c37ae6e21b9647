//! `metrics.k8s.io`: the usage of pods and nodes, as the embedder's runtime measures it. Nothing is
//! stored.

use std::borrow::Cow;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    discovery::ApiResource,
    rest::{Machine, Reply, Target, broken, registry::missing},
    runtime::{PodRuntime, Usage},
    selector::{FieldSelector, LabelSelector},
    status::{ApiError, Result},
    store::{KeyRange, Object},
};

/// The group, served only with a runtime.
pub(super) const GROUP: &str = "metrics.k8s.io";
pub(super) const VERSION: &str = "v1beta1";
/// The measured resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MeasuredResource {
    Pods,
    Nodes,
}

impl MeasuredResource {
    fn named(plural: &str) -> Option<Self> {
        match plural {
            "pods" => Some(Self::Pods),
            "nodes" => Some(Self::Nodes),
            _ => None,
        }
    }

    fn bucket(self) -> &'static str {
        match self {
            Self::Pods => "/pods",
            Self::Nodes => "/nodes",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Pods => "PodMetrics",
            Self::Nodes => "NodeMetrics",
        }
    }
}

/// The resources of the group, for discovery.
pub(super) fn resources() -> [ApiResource; 2] {
    let resource = |plural: &str, singular: &str, measured: MeasuredResource| ApiResource {
        plural: plural.into(),
        singular: singular.into(),
        kind: measured.kind().into(),
        namespaced: measured == MeasuredResource::Pods,
        verbs: vec!["get".into(), "list".into()],
        short_names: Vec::new(),
        categories: Vec::new(),
        custom: false,
        subresources: Vec::new(),
    };
    [
        resource("nodes", "node", MeasuredResource::Nodes),
        resource("pods", "pod", MeasuredResource::Pods),
    ]
}

/// Answers a request for the group.
pub(super) async fn answer(
    machine: &Machine,
    method: &Method,
    target: &Target,
    query: &[(String, String)],
) -> Result<Reply> {
    let runtime = machine.runtime.clone().ok_or_else(missing)?;
    let measured = MeasuredResource::named(&target.plural).ok_or_else(missing)?;
    if target.version != VERSION || target.subresource.is_some() {
        return Err(missing());
    }
    if *method != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    let now = machine.environment.timestamp();
    if !target.name.is_empty() {
        let found = machine.view.get(measured.bucket(), &target.path()).await?;
        let object = found
            .ok_or_else(|| ApiError::not_found(GROUP, &target.plural, &target.name))?
            .value();
        let metrics = metrics(&*runtime, measured, object, &now).await?;
        return Ok(Reply::value(StatusCode::OK, &metrics));
    }
    let chosen = SelectedObjects::of(query)?;
    let range = KeyRange {
        namespace: &target.namespace,
        after: None,
        limit: None,
    };
    let page = machine.view.page(measured.bucket(), range, None).await?;
    let page = page.map_err(|error| broken(&error))?;
    let mut items = Vec::new();
    for (_, object) in page.objects {
        if !chosen.has(&object) {
            continue;
        }
        // Objects without measurements are left out, as clients expect.
        if let Ok(metrics) = metrics(&*runtime, measured, object.value(), &now).await {
            items.push(metrics);
        }
    }
    let list = json!({
        "kind": format!("{}List", measured.kind()),
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "metadata": {},
        "items": items,
    });
    Ok(Reply::value(StatusCode::OK, &list))
}

/// The objects of a list.
struct SelectedObjects {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl SelectedObjects {
    fn of(query: &[(String, String)]) -> Result<Self> {
        let first = |name: &str| {
            let found = query.iter().find(|(key, _)| key == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        let fields = FieldSelector::parse(first("fieldSelector"))?;
        fields.check(|path| matches!(path, "metadata.name" | "metadata.namespace"))?;
        Ok(Self {
            labels: LabelSelector::parse(first("labelSelector"))?,
            fields,
        })
    }

    fn has(&self, pod: &Object) -> bool {
        let metadata = pod.metadata();
        self.labels.matches(&metadata.labels)
            && self.fields.matches(|path| {
                Cow::Borrowed(match path {
                    "metadata.name" => &*metadata.name,
                    _ => &*metadata.namespace,
                })
            })
    }
}

/// The usage of one object.
async fn metrics(
    runtime: &dyn PodRuntime,
    measured: MeasuredResource,
    object: Value,
    now: &str,
) -> Result<Value> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let name = name.to_owned();
    let mut metadata = json!({
        "name": object["metadata"]["name"],
        "labels": object["metadata"].get("labels").cloned().unwrap_or_else(|| json!({})),
        "creationTimestamp": now,
    });
    if let Some(namespace) = object["metadata"].get("namespace") {
        metadata["namespace"] = namespace.clone();
    }
    let mut metrics = json!({
        "kind": measured.kind(),
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "metadata": metadata,
        "timestamp": now,
        "window": "15s",
    });
    match measured {
        MeasuredResource::Nodes => metrics["usage"] = amounts(&runtime.node_usage(object).await?),
        MeasuredResource::Pods => {
            let usage = runtime.usage(object).await?;
            if usage.is_empty() {
                return Err(ApiError::not_found(GROUP, "pods", &name));
            }
            let container = |of: &Usage| json!({"name": of.container, "usage": amounts(of)});
            metrics["containers"] = usage.iter().map(container).collect();
        }
    }
    Ok(metrics)
}

fn amounts(usage: &Usage) -> Value {
    json!({
        "cpu": format!("{}u", usage.cpu_micros),
        "memory": format!("{}Ki", usage.memory_bytes / 1024),
    })
}
