//! How a cluster and its installation stood when an operation failed: for those who run the provider.
//!
//! It is part of the timeline. Only conditions are read, so that no secret can be in it.

use kube::{ResourceExt, api::DynamicObject};
use neap_kit::why::chain;

use super::{
    Installation, Installer,
    kinds::{CLUSTER_OPERATOR, CLUSTER_VERSION, INGRESS_CONTROLLER, NODE},
};
use crate::{
    cluster_api::{ClusterApi, Kind, find_condition},
    documents::text,
};

/// A kind whose objects are looked at, their namespace, and the conditions that a healthy one has.
type Look = (Kind, &'static str, &'static [(&'static str, &'static str)]);

const LOOKS: [Look; 4] = [
    (
        CLUSTER_VERSION,
        "",
        &[("Available", "True"), ("Failing", "False")],
    ),
    (
        CLUSTER_OPERATOR,
        "",
        &[("Available", "True"), ("Degraded", "False")],
    ),
    (NODE, "", &[("Ready", "True")]),
    (
        INGRESS_CONTROLLER,
        "openshift-ingress-operator",
        &[("Available", "True")],
    ),
];
/// How many objects of a kind are named.
const MAX_NAMED: usize = 8;

/// What is wrong, a line for each; none if nothing is.
pub(super) async fn diagnosis(
    installer: Option<(&dyn Installer, &str)>,
    guest: Option<&ClusterApi>,
) -> Option<String> {
    let mut lines = Vec::new();
    if let Some((installer, namespace)) = installer {
        match installer.installation(namespace).await {
            Ok(Installation::Complete) => {}
            Ok(Installation::Running(what)) => lines.push(format!("the installer: {what}")),
            Ok(Installation::Failed(error)) => lines.push(format!("the installer: {error}")),
            Err(error) => {
                lines.push(format!("the installer cannot be asked: {}", chain(&error)));
            }
        }
    }
    if let Some(guest) = guest {
        for (kind, namespace, healthy) in LOOKS {
            match guest.list(&kind, namespace).await {
                Ok(objects) => {
                    let ill = objects.iter().filter_map(|it| illness(&kind, it, healthy));
                    lines.extend(ill.take(MAX_NAMED));
                }
                Err(error) => {
                    lines.push(format!("{} cannot be read: {}", kind.plural, chain(&error)));
                    break;
                }
            }
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What is wrong with an object. Pure.
fn illness(kind: &Kind, object: &DynamicObject, healthy: &[(&str, &str)]) -> Option<String> {
    let (name, wanted) = (object.name_any(), healthy.iter());
    let mut ill = wanted.filter_map(|(condition, status)| {
        let found = find_condition(object, condition)?;
        (found["status"] != **status).then_some((condition, found))
    });
    let (condition, found) = ill.next()?;
    let (status, reason) = (text(found, "/status"), text(found, "/reason"));
    let message = text(found, "/message");
    Some(format!(
        "{} {name}: {condition} is {status}: {reason} {message}",
        kind.kind
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn operator(available: &str, degraded: &str) -> DynamicObject {
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "Why", "message": "how"});
        serde_json::from_value(json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator",
            "metadata": {"name": "console"},
            "status": {"conditions": [
                condition("Available", available), condition("Degraded", degraded),
            ]},
        }))
        .unwrap()
    }

    #[test]
    fn what_is_not_as_it_should_be_is_named() {
        let (kind, _, healthy) = LOOKS[1];
        assert_eq!(illness(&kind, &operator("True", "False"), healthy), None);
        let ill = illness(&kind, &operator("True", "True"), healthy);
        let expected = "ClusterOperator console: Degraded is True: Why how";
        assert_eq!(ill.as_deref(), Some(expected));
        let ill = illness(&kind, &operator("False", "True"), healthy).unwrap();
        assert!(ill.contains("Available is False"), "{ill}");
    }
}
