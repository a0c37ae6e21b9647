//! The writes for a component.

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod};
use kube::api::{DynamicObject, ObjectMeta};
use neap_kit::apply::{
    DesiredObject, Plan, PlannedChange, ResourceKind, differences, plan as compare,
};
use serde_json::{Value, json};

use super::Member;
use crate::{
    api::parse_quantity,
    farm::{
        Component,
        drain::{DELETION_COST, DRAINED_COST, DrainDecision},
        facts::FarmFacts,
        objects::{self, ObjectContext},
        rollout::Phase,
        validate::Problem,
    },
};

/// The writes for a component, in order.
pub(super) fn plan(facts: &FarmFacts, member: &Member<'_>, context: &ObjectContext) -> Plan {
    let component = member.component;
    let mut changes = Vec::new();
    if component.is_deleting() {
        return delete(facts, member);
    }
    if !component.has_finalizer() {
        changes.push(set_finalizer(component, true));
    }
    changes.extend(grow_claims(facts, component));
    if let Some(drain) = &member.drain {
        changes.extend(mark_pods(facts, component, drain));
    }
    // What is wrong leaves everything as it is.
    if member.problem.is_some() {
        return changes.into();
    }
    let mut desired = Vec::new();
    let mut live: Vec<(ResourceKind, DynamicObject)> = facts.live_of(component).to_vec();
    let workload_kind = objects::workload_kind(component.kind);
    let is_workload = |(kind, object): &(ResourceKind, DynamicObject)| {
        *kind == workload_kind && object.metadata.name.as_deref() == Some(component.name())
    };
    if let Some(config) = &member.config {
        desired.extend(objects::config_map(component, config).filter(|_| member.may_apply));
    }
    desired.extend(objects::around(component, context));
    if member.phase != Phase::Settled {
        // Pods of the former version that restart still need their configuration.
        live.retain(|(kind, object)| {
            *kind != ResourceKind::of::<ConfigMap>() || is_desired(&desired, kind, object)
        });
    }
    match (&member.workload, member.may_apply) {
        (Some(workload), true) if member.replace => {
            let old = live.iter().find(|it| is_workload(it)).cloned();
            live.retain(|it| !is_workload(it));
            changes.extend(old.map(|(kind, object)| PlannedChange::Delete {
                object: neap_kit::apply::ObjectRef {
                    kind,
                    key: workload.object.key(),
                    uid: object.metadata.uid.unwrap_or_default(),
                },
                reason: "its selector changes, which is only possible for a new object".to_owned(),
            }));
        }
        (Some(workload), true) => {
            let mut object = workload.object.clone();
            object.object["spec"]["replicas"] = member.replicas.into();
            if let Some((_, old)) = live.iter().find(|it| is_workload(it)) {
                keep_claim_templates(&mut object.object, &old.data);
            }
            desired.push(object);
        }
        _ => live.retain(|it| !is_workload(it)),
    }
    changes.extend(compare(&desired, &live).changes);
    changes.into()
}

fn is_desired(desired: &[DesiredObject], kind: &ResourceKind, object: &DynamicObject) -> bool {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let mut desired = desired.iter();
    desired.any(|it| it.kind == *kind && it.key().name() == name)
}

/// The templates of a StatefulSet cannot be changed; the claims themselves are.
fn keep_claim_templates(desired: &mut Value, live: &Value) {
    let wanted = &desired["spec"]["volumeClaimTemplates"];
    let Some(templates) = live.pointer("/spec/volumeClaimTemplates") else {
        return;
    };
    if !differences(wanted, templates).is_empty() {
        desired["spec"]["volumeClaimTemplates"] = templates.clone();
    }
}

/// A pool is drained and has no pods before its finalizer is removed, and what its actions need is kept until
/// then. The objects are deleted by the garbage collector; volume claims are kept.
fn delete(facts: &FarmFacts, member: &Member<'_>) -> Plan {
    let component = member.component;
    let mut plan = Plan::default();
    if !component.has_finalizer() || member.kept_for.is_some() {
        return plan;
    }
    if let Some(drain) = &member.drain {
        plan.changes.extend(mark_pods(facts, component, drain));
        if let (Some(live), true) = (&member.live, drain.replicas < i32::MAX) {
            if live.replicas > member.replicas {
                plan.changes
                    .extend(scale(facts, component, member.replicas));
            }
            let gone = facts.pods_of(component).iter().all(|pod| pod.finished);
            if !gone || live.replicas > 0 {
                return plan;
            }
        }
        if !drain.remove.is_empty() {
            return plan;
        }
    }
    plan.cleanup.push(set_finalizer(component, false));
    plan
}

fn scale(facts: &FarmFacts, component: &Component, replicas: i32) -> Option<PlannedChange> {
    let kind = objects::workload_kind(component.kind);
    let live = facts.live_of(component).iter();
    let mut live = live.filter(|(other, _)| *other == kind);
    let (kind, object) = live.next()?;
    Some(PlannedChange::Merge {
        kind: kind.clone(),
        metadata: Box::new(precondition(&object.metadata)),
        subresource: None,
        patch: json!({"spec": {"replicas": replicas}}),
        reason: "the pool is deleted, and its workers are drained".to_owned(),
    })
}

