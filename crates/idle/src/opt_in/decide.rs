//! The decision about an annotated object: a pure function of the facts.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{
    api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::{DesiredObject, IfExists, ObjectRef, Plan, PlannedChange},
    event::EventDraft,
};

use super::{
    annotations::{
        self, AUTOSCALER, InvalidAnnotation, MIN_REPLICAS, OptIn, SERVER_ADDRESS, SERVICE, TARGET,
    },
    facts::{Facts, SERVICE_KIND, Unreadable},
};
use crate::{
    api::{AutoscalerKind, ElastiService, ElastiServiceSpec, ScaleTarget, names},
    elasti_service::objects::is_owned,
    reason::Reason,
    target::canonical_kind,
};

/// The label of generated ElastiServices.
pub const FROM_ANNOTATIONS: &str = "idle.neaptide.dev/from-annotations";
/// On a generated ElastiService: the digest of the spec that the annotations gave it.
const APPLIED_SPEC: &str = "idle.neaptide.dev/applied-spec";
/// The delay before a problem is checked again: what it refers to may be created meanwhile.
const RETRY_DELAY: Duration = Duration::from_mins(1);

/// What is to be done, and why. There is no status: the annotated object belongs to its user.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The writes, in order.
    pub plan: Plan,
    /// The Events to record on the annotated object.
    pub events: Vec<EventDraft>,
    /// The Events to record on other objects.
    pub service_events: Vec<(ObjectReference, EventDraft)>,
    /// When there has to be another decision, if no change causes one before.
    pub requeue_after: Option<Duration>,
    /// Why.
    pub reason: Reason,
}

impl Decision {
    fn new(changes: Vec<PlannedChange>, name: &'static str, message: impl Into<String>) -> Self {
        Self {
            plan: changes.into(),
            events: Vec::new(),
            service_events: Vec::new(),
            requeue_after: None,
            reason: Reason::new(name, message),
        }
    }

    /// A decision about a problem, which the user learns by an Event.
    fn problem(changes: Vec<PlannedChange>, name: &'static str, message: String) -> Self {
        Self {
            events: vec![EventDraft::warning(name, message.clone())],
            requeue_after: Some(RETRY_DELAY),
            ..Self::new(changes, name, message)
        }
    }
}

/// Decides what is to be done.
pub fn decide(facts: &Facts) -> Decision {
    if let Some(unreadable) = &facts.unreadable {
        return not_read(unreadable);
    }
    if facts.annotated.deletion_timestamp.is_some() {
        // The garbage collector deletes the ElastiService with its owner.
        return Decision::new(
            Vec::new(),
            "Deleted",
            "the annotated object is being deleted",
        );
    }
    let none = BTreeMap::new();
    let annotations = facts.annotated.annotations.as_ref().unwrap_or(&none);
    let wanted = match annotations::parse(annotations) {
        Ok(None) => {
            let why = "the annotation that enables sleep is absent or false";
            return Decision::new(delete_generated(facts, None, why), "NotEnabled", why);
        }
        Ok(Some(opt_in)) => {
            if let Some(refused) = refused(facts, annotations, &opt_in) {
                let why = "its annotations go beyond what the operator's settings allow";
                let changes = delete_generated(facts, None, why);
                return Decision::problem(changes, "NotAllowed", refused.to_string());
            }
            wanted(facts, opt_in)
        }
        Err(invalid) => Err(invalid),
    };
    match wanted {
        // The last valid configuration stays.
        Err(invalid) => Decision::problem(Vec::new(), "InvalidAnnotation", invalid.to_string()),
        Ok(wanted) => maintain(facts, wanted),
    }
}

