//! The decision about an annotated object: a pure function of the facts.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use neap_kit::{
    apply::{DesiredObject, IfExists, ObjectRef, Plan, PlannedChange},
    event::EventDraft,
};

use super::{
    annotations::{self, InvalidAnnotation, OptIn, SERVICE, TARGET},
    facts::{Facts, Unreadable},
};
use crate::{api::ElastiService, elasti_service::objects::is_owned, reason::Reason};

/// The label of generated ElastiServices.
pub const FROM_ANNOTATIONS: &str = "idle.neaptide.dev/from-annotations";
/// The delay before a problem is checked again: what it refers to may be created meanwhile.
const RETRY_DELAY: Duration = Duration::from_mins(1);

/// What is to be done, and why. There is no status: the annotated object belongs to its user.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The writes, in order.
    pub plan: Plan,
    /// The Events to record on the annotated object.
    pub events: Vec<EventDraft>,
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
        return Decision::new(Vec::new(), "Deleted", "it is being deleted");
    }
    let none = BTreeMap::new();
    let annotations = facts.annotated.annotations.as_ref().unwrap_or(&none);
    let wanted = match annotations::parse(annotations) {
        Ok(None) => {
            let why = "the annotation that enables sleep is absent or false";
            return Decision::new(delete_generated(facts, None, why), "NotEnabled", why);
        }
        Ok(Some(opt_in)) => wanted(facts, opt_in),
        Err(invalid) => Err(invalid),
    };
    match wanted {
        // The last valid configuration stays.
        Err(invalid) => Decision::problem(Vec::new(), "NotUnderstood", invalid.to_string()),
        Ok(wanted) => maintain(facts, wanted),
    }
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
            let message = "no service sleeps in its namespace, so none is created";
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
    if live.spec != wanted.spec {
        let changed = ElastiService {
            spec: wanted.spec,
            ..(**live).clone()
        };
        changes.push(PlannedChange::Replace {
            object: DesiredObject::of(&changed),
            owner: None,
            reason: "its spec differs from the annotations".to_owned(),
        });
    }
    Decision::new(changes, "Enabled", "the annotations enable sleep")
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
        wants,
    }
}

fn is_generated(service: &ElastiService, owner: &OwnerReference) -> bool {
    service.labels().contains_key(FROM_ANNOTATIONS) && is_owned(service, Some(&owner.uid))
}
