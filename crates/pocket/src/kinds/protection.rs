//! Storage protection: deleted claims and volumes stay until they are no longer in use.

use serde_json::Value;

use super::{
    Cluster,
    fields::{list, text},
};

/// The bucket of claims in the store.
pub const CLAIMS: &str = "/persistentvolumeclaims";
const VOLUMES: &str = "/persistentvolumes";
const PODS: &str = "/pods";

pub(super) const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
pub(super) const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";

/// The finalizer to remove from a deleted object that is no longer in use.
pub fn released(bucket: &str, object: &Value, cluster: &dyn Cluster) -> Option<&'static str> {
    let metadata = &object["metadata"];
    let (finalizer, used) = match bucket {
        CLAIMS => (CLAIM_FINALIZER, is_mounted(metadata, cluster)),
        VOLUMES => (VOLUME_FINALIZER, object["status"]["phase"] == "Bound"),
        _ => return None,
    };
    (!used && list(metadata, "finalizers").iter().any(|f| f == finalizer)).then_some(finalizer)
}

fn is_mounted(claim: &Value, cluster: &dyn Cluster) -> bool {
    let pods = cluster.list("", "pods", text(claim, "namespace"));
    pods.iter()
        .any(|pod| runs(pod) && mounts(pod, text(claim, "name")))
}

/// Whether a pod uses its volumes: it has a node and has not finished.
fn runs(pod: &Value) -> bool {
    let ended = matches!(text(&pod["status"], "phase"), "Succeeded" | "Failed");
    !ended && !text(&pod["spec"], "nodeName").is_empty()
}

fn mounts(pod: &Value, claim: &str) -> bool {
    let own = text(&pod["metadata"], "name");
    list(&pod["spec"], "volumes").iter().any(|volume| {
        let named = text(&volume["persistentVolumeClaim"], "claimName") == claim;
        // An ephemeral volume has a claim named after the pod and the volume.
        let ephemeral = volume["ephemeral"].is_object();
        named || (ephemeral && claim == format!("{own}-{}", text(volume, "name")))
    })
}

/// Whether a change of such an object may release claims.
pub fn may_hold_claims(bucket: &str, json: &[u8]) -> bool {
    let says = |word: &[u8]| memchr::memmem::find(json, word).is_some();
    bucket == PODS && (says(b"\"persistentVolumeClaim\"") || says(b"\"ephemeral\""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Settings;

    struct Pods(Vec<Value>, Settings);

    impl Cluster for Pods {
        fn get(&self, _: &str, _: &str, _: &str, _: &str) -> Option<Value> {
            None
        }

        fn list(&self, _: &str, plural: &str, _: &str) -> Vec<Value> {
            assert_eq!(plural, "pods");
            self.0.clone()
        }

        fn settings(&self) -> &Settings {
            &self.1
        }
    }

    #[test]
    fn a_claim_is_held_by_pods_that_have_not_ended() {
        let claim = json!({"metadata": {"name": "p-v", "finalizers": [CLAIM_FINALIZER]}});
        let named = json!([{"name": "x", "persistentVolumeClaim": {"claimName": "p-v"}}]);
        let own = json!([{"name": "v", "ephemeral": {}}]);
        let other = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "p"}}]);
        for (phase, volumes, held) in [
            ("Running", &named, true),
            ("Pending", &own, true),
            ("Succeeded", &named, false),
            ("Running", &other, false),
        ] {
            let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "volumes": volumes}, "status": {"phase": phase}});
            let cluster = Pods(vec![pod], Settings::default());
            let released = released(CLAIMS, &claim, &cluster);
            assert_eq!(released.is_none(), held, "{phase} {volumes}");
        }
    }

    #[test]
    fn a_volume_is_held_while_it_is_bound() {
        let cluster = Pods(Vec::new(), Settings::default());
        let volume = |phase: &str| json!({"metadata": {"finalizers": [VOLUME_FINALIZER]}, "status": {"phase": phase}});
        assert_eq!(released(VOLUMES, &volume("Bound"), &cluster), None);
        assert_eq!(
            released(VOLUMES, &volume("Released"), &cluster),
            Some(VOLUME_FINALIZER)
        );
        assert_eq!(released("/pods", &volume("Released"), &cluster), None);
    }
}
