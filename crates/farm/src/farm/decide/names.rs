//! The names of a component's objects, and what has them already.
//!
//! A write would fail for ever: the writer takes over no object that belongs to something else. So a
//! component whose names are taken says which object has them, and is written when that object is gone.

use std::collections::BTreeMap;

use super::Member;
use crate::farm::{
    facts::FarmFacts,
    objects::{self, ObjectContext},
    validate::Problem,
};

/// The reason of a component whose names are still those of objects that are being deleted.
pub(super) const WAITING_FOR_DELETION: &str = "WaitingForDeletion";

/// The kind of each object that a component needs, by its plural and its name.
type Names = BTreeMap<(String, String), String>;

/// Finds the components whose names are taken: by objects of others, or by an older component of the farm.
pub(super) fn check(facts: &FarmFacts, members: &mut [Member<'_>], context: &ObjectContext) {
    let wanted: Vec<_> = members.iter().map(|it| names(it, context)).collect();
    for index in 0..members.len() {
        if members[index].problem.is_none() {
            members[index].problem = taken(facts, members, &wanted, index);
        }
    }
}

/// What a component needs; nothing if it is being deleted.
fn names(member: &Member<'_>, context: &ObjectContext) -> Names {
    let component = member.component;
    if component.is_deleting() {
        return Names::new();
    }
    let mut desired = objects::around(component, context);
    let config = member.config.as_ref();
    desired.extend(config.and_then(|config| objects::config_map(component, config)));
    desired.extend(member.workload.as_ref().map(|it| it.object.clone()));
    let names = desired.iter().map(|object| {
        let resource = &object.kind.resource;
        let name = (resource.plural.clone(), object.key().name().to_owned());
        (name, resource.kind.clone())
    });
    names.collect()
}

fn taken(
    facts: &FarmFacts,
    members: &[Member<'_>],
    wanted: &[Names],
    index: usize,
) -> Option<Problem> {
    let component = members[index].component;
    let (mut foreign, mut leaving, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for (name, kind) in &wanted[index] {
        let object = format!("{kind} {}", name.1);
        if has(facts, &members[index], name) {
            continue;
        }
        match facts.foreign.get(name) {
            Some(it) if it.leaves => leaving.push(object),
            Some(_) => foreign.push(object),
            None => {
                let mut rivals = members.iter().zip(wanted).filter(|(it, names)| {
                    let older = it.component.seniority() < component.seniority();
                    has(facts, it, name) || older && names.contains_key(name)
                });
                let rival = rivals.next().map(|(it, _)| it.component);
                others.extend(rival.map(|rival| {
                    format!("{object} is that of {} {}", rival.kind.kind(), rival.name())
                }));
            }
        }
    }
    if !others.is_empty() {
        let others = others.join(", ");
        let message = format!("{others}: give this component another name");
        return Some(Problem::new("NameTaken", message));
    }
    if !foreign.is_empty() {
        let message = format!(
            "the namespace has objects with the names that this component needs, and they are not its \
             own: {}. Delete them, or give the component another name; nothing was changed",
            foreign.join(", ")
        );
        return Some(Problem::new("NameTaken", message));
    }
    (!leaving.is_empty()).then(|| {
        let message = format!(
            "objects with the names that this component needs are being deleted: {}",
            leaving.join(", ")
        );
        Problem::new(WAITING_FOR_DELETION, message)
    })
}

/// Whether the object of this name belongs to the component.
fn has(facts: &FarmFacts, member: &Member<'_>, name: &(String, String)) -> bool {
    let mut live = facts.live_of(member.component).iter();
    live.any(|(kind, object)| {
        kind.resource.plural == name.0 && object.metadata.name.as_deref() == Some(&name.1)
    })
}
