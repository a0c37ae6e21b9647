//! The workload that sleeps for a service and the ScaledObject that is paused for it. Both are recorded in
//! the status first, so that they are found again when the spec names others.

use crate::{
    api::{Autoscaler, AutoscalerKind, ElastiService, ElastiServiceSpec, Resting, ScaleTarget},
    target::canonical_kind,
};

/// The workload and the ScaledObject that the spec names.
pub(in crate::elasti_service) fn resting(spec: &ElastiServiceSpec) -> Resting {
    Resting {
        target: spec.scale_target_ref.clone(),
        scaled_object: scaled_object(spec).map(str::to_owned),
    }
}

/// The recorded workload, if the spec names another one by now: nothing else would ever wake it.
pub(super) fn former(service: &ElastiService) -> Option<&Resting> {
    let resting = service.status.as_ref()?.resting.as_ref()?;
    let spec = &service.spec;
    let paused = resting.scaled_object.as_deref();
    let named = is_same(&resting.target, &spec.scale_target_ref)
        && (paused.is_none() || paused == scaled_object(spec));
    (!named).then_some(resting)
}

/// The reference to the ScaledObject that was paused.
pub(super) fn autoscaler(resting: &Resting) -> Option<Autoscaler> {
    let name = resting.scaled_object.clone()?;
    let kind = AutoscalerKind::Keda;
    Some(Autoscaler { kind, name })
}

fn is_same(one: &ScaleTarget, other: &ScaleTarget) -> bool {
    let parts = |it: &ScaleTarget| {
        let kind = canonical_kind(&it.kind).to_owned();
        (it.api_version.clone(), kind, it.name.clone())
    };
    parts(one) == parts(other)
}

fn scaled_object(spec: &ElastiServiceSpec) -> Option<&str> {
    let named = spec.autoscaler.as_ref();
    let named = named.filter(|named| named.kind == AutoscalerKind::Keda);
    named.map(|named| &*named.name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_workload_that_the_spec_no_longer_names_is_found() {
        let web = json!({"apiVersion": "apps/v1", "kind": "deployments", "name": "web"});
        let same = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"});
        let keda = |name: &str| json!({"type": "keda", "name": name});
        let hpa = json!({"type": "hpa", "name": "a"});
        let rows = [
            (&web, Value::Null, json!({"target": web}), false),
            (&same, Value::Null, json!({"target": web}), false),
            (&set, Value::Null, json!({"target": web}), true),
            (
                &web,
                keda("a"),
                json!({"target": web, "scaledObject": "a"}),
                false,
            ),
            (
                &web,
                keda("b"),
                json!({"target": web, "scaledObject": "a"}),
                true,
            ),
            (&web, hpa, json!({"target": web, "scaledObject": "a"}), true),
            // No ScaledObject was paused, so none has to be resumed.
            (&web, keda("a"), json!({"target": web}), false),
            (&web, Value::Null, Value::Null, false),
        ];
        for (target, autoscaler, resting, gone) in rows {
            let service = json!({
                "metadata": {"name": "web"},
                "spec": {"service": "web", "scaleTargetRef": target, "autoscaler": autoscaler},
                "status": {"resting": resting},
            });
            let service: ElastiService = serde_json::from_value(service.clone()).unwrap();
            assert_eq!(former(&service).is_some(), gone, "{service:?}");
        }
    }
}
