//! The two kinds that the clients write: a built-in and a custom one.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    ConfigMap,
    Widget,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::ConfigMap, Self::Widget];

    pub(crate) fn collection(self, namespace: &str) -> String {
        let (base, plural) = match self {
            Self::ConfigMap => ("/api/v1", "configmaps"),
            Self::Widget => ("/apis/example.com/v1", "widgets"),
        };
        match namespace {
            "" => format!("{base}/{plural}"),
            namespace => format!("{base}/namespaces/{namespace}/{plural}"),
        }
    }

    pub(crate) fn object(self, name: &str, color: &str, value: u64) -> Value {
        let mut object = self.patch(value);
        let (version, kind) = match self {
            Self::ConfigMap => ("v1", "ConfigMap"),
            Self::Widget => ("example.com/v1", "Widget"),
        };
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind);
        object["metadata"] = json!({"name": name, "labels": {"color": color}});
        object
    }

    pub(crate) fn patch(self, value: u64) -> Value {
        match self {
            Self::ConfigMap => json!({"data": {"value": value.to_string()}}),
            Self::Widget => json!({"spec": {"value": value}}),
        }
    }
}

/// The definition of widgets.
pub(crate) fn definition() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"value": {"type": "integer"}}}},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}
