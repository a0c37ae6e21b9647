//! From a draft to the ordered list of writes.
//!
//! What other changes rely on comes first, and what cannot be undone last.

use std::{fmt, sync::Arc};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{ResourceExt, api::ObjectMeta};
use neap_kit::{
    apply::{DesiredObject, IfExists, ObjectRef, Plan, PlannedChange, ResourceKind},
    event::EventDraft,
    key::Key,
};
use serde_json::json;

use super::draft::{Draft, Finalizer, ScaleWrite, SliceChange};
use crate::{
    api::{ElastiService, FINALIZER, names},
    reason::Reason,
    target::{Keda, Target, keda_change, scale_change},
};

/// One change of a plan.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a plan has a handful of changes, nearly all of them writes"
)]
pub enum ServiceChange {
    /// A write of one object.
    Write(PlannedChange),
    /// Records resolver ports as freed, in a ConfigMap that is read first.
    FreePorts {
        /// The ports.
        ports: Vec<i32>,
        /// Why.
        reason: String,
    },
}

impl ServiceChange {
    /// The number of replicas to which it scales a workload.
    pub fn scales_to(&self) -> Option<i64> {
        match self {
            Self::Write(PlannedChange::Merge {
                subresource: Some("scale"),
                patch,
                ..
            }) => patch["spec"]["replicas"].as_i64(),
            _ => None,
        }
    }

    /// The Event to record if the API server refuses the change. What the server said follows its message.
    pub fn if_refused(&self) -> Option<EventDraft> {
        let replicas = self.scales_to()?;
        let Self::Write(PlannedChange::Merge { kind, metadata, .. }) = self else {
            return None;
        };
        let name = metadata.name.as_deref().unwrap_or_default();
        let kind = &kind.resource.kind;
        let message = format!("{kind} {name} could not be scaled to {replicas}");
        Some(EventDraft::warning("FailedToScale", message))
    }
}

impl fmt::Display for ServiceChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(change) => change.fmt(f),
            Self::FreePorts { ports, reason } => {
                let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
                write!(f, "free resolver ports {}: {reason}", ports.join(", "))
            }
        }
    }
}

/// The plan of a draft whose reason is known.
pub(super) fn plan(draft: &Draft<'_>, reason: &Reason) -> Plan<ServiceChange> {
    let service = &draft.facts.service;
    if draft.finalizer == Finalizer::Add {
        // Before any object is made that has to be deleted again.
        let why = "before it is deleted, its target has to be awake";
        return vec![ServiceChange::Write(finalizer_change(service, true, why))].into();
    }
    let mut writes = Vec::new();
    writes.extend(restore_former(draft));
    writes.extend(private_service(draft));
    writes.extend(slices(draft));
    if draft.delete_foreign_slice {
        writes.push(foreign_slice(service));
    }
    if let (Some(pause), Keda::Found { metadata, .. }) = (draft.pause_keda, &draft.facts.keda) {
        let why = if pause {
            "it would wake the service while it sleeps"
        } else {
            "the service is to be awake"
        };
        writes.push(keda_change(metadata, pause, why));
    }
    if let (Some(scale), Some(kind)) = (draft.scale, &draft.facts.target_kind) {
        writes.extend(scale_target(&draft.facts.target, kind, scale, reason));
    }
    let mut changes: Vec<_> = writes.into_iter().map(ServiceChange::Write).collect();
    if !draft.freed_ports.is_empty() {
        changes.push(ServiceChange::FreePorts {
            ports: draft.freed_ports.clone(),
            reason: "the service no longer uses them".to_owned(),
        });
    }
    let cleanup = cleanup(draft).into_iter();
    Plan {
        changes,
        cleanup: cleanup.map(ServiceChange::Write).collect(),
    }
}

/// Resumes KEDA first, so that it scales a workload that is running.
fn restore_former(draft: &Draft<'_>) -> Vec<PlannedChange> {
    let (Some(restore), Some(former)) = (draft.restore, &draft.facts.former) else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    if let (true, Keda::Found { metadata, .. }) = (restore.resume, &former.keda) {
        let why = "it is paused for a workload that the spec no longer names";
        changes.push(keda_change(metadata, false, why));
    }
    if let (Some(replicas), Some(kind)) = (restore.replicas, &former.kind) {
        let scale = ScaleWrite {
            replicas,
            if_unchanged: false,
        };
        let why = Reason::new(
            "TargetChanged",
            "it sleeps, and the spec no longer names it",
        );
        changes.extend(scale_target(&former.target, kind, scale, &why));
    }
    changes
}

fn private_service(draft: &Draft<'_>) -> Option<PlannedChange> {
    let facts = draft.facts;
    let wanted = draft.private.as_deref()?;
    if facts.private.as_deref() == Some(wanted) {
        return None;
    }
    let object = DesiredObject::of(wanted);
    match (&facts.private, facts.is_deleted()) {
        // Nothing is created for a service that is being deleted.
        (None, true) => None,
        (None, false) => Some(PlannedChange::Post {
            object,
            owner: owner(draft),
            // A cache that is behind shows it later, and there is another decision.
            if_exists: IfExists::Conflict,
            reason: "it selects the pods while the Service leads to resolvers".to_owned(),
        }),
        (Some(_), _) => Some(PlannedChange::Replace {
            object,
            owner: owner(draft),
            reason: "it differs from the public Service".to_owned(),
        }),
    }
}

/// The check that the ElastiService still exists; none if it is being deleted, which is known.
fn owner(draft: &Draft<'_>) -> Option<ObjectRef> {
    let facts = draft.facts;
    (!facts.is_deleted()).then(|| ObjectRef::of(&*facts.service))
}

