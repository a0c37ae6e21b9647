//! Other controllers that set the replicas of a workload.

use k8s_openapi::{
    api::autoscaling::v2::HorizontalPodAutoscaler,
    apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry,
};
use kube::ResourceExt;
use serde_json::Value;

use crate::{
    api::{Autoscaler, AutoscalerKind, ElastiService, ScaleTarget},
    reason::Reason,
    target::canonical_kind,
};

/// Field managers of GitOps tools, which revert changes of others, and the names of the tools.
const GITOPS_MANAGERS: [(&str, &str); 7] = [
    ("argocd-controller", "Argo CD"),
    ("argocd-application-controller", "Argo CD"),
    ("kustomize-controller", "Flux"),
    ("helm-controller", "Flux"),
    ("fleetagent", "Fleet"),
    ("configsync.gke.io", "Config Sync"),
    ("kapp-controller", "kapp"),
];

/// An autoscaler of the workload that the service does not name, and what to do about it.
pub(super) fn conflict(
    service: &ElastiService,
    hpas: &[&HorizontalPodAutoscaler],
    scaled_objects: &[(String, Value)],
) -> Option<Reason> {
    let spec = &service.spec;
    let (target, named) = (&spec.scale_target_ref, spec.autoscaler.as_ref());
    let keda = scaled_objects
        .iter()
        .filter(|(name, spec)| !is_named(named, AutoscalerKind::Keda, name) && scales(spec, target))
        .map(|(name, _)| unnamed_scaled_object(name));
    let hpas = hpas.iter().filter_map(|hpa| of_hpa(hpa, named, target));
    keda.chain(hpas).next()
}

/// A tool that applies the replicas of the target and would revert ours, by its managed fields.
pub(super) fn replicas_manager(fields: &[ManagedFieldsEntry]) -> Option<Reason> {
    fields.iter().find_map(gitops_tool)
}

fn is_named(named: Option<&Autoscaler>, kind: AutoscalerKind, name: &str) -> bool {
    named.is_some_and(|named| named.kind == kind && named.name == name)
}

fn unnamed_scaled_object(name: &str) -> Reason {
    let message = format!(
        "the ScaledObject {name} scales the target too and would wake it whenever it sleeps; name it in \
         spec.autoscaler with type keda, so that it is paused meanwhile"
    );
    Reason::new("UnnamedScaledObject", message)
}

/// Whether a ScaledObject scales the target. Without a kind it means a Deployment.
fn scales(spec: &Value, target: &ScaleTarget) -> bool {
    let reference = &spec["scaleTargetRef"];
    let kind = reference["kind"].as_str().unwrap_or("Deployment");
    reference["name"] == target.name.as_str() && is_kind(kind, target)
}

fn is_kind(kind: &str, target: &ScaleTarget) -> bool {
    kind.eq_ignore_ascii_case(canonical_kind(&target.kind))
}

/// Why a HorizontalPodAutoscaler is in conflict. One that does not scale to zero does nothing at zero.
fn of_hpa(
    hpa: &HorizontalPodAutoscaler,
    named: Option<&Autoscaler>,
    target: &ScaleTarget,
) -> Option<Reason> {
    let spec = &hpa.spec;
    let reference = &spec.scale_target_ref;
    let name = hpa.name_any();
    if reference.name != target.name || !is_kind(&reference.kind, target) {
        return None;
    }
    // KEDA creates one for each ScaledObject, and the conflict names that.
    let mut owners = hpa.owner_references().iter();
    if owners.any(|owner| owner.kind == "ScaledObject") {
        return None;
    }
    if spec.min_replicas == Some(0) {
        let message = format!(
            "the HorizontalPodAutoscaler {name} scales the target to zero by itself, before a resolver could \
             take its place; set its minReplicas to 1"
        );
        return Some(Reason::new("AutoscalerToZero", message));
    }
    if is_named(named, AutoscalerKind::Hpa, &name) {
        return None;
    }
    let message = format!(
        "the HorizontalPodAutoscaler {name} scales the target too; name it in spec.autoscaler with type hpa \
         if that is intended, otherwise delete it"
    );
    Some(Reason::new("UnnamedAutoscaler", message))
}