fn set_finalizer(component: &Component, present: bool) -> PlannedChange {
    let ours = component.kind.finalizer();
    let finalizers = component.metadata.finalizers.iter().flatten();
    let mut finalizers: Vec<_> = finalizers.filter(|it| *it != ours).cloned().collect();
    let reason = if present {
        finalizers.push(ours.to_owned());
        "it is drained before it is deleted"
    } else {
        "nothing of it is in use"
    };
    PlannedChange::Merge {
        kind: component.kind.resource(),
        metadata: Box::new(precondition(&component.metadata)),
        subresource: None,
        patch: json!({"metadata": {"finalizers": finalizers}}),
        reason: reason.to_owned(),
    }
}

fn precondition(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        ..ObjectMeta::default()
    }
}

/// Drained pods are to be deleted first.
fn mark_pods<'a>(
    facts: &'a FarmFacts,
    component: &'a Component,
    drain: &'a DrainDecision,
) -> impl Iterator<Item = PlannedChange> + 'a {
    let change = |name: &String, cost: Value, reason: &str| {
        let pods = facts.pods_of(component);
        let pod = pods.iter().find(|pod| pod.name == *name)?;
        Some(PlannedChange::Merge {
            kind: ResourceKind::of::<Pod>(),
            metadata: Box::new(ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(component.namespace().to_owned()),
                uid: Some(pod.uid.clone()),
                ..ObjectMeta::default()
            }),
            subresource: None,
            patch: json!({"metadata": {"annotations": {DELETION_COST: cost}}}),
            reason: reason.to_owned(),
        })
    };
    let marked = drain.mark.iter().filter_map(move |name| {
        change(
            name,
            DRAINED_COST.into(),
            "its workers are drained, so it is deleted first",
        )
    });
    let unmarked = drain
        .unmark
        .iter()
        .filter_map(move |name| change(name, Value::Null, "its workers are not drained any more"));
    marked.chain(unmarked)
}

/// What a template asks for, and what the claims of the pods have.
fn claim_sizes<'a>(
    facts: &'a FarmFacts,
    component: &'a Component,
) -> impl Iterator<Item = (u64, u64, &'a crate::farm::facts::ClaimFacts, String)> + 'a {
    let templates = component.storage().map(objects::claims).unwrap_or_default();
    templates.into_iter().flat_map(move |template| {
        let size = template.pointer("/spec/resources/requests/storage");
        let text = size.and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = template["metadata"]["name"].as_str().unwrap_or_default();
        let prefix = format!("{name}-{}-", component.name());
        let wanted = parse_quantity(&text);
        facts.claims.iter().filter_map(move |(name, claim)| {
            let number = name.strip_prefix(&prefix)?;
            number.parse::<u32>().ok()?;
            Some((wanted?, claim.bytes?, claim, text.clone()))
        })
    })
}

fn grow_claims(facts: &FarmFacts, component: &Component) -> Vec<PlannedChange> {
    let sizes = claim_sizes(facts, component);
    let growing = sizes.filter(|(wanted, live, ..)| wanted > live);
    growing
        .map(|(_, _, claim, text)| PlannedChange::Merge {
            kind: ResourceKind::of::<PersistentVolumeClaim>(),
            metadata: Box::new(ObjectMeta {
                name: Some(claim.key.name().to_owned()),
                namespace: Some(claim.key.namespace().to_owned()),
                uid: Some(claim.uid.clone()),
                ..ObjectMeta::default()
            }),
            subresource: None,
            patch: json!({"spec": {"resources": {"requests": {"storage": text}}}}),
            reason: format!("spec.volumeClaimTemplates asks for {text}"),
        })
        .collect()
}

/// Volumes never shrink, and a shard cannot get other volumes while its StatefulSet exists.
pub(super) fn claim_problem(facts: &FarmFacts, component: &Component) -> Option<Problem> {
    let spec = component.storage()?;
    if let Some((wanted, live, claim, _)) =
        claim_sizes(facts, component).find(|(wanted, live, ..)| wanted < live)
    {
        let message = format!(
            "spec.volumeClaimTemplates asks for {wanted} bytes, and the volume {} has {live}: volumes \
             cannot shrink, so ask for at least what they have",
            claim.key.name()
        );
        return Some(Problem::new("VolumeShrinks", message));
    }
    let kind = objects::workload_kind(component.kind);
    let (_, live) = facts
        .live_of(component)
        .iter()
        .find(|(it, _)| *it == kind)?;
    let names = |templates: &[Value]| -> Vec<String> {
        let names = templates
            .iter()
            .filter_map(|it| it["metadata"]["name"].as_str());
        names.map(str::to_owned).collect()
    };
    let live = live.data.pointer("/spec/volumeClaimTemplates");
    let live = names(live.and_then(Value::as_array).map_or(&[], Vec::as_slice));
    let wanted = names(&objects::claims(spec));
    (live != wanted).then(|| {
        let name = component.name();
        let message = format!(
            "the StatefulSet has the volumes {}, and the spec asks for {}: delete it with `kubectl delete \
             statefulset {name} --cascade=orphan`, and it is created again around the same pods",
            live.join(", "),
            wanted.join(", ")
        );
        Problem::new("VolumesChanged", message)
    })
}
