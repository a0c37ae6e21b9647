//! What is at zero for a service, and stands still for it: written down before it is, so that it is
//! found again when the spec names something else.

use crate::{
    api::{Autoscaler, AutoscalerKind, ElastiService, ElastiServiceSpec, Resting, ScaleTarget},
    target::spelled,
};

/// What the spec would have at zero.
pub fn resting(spec: &ElastiServiceSpec) -> Resting {
    Resting {
        target: spec.scale_target_ref.clone(),
        scaled_object: scaled_object(spec).map(str::to_owned),
    }
}

/// What was written down and is no longer what the spec names: nobody else would ever wake it.
pub fn former(service: &ElastiService) -> Option<&Resting> {
    let resting = service.status.as_ref()?.resting.as_ref()?;
    let spec = &service.spec;
    let paused = resting.scaled_object.as_deref();
    let named = is_same(&resting.target, &spec.scale_target_ref)
        && (paused.is_none() || paused == scaled_object(spec));
    (!named).then_some(resting)
}

/// What stood still, as something that can be looked up.
pub fn autoscaler(resting: &Resting) -> Option<Autoscaler> {
    let name = resting.scaled_object.clone()?;
    let kind = AutoscalerKind::Keda;
    Some(Autoscaler { kind, name })
}

fn is_same(one: &ScaleTarget, other: &ScaleTarget) -> bool {
    let parts = |it: &ScaleTarget| {
        let kind = spelled(&it.kind).to_owned();
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
    fn what_the_spec_no_longer_names_is_found() {
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
            // Nothing stood still before, so there is nothing to have go on.
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