/// The annotation that would do what a right on the annotated object does not include, if there is one.
fn refused(
    facts: &Facts,
    annotations: &BTreeMap<String, String>,
    opt_in: &OptIn,
) -> Option<InvalidAnnotation> {
    let refuse = |name: &str, wants: Cow<'static, str>| InvalidAnnotation {
        annotation: name.to_owned(),
        value: annotations.get(name).cloned().unwrap_or_default(),
        wants,
    };
    let related = facts.named_are_related == Some(true);
    if opt_in.target.is_some() && facts.owner.kind == SERVICE_KIND && !related {
        let wants = "a workload whose pods the Service selects; any other needs an ElastiService";
        return Some(refuse(TARGET, wants.into()));
    }
    if opt_in.service.is_some() && facts.owner.kind != SERVICE_KIND && !related {
        let wants =
            "a Service that selects the pods of the workload; any other needs an ElastiService";
        return Some(refuse(SERVICE, wants.into()));
    }
    let (most, limits) = (facts.limits.max_replicas, &facts.limits);
    if opt_in.spec.min_target_replicas.is_some_and(|it| it > most) {
        let wants = format!(
            "a number up to {most}, the ELASTI_ANNOTATION_MAX_REPLICAS of the operator; more needs an \
             ElastiService"
        );
        return Some(refuse(MIN_REPLICAS, wants.into()));
    }
    let address = annotations
        .get(SERVER_ADDRESS)
        .map(|address| address.trim());
    let address = address.filter(|address| !address.is_empty());
    if address.is_some_and(|address| !limits.allows_server(address)) {
        let wants = "a server that ELASTI_ANNOTATION_SERVERS of the operator allows; any other needs an \
                     ElastiService";
        let mut refused = refuse(SERVER_ADDRESS, wants.into());
        // The value may contain the credentials of a user.
        "an address that is not allowed".clone_into(&mut refused.value);
        return Some(refused);
    }
    let autoscaler = opt_in.spec.autoscaler.as_ref();
    let keda = autoscaler.is_some_and(|it| it.kind == AutoscalerKind::Keda);
    let target = opt_in.target.as_ref().or(match &facts.targets[..] {
        [one] => Some(one),
        _ => None,
    });
    if keda && !target.is_some_and(|target| scales(facts.scaled_object_target.as_ref(), target)) {
        let wants =
            "a ScaledObject that scales the same workload; any other needs an ElastiService";
        return Some(refuse(AUTOSCALER, wants.into()));
    }
    None
}

/// Whether a ScaledObject with this target scales `target`.
fn scales(scaled: Option<&ScaleTarget>, target: &ScaleTarget) -> bool {
    let parts = |it: &ScaleTarget| {
        let kind = canonical_kind(&it.kind).to_owned();
        (it.api_version.clone(), kind, it.name.clone())
    };
    scaled.is_some_and(|scaled| parts(scaled) == parts(target))
}

/// Nothing is decided without the objects. The user learns of a refusal, which does not pass by itself.
fn not_read(unreadable: &Unreadable) -> Decision {
    let message = format!(
        "the objects that it is about cannot be read: {}",
        unreadable.message
    );
    let mut decision = Decision::problem(Vec::new(), "NotRead", message);
    if !unreadable.refused {
        decision.events.clear();
    }
    decision
}

fn maintain(facts: &Facts, wanted: ElastiService) -> Decision {
    let name = wanted.name_any();
    let others = facts.elasti_services.iter();
    let mut others = others
        .filter(|it| !is_generated(it, &facts.owner))
        .filter(|it| it.spec.service == wanted.spec.service || it.name_any() == name);
    if let Some(other) = others.next() {
        let other = other.name_any();
        let message =
            format!("the ElastiService {other} exists already, so the annotations have no effect");
        let why = format!("the ElastiService {other} of a user takes precedence");
        return Decision::problem(delete_generated(facts, None, &why), "AlreadyThere", message);
    }
    let why = "the annotations are about another Service";
    let mut changes = delete_generated(facts, Some(&name), why);
    let live = facts.elasti_services.iter();
    let live: Option<&Arc<ElastiService>> = live.clone().find(|it| it.name_any() == name);
    let Some(live) = live else {
        if facts.off {
            let message = "no service of the namespace sleeps, so none is created";
            return Decision::new(changes, "SwitchedOff", message);
        }
        changes.push(PlannedChange::Post {
            object: DesiredObject::of(&wanted),
            owner: Some(facts.object.clone()),
            // A cache that is behind shows it later, and there is another decision.
            if_exists: IfExists::Conflict,
            reason: "the annotations enable sleep".to_owned(),
        });
        return Decision::new(changes, "Enabled", "the annotations enable sleep");
    };
    update(facts, live, wanted, changes)
}

