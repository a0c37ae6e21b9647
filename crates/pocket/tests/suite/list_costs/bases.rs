//! The built-in kinds, and a small valid object of each.

use serde_json::{Map, Value, json};

/// A kind that can be written.
pub(super) struct Kind {
    pub(super) name: String,
    /// Its published type.
    pub(super) ty: String,
    group: String,
    version: String,
    plural: String,
    namespaced: bool,
    verbs: Vec<String>,
}

/// Every kind that the server publishes a type of and lets clients create.
pub(super) fn kinds() -> Vec<Kind> {
    let resources: Vec<Value> =
        serde_json::from_str(include_str!("../../../data/discovery.json")).unwrap();
    let types: Map<String, Value> =
        serde_json::from_str(include_str!("../../../data/types.json")).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kinds = resources.iter().filter_map(|resource| {
        let of = |mark: &Value| {
            ["group", "version", "kind"]
                .iter()
                .all(|field| mark[*field] == resource[*field])
        };
        let (ty, _) = types.iter().find(|(_, ty)| {
            let marks = ty["x-kubernetes-group-version-kind"].as_array();
            marks.into_iter().flatten().any(of)
        })?;
        let verbs = resource["verbs"].as_array()?.iter().map(text).collect();
        Some(Kind {
            name: text(&resource["kind"]),
            ty: ty.clone(),
            group: text(&resource["group"]),
            version: text(&resource["version"]),
            plural: text(&resource["plural"]),
            namespaced: resource["namespaced"] == true,
            verbs,
        })
    });
    kinds.filter(|kind| kind.can("create")).collect()
}

impl Kind {
    /// Its name, with its group where another kind has the name.
    pub(super) fn title(&self) -> String {
        match self.group.as_str() {
            "events.k8s.io" => format!("{}.{}", self.name, self.group),
            _ => self.name.clone(),
        }
    }

    pub(super) fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    pub(super) fn collection(&self) -> String {
        let root = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        let namespace = if self.namespaced {
            "/namespaces/default"
        } else {
            ""
        };
        format!("{root}{namespace}/{}", self.plural)
    }

    pub(super) fn item(&self, name: &str) -> String {
        format!("{}/{name}", self.collection())
    }

    /// A small valid object.
    pub(super) fn object(&self, name: &str) -> Value {
        let mut object = self.body(name);
        let version = match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        };
        object["apiVersion"] = json!(version);
        object["kind"] = json!(self.name);
        if self.name != "CustomResourceDefinition" {
            object["metadata"] = json!({"name": name});
        }
        object
    }

    fn body(&self, name: &str) -> Value {
        let pod = || json!({"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]});
        let labels = json!({"app": "a"});
        let selector = json!({"matchLabels": labels});
        let template = || json!({"metadata": {"labels": labels}, "spec": pod()});
        let run_once = || {
            let mut template = template();
            template["spec"]["restartPolicy"] = json!("Never");
            template
        };
        match self.name.as_str() {
            "Pod" => json!({"spec": pod()}),
            "PodTemplate" => json!({"template": template()}),
            "Deployment" | "ReplicaSet" | "DaemonSet" => {
                json!({"spec": {"selector": selector, "template": template()}})
            }
            "StatefulSet" => {
                json!({"spec": {"selector": selector, "serviceName": "s", "template": template()}})
            }
            "ReplicationController" => {
                json!({"spec": {"selector": labels, "template": template()}})
            }
            "Job" => json!({"spec": {"template": run_once()}}),
            "CronJob" => {
                json!({"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": run_once()}}}})
            }
            _ => self.small_body(name),
        }
    }

    fn small_body(&self, name: &str) -> Value {
        let selector = json!({"app": "a"});
        match self.name.as_str() {
            "Service" => json!({"spec": {"selector": selector, "ports": [{"port": 80}]}}),
            "EndpointSlice" => json!({"addressType": "IPv4", "endpoints": []}),
            "PersistentVolumeClaim" => {
                json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
            }
            "PersistentVolume" => {
                json!({"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}})
            }
            "HorizontalPodAutoscaler" => {
                json!({"spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}})
            }
            "Ingress" => {
                json!({"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}})
            }
            "NetworkPolicy" => json!({"spec": {"podSelector": {}}}),
            "RuntimeClass" => json!({"handler": "h"}),
            "PriorityClass" => json!({"value": 1}),
            "StorageClass" => json!({"provisioner": "p"}),
            "RoleBinding" | "ClusterRoleBinding" => {
                json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}})
            }
            "LimitRange" => json!({"spec": {"limits": [{"type": "Container"}]}}),
            "ControllerRevision" => json!({"revision": 1}),
            "Event" => {
                json!({"involvedObject": {"namespace": "default"}, "regarding": {"namespace": "default"}})
            }
            "CustomResourceDefinition" => {
                let plural = format!("{name}s");
                let schema = json!({"openAPIV3Schema": {"type": "object"}});
                json!({
                    "metadata": {"name": format!("{plural}.example.com")},
                    "spec": {
                        "group": "example.com", "scope": "Namespaced",
                        "names": {"plural": plural, "kind": name.to_uppercase()},
                        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
                    },
                })
            }
            _ => json!({"spec": {}}),
        }
    }
}