/// The tool behind a field manager that applies the replicas.
fn gitops_tool(entry: &ManagedFieldsEntry) -> Option<Reason> {
    let manager = entry.manager.as_deref()?;
    let fields = &entry.fields_v1.as_ref()?.0;
    let holds = fields["f:spec"].get("f:replicas").is_some();
    if !holds || entry.subresource.as_deref() == Some("scale") {
        return None;
    }
    let known = GITOPS_MANAGERS
        .iter()
        .find(|(name, _)| manager.starts_with(name));
    let applied = entry.operation.as_deref() == Some("Apply");
    let tool = match known {
        Some((_, tool)) => (*tool).to_owned(),
        // Server-side apply restores every field that was applied.
        None if applied && !manager.starts_with("kubectl") => manager.to_owned(),
        None => return None,
    };
    let message = format!(
        "{tool} ({manager}) applies spec.replicas and reverts changes; leave replicas out of what it \
         applies, or have it ignore the difference"
    );
    Some(Reason::new("GitOps", message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(autoscaler: &Value) -> ElastiService {
        let service = json!({"metadata": {"name": "web"}, "spec": {
            "service": "web", "autoscaler": autoscaler,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "deployments", "name": "web"},
        }});
        serde_json::from_value(service).unwrap()
    }

    fn hpa(name: &str, target: &str, least: i32) -> HorizontalPodAutoscaler {
        let hpa = json!({"metadata": {"name": name}, "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "minReplicas": least, "maxReplicas": 9,
        }});
        serde_json::from_value(hpa).unwrap()
    }

    fn holds(manager: &str, operation: &str, subresource: Option<&str>) -> ManagedFieldsEntry {
        let entry = json!({
            "manager": manager, "operation": operation, "subresource": subresource,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
        });
        serde_json::from_value(entry).unwrap()
    }

    fn reason(found: Option<&Reason>) -> &'static str {
        found.map_or("", |found| found.name)
    }

    #[test]
    fn unnamed_autoscalers_are_conflicts() {
        let none = Value::Null;
        let (web, named) = (
            hpa("scale-web", "web", 1),
            json!({"type": "hpa", "name": "scale-web"}),
        );
        let found = |autoscaler: &Value, hpa: &HorizontalPodAutoscaler| {
            reason(conflict(&service(autoscaler), &[hpa], &[]).as_ref())
        };
        assert_eq!(found(&none, &web), "UnnamedAutoscaler");
        assert_eq!(found(&named, &web), "");
        assert_eq!(found(&none, &hpa("other", "other", 1)), "");
        assert_eq!(
            found(&named, &hpa("scale-web", "web", 0)),
            "AutoscalerToZero"
        );
        let object = |kind: &str| json!({"scaleTargetRef": {"name": "web", "kind": kind}});
        let found = |autoscaler: &Value, spec: Value| {
            let all = [("scaled-web".to_owned(), spec)];
            reason(conflict(&service(autoscaler), &[], &all).as_ref())
        };
        assert_eq!(found(&none, object("Deployment")), "UnnamedScaledObject");
        assert_eq!(
            found(&none, json!({"scaleTargetRef": {"name": "web"}})),
            "UnnamedScaledObject"
        );
        assert_eq!(found(&none, object("StatefulSet")), "");
        let keda = json!({"type": "keda", "name": "scaled-web"});
        assert_eq!(found(&keda, object("Deployment")), "");
    }

    #[test]
    fn managers_that_revert_replicas_are_conflicts() {
        for (manager, operation, subresource, says) in [
            ("argocd-controller", "Update", None, "GitOps"),
            ("kustomize-controller", "Apply", None, "GitOps"),
            ("own-deployer", "Apply", None, "GitOps"),
            ("kubectl", "Apply", None, ""),
            ("kubectl-client-side-apply", "Update", None, ""),
            ("helm", "Update", None, ""),
            ("idle-operator", "Update", Some("scale"), ""),
            ("argocd-controller", "Update", Some("scale"), ""),
        ] {
            let entry = holds(manager, operation, subresource);
            let found = replicas_manager(&[entry]);
            assert_eq!(reason(found.as_ref()), says, "{manager} {operation}");
        }
        let mut entry = holds("argocd-controller", "Apply", None);
        entry.fields_v1.as_mut().unwrap().0 = json!({"f:spec": {"f:template": {}}});
        assert_eq!(replicas_manager(&[entry]), None);
    }
}