fn slices(draft: &Draft<'_>) -> Vec<PlannedChange> {
    let live = &draft.facts.slices;
    match &draft.slices {
        SliceChange::Leave => Vec::new(),
        SliceChange::Remove => {
            let why = if draft.finalizer == Finalizer::Remove {
                "the ElastiService is being deleted"
            } else {
                "the data plane is proved to reach its pods"
            };
            let delete = |slice: &Arc<EndpointSlice>| PlannedChange::Delete {
                object: ObjectRef::of(&**slice),
                reason: why.to_owned(),
            };
            live.iter().map(delete).collect()
        }
        SliceChange::Want(wanted) => {
            let differs = |slice: &&EndpointSlice| live.iter().all(|live| **live != **slice);
            let differing = wanted.iter().filter(differs);
            differing
                .filter_map(|slice| write_slice(draft, slice))
                .collect()
        }
    }
}

/// For a service that is being deleted no slice is created. Existing ones follow the resolvers until pods
/// answer.
fn write_slice(draft: &Draft<'_>, slice: &EndpointSlice) -> Option<PlannedChange> {
    let object = DesiredObject::of(slice);
    if slice.resource_version().is_some() {
        return Some(PlannedChange::Replace {
            object,
            owner: owner(draft),
            reason: "its ports or the ready resolvers have changed".to_owned(),
        });
    }
    (!draft.facts.is_deleted()).then(|| PlannedChange::Post {
        object,
        owner: owner(draft),
        // A slice of KubeElasti has none of our labels, so no watch of ours shows it.
        if_exists: IfExists::TakeOver,
        reason: "it adds resolvers to the Service".to_owned(),
    })
}

/// A slice of KubeElasti has neither our labels nor an owner, so nothing else would ever delete it.
fn foreign_slice(service: &ElastiService) -> PlannedChange {
    let namespace = service.namespace().unwrap_or_default();
    let name = names::resolver_slice(&service.spec.service);
    PlannedChange::DeleteByName {
        kind: ResourceKind::of::<EndpointSlice>(),
        key: Key::new(&namespace, &name),
        reason: "KubeElasti may have left it, and it leads to resolvers".to_owned(),
    }
}

fn scale_target(
    target: &Target,
    kind: &ResourceKind,
    scale: ScaleWrite,
    reason: &Reason,
) -> Option<PlannedChange> {
    let Target::Scaled { metadata, .. } = target else {
        return None;
    };
    let version = metadata.resource_version.clone();
    let metadata = ObjectMeta {
        resource_version: version.filter(|_| scale.if_unchanged),
        ..(**metadata).clone()
    };
    let why = format!("to {} replicas, since {reason}", scale.replicas);
    Some(scale_change(kind, &metadata, scale.replicas, why))
}

fn cleanup(draft: &Draft<'_>) -> Vec<PlannedChange> {
    let facts = draft.facts;
    if draft.finalizer == Finalizer::Abandon {
        let why = "what was made for it cannot be restored or deleted";
        return vec![finalizer_change(&facts.service, false, why)];
    }
    let leftovers = facts.leftovers.iter();
    let mut changes: Vec<_> = leftovers
        .map(|object| PlannedChange::Delete {
            object: object.clone(),
            reason: "it was made for a Service that spec.service no longer names".to_owned(),
        })
        .collect();
    if draft.finalizer == Finalizer::Remove {
        // The private Service of a rival is not ours.
        let private = facts.private.as_ref().filter(|_| facts.rival.is_none());
        changes.extend(private.map(|private| PlannedChange::Delete {
            object: ObjectRef::of(&**private),
            reason: "the ElastiService is being deleted".to_owned(),
        }));
        let why = "its target is awake, and everything that was made for it is deleted";
        changes.push(finalizer_change(&facts.service, false, why));
    }
    changes
}

fn finalizer_change(service: &ElastiService, present: bool, why: &str) -> PlannedChange {
    let others = service.finalizers().iter();
    let others = others.filter(|one| *one != FINALIZER).cloned();
    let ours = present.then(|| FINALIZER.to_owned());
    let finalizers: Vec<_> = others.chain(ours).collect();
    let metadata = &service.metadata;
    PlannedChange::Merge {
        kind: ResourceKind::of::<ElastiService>(),
        metadata: Box::new(ObjectMeta {
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            ..ObjectMeta::default()
        }),
        subresource: None,
        patch: json!({"metadata": {"finalizers": finalizers}}),
        reason: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::ConfigMap};

    use super::*;

    #[test]
    fn a_refused_scale_is_an_event_that_names_what_was_scaled() {
        let metadata = ObjectMeta {
            name: Some("former".to_owned()),
            ..ObjectMeta::default()
        };
        let scale = scale_change(&ResourceKind::of::<StatefulSet>(), &metadata, 3, "it wakes");
        assert_eq!(
            ServiceChange::Write(scale).if_refused(),
            Some(EventDraft::warning(
                "FailedToScale",
                "StatefulSet former could not be scaled to 3"
            ))
        );
        let other = PlannedChange::Merge {
            kind: ResourceKind::of::<ConfigMap>(),
            metadata: Box::new(metadata),
            subresource: None,
            patch: json!({"spec": {"replicas": 3}}),
            reason: String::new(),
        };
        assert_eq!(ServiceChange::Write(other).if_refused(), None);
        let freed = ServiceChange::FreePorts {
            ports: vec![1],
            reason: String::new(),
        };
        assert_eq!(freed.if_refused(), None);
    }
}
