//! `metrics.k8s.io`: what pods use, as the embedder's runtime measures it. Nothing is stored.

use std::borrow::Cow;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    discovery::Resource,
    rest::{Machine, Reply, Target, broken, registry::missing},
    runtime::Usage,
    selector::{FieldSelector, LabelSelector},
    status::{ApiError, Result},
    store::{Object, Range},
};

/// The group, served only with a runtime.
pub(super) const GROUP: &str = "metrics.k8s.io";
/// Its version.
pub(super) const VERSION: &str = "v1beta1";
const PODS: &str = "/pods";

/// What discovery says of the group.
pub(super) fn resource() -> Resource {
    Resource {
        plural: "pods".into(),
        singular: "pod".into(),
        kind: "PodMetrics".into(),
        namespaced: true,
        verbs: vec!["get".into(), "list".into()],
        short_names: Vec::new(),
        categories: Vec::new(),
        custom: false,
        subresources: Vec::new(),
    }
}

/// Answers a request for the group.
pub(super) async fn answer(
    machine: &Machine,
    method: &Method,
    target: &Target,
    query: &[(String, String)],
) -> Result<Reply> {
    let runtime = machine.runtime.clone().ok_or_else(missing)?;
    if target.version != VERSION || target.plural != "pods" || target.subresource.is_some() {
        return Err(missing());
    }
    if *method != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    let now = machine.environment.timestamp();
    if !target.name.is_empty() {
        let found = machine.view.get(PODS, &target.path()).await?;
        let pod = found
            .ok_or_else(|| ApiError::not_found(GROUP, "pods", &target.name))?
            .value();
        let usage = runtime.usage(pod.clone()).await?;
        return Ok(Reply::value(StatusCode::OK, &metrics(&pod, &usage, &now)));
    }
    let chosen = Chosen::of(query)?;
    let range = Range {
        namespace: &target.namespace,
        after: None,
        limit: None,
    };
    let page = machine.view.page(PODS, range, None).await?;
    let page = page.map_err(|error| broken(&error))?;
    let mut items = Vec::new();
    for (_, object) in page.objects {
        if !chosen.has(&object) {
            continue;
        }
        let pod = object.value();
        // A pod that is not measured yet is left out, as clients expect.
        if let Ok(usage) = runtime.usage(pod.clone()).await {
            items.push(metrics(&pod, &usage, &now));
        }
    }
    let list = json!({
        "kind": "PodMetricsList",
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "metadata": {},
        "items": items,
    });
    Ok(Reply::value(StatusCode::OK, &list))
}

/// Which pods a list is about.
struct Chosen {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Chosen {
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

fn metrics(pod: &Value, usage: &[Usage], now: &str) -> Value {
    let container = |usage: &Usage| {
        json!({
            "name": usage.container,
            "usage": {
                "cpu": format!("{}u", usage.cpu_micros),
                "memory": format!("{}Ki", usage.memory_bytes / 1024),
            },
        })
    };
    json!({
        "kind": "PodMetrics",
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "metadata": {
            "name": pod["metadata"]["name"],
            "namespace": pod["metadata"]["namespace"],
            "labels": pod["metadata"].get("labels").cloned().unwrap_or_else(|| json!({})),
            "creationTimestamp": now,
        },
        "timestamp": now,
        "window": "15s",
        "containers": usage.iter().map(container).collect::<Vec<_>>(),
    })
}
