//! The object in a bookmark.
//!
//! A bookmark carries an object of its kind with nothing in it but a revision. The fields that the
//! kind never omits are there all the same, and typed clients of kube-apiserver see them.

use serde_json::Value;

/// The fields that an empty object of a built-in kind shows beside its metadata.
#[expect(clippy::too_many_lines, reason = "a table, one kind a row")]
pub(super) fn fields(group: &str, kind: &str) -> Option<Value> {
    let text = match (group, kind) {
        ("", "Pod") => r#"{"spec":{"containers":null},"status":{}}"#,
        ("", "Service") | ("networking.k8s.io", "Ingress") => {
            r#"{"spec":{},"status":{"loadBalancer":{}}}"#
        }
        ("", "Node") => {
            r#"{"spec":{},"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{"machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""}}}"#
        }
        ("", "Namespace" | "ResourceQuota" | "PersistentVolume") => r#"{"spec":{},"status":{}}"#,
        ("", "Event") => {
            r#"{"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,"reportingComponent":"","reportingInstance":""}"#
        }
        ("events.k8s.io", "Event") => {
            r#"{"eventTime":null,"regarding":{},"deprecatedSource":{},"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null}"#
        }
        ("", "LimitRange") => r#"{"spec":{"limits":null}}"#,
        ("", "PersistentVolumeClaim") => r#"{"spec":{"resources":{}},"status":{}}"#,
        ("", "ReplicationController") => r#"{"spec":{},"status":{"replicas":0}}"#,
        ("", "PodTemplate") => r#"{"template":{"metadata":{},"spec":{"containers":null}}}"#,
        ("apps", "Deployment") => {
            r#"{"spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"status":{}}"#
        }
        ("apps", "ReplicaSet") => {
            r#"{"spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}}},"status":{"replicas":0}}"#
        }
        ("apps", "StatefulSet") => {
            r#"{"spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"serviceName":"","updateStrategy":{}},"status":{"replicas":0,"availableReplicas":0}}"#
        }
        ("apps", "DaemonSet") => {
            r#"{"spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"updateStrategy":{}},"status":{"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"numberReady":0}}"#
        }
        ("apps", "ControllerRevision") => r#"{"data":null,"revision":0}"#,
        ("batch", "Job") => {
            r#"{"spec":{"template":{"metadata":{},"spec":{"containers":null}}},"status":{}}"#
        }
        ("batch", "CronJob") => {
            r#"{"spec":{"schedule":"","jobTemplate":{"metadata":{},"spec":{"template":{"metadata":{},"spec":{"containers":null}}}}},"status":{}}"#
        }
        ("coordination.k8s.io", "Lease")
        | ("networking.k8s.io", "IngressClass")
        | ("storage.k8s.io", "CSIDriver") => r#"{"spec":{}}"#,
        ("networking.k8s.io", "NetworkPolicy") => r#"{"spec":{"podSelector":{}}}"#,
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => r#"{"rules":null}"#,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            r#"{"roleRef":{"apiGroup":"","kind":"","name":""}}"#
        }
        ("policy", "PodDisruptionBudget") => {
            r#"{"spec":{},"status":{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}}"#
        }
        ("scheduling.k8s.io", "PriorityClass") => r#"{"value":0}"#,
        ("storage.k8s.io", "StorageClass") => r#"{"provisioner":""}"#,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            r#"{"spec":{"group":"","names":{"plural":"","kind":""},"scope":"","versions":null},"status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":null}}"#
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            r#"{"addressType":"","endpoints":null,"ports":null}"#
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            r#"{"spec":{"request":null,"signerName":""},"status":{}}"#
        }
        _ => return None,
    };
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_blank_object_shows_what_its_kind_never_leaves_out() {
        let pod = json!({"spec": {"containers": null}, "status": {}});
        assert_eq!(fields("", "Pod"), Some(pod));
        let event = fields("events.k8s.io", "Event").expect("a kind of the table");
        assert_eq!(event["deprecatedSource"], json!({}));
        assert_eq!(fields("", "ConfigMap"), None);
        assert_eq!(fields("shore.example.com", "Pod"), None);
    }
}