/// Brings an existing generated ElastiService to its desired spec.
fn update(
    facts: &Facts,
    live: &ElastiService,
    wanted: ElastiService,
    changes: Vec<PlannedChange>,
) -> Decision {
    let applied = applied_spec(&wanted.spec);
    let is_recorded = live.annotations().get(APPLIED_SPEC) == Some(&applied);
    let mut decision = Decision::new(changes, "Enabled", "the annotations enable sleep");
    if live.spec == wanted.spec && is_recorded {
        return decision;
    }
    if is_recorded {
        // The annotations have not changed since, so a user has changed the ElastiService.
        let about = format!("{} {}", facts.owner.kind, facts.owner.name);
        let message = format!(
            "{} of ElastiService {} was changed and is restored, since the annotations of {about} set \
             it; change those",
            changed_fields(&live.spec, &wanted.spec),
            live.name_any()
        );
        let event = EventDraft::warning("EditReverted", message);
        decision
            .service_events
            .push((live.object_ref(&()), event.clone()));
        decision.events.push(event);
    }
    let mut changed = ElastiService {
        spec: wanted.spec,
        ..live.clone()
    };
    changed
        .annotations_mut()
        .insert(APPLIED_SPEC.to_owned(), applied);
    decision.plan.changes.push(PlannedChange::Replace {
        object: DesiredObject::of(&changed),
        owner: None,
        reason: "its spec differs from the annotations".to_owned(),
    });
    decision
}

/// A digest of the spec that was applied last. It tells an edit of a user from a change of the annotations.
fn applied_spec(spec: &ElastiServiceSpec) -> String {
    let text = serde_json::to_string(spec).unwrap_or_default();
    names::short_hash(&text)
}

/// The fields of the spec that differ.
fn changed_fields(live: &ElastiServiceSpec, wanted: &ElastiServiceSpec) -> String {
    let fields = |spec| serde_json::to_value(spec).unwrap_or_default();
    let (live, wanted) = (fields(live), fields(wanted));
    let names = [&live, &wanted].into_iter().filter_map(|it| it.as_object());
    let names: BTreeSet<_> = names.flat_map(|fields| fields.keys()).collect();
    let differ = names
        .into_iter()
        .filter(|name| live[*name] != wanted[*name]);
    let differ: Vec<_> = differ.map(|name| format!("spec.{name}")).collect();
    differ.join(", ")
}

/// Deletes the ElastiServices that were generated for the object, except one.
fn delete_generated(facts: &Facts, except: Option<&str>, why: &str) -> Vec<PlannedChange> {
    let generated = facts.elasti_services.iter();
    let generated = generated.filter(|it| is_generated(it, &facts.owner));
    let unwanted = generated.filter(|it| Some(&*it.name_any()) != except);
    unwanted
        .map(|it| PlannedChange::Delete {
            object: ObjectRef::of(&**it),
            reason: why.to_owned(),
        })
        .collect()
}

/// The ElastiService that the annotations describe.
fn wanted(facts: &Facts, opt_in: OptIn) -> Result<ElastiService, InvalidAnnotation> {
    let service = match (opt_in.service, &facts.services[..]) {
        (Some(service), _) => service,
        (None, [one]) => one.clone(),
        (None, found) => return Err(ambiguous(SERVICE, found.len())),
    };
    let target = match (opt_in.target, &facts.targets[..]) {
        (Some(target), _) => target,
        (None, [one]) => one.clone(),
        (None, found) => return Err(ambiguous(TARGET, found.len())),
    };
    let mut spec = opt_in.spec;
    spec.service.clone_from(&service);
    spec.scale_target_ref = target;
    let mut wanted = ElastiService::new(&service, spec);
    wanted
        .metadata
        .namespace
        .clone_from(&facts.annotated.namespace);
    let applied = applied_spec(&wanted.spec);
    wanted.metadata.annotations = Some([(APPLIED_SPEC.to_owned(), applied)].into());
    wanted.metadata.owner_references = Some(vec![facts.owner.clone()]);
    wanted.metadata.labels = Some([(FROM_ANNOTATIONS.to_owned(), "true".to_owned())].into());
    Ok(wanted)
}

fn ambiguous(annotation: &str, found: usize) -> InvalidAnnotation {
    let wants = if found == 0 {
        "the name of one, since none matches by its labels"
    } else {
        "the name of one, since several match by their labels"
    };
    InvalidAnnotation {
        annotation: annotation.to_owned(),
        value: String::new(),
        wants: wants.into(),
    }
}

fn is_generated(service: &ElastiService, owner: &OwnerReference) -> bool {
    service.labels().contains_key(FROM_ANNOTATIONS) && is_owned(service, Some(&owner.uid))
}
