//! What becomes of an annotation.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{ResourceExt, api::ObjectMeta};
use neap_kit::event::Note;

use super::annotations::{self, Bad, SERVICE, TARGET};
use crate::{
    api::{ElastiService, ScaleTarget},
    service::objects::is_owned,
};

/// On an ElastiService: it was made for annotations.
pub const FROM: &str = "idle.neaptide.dev/from-annotations";

/// What is known of an object that may be annotated.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The object that may have annotations.
    pub annotated: &'a ObjectMeta,
    /// Who it is, as an owner.
    pub owner: OwnerReference,
    /// The Services it may be about: the one itself, or those that select what runs.
    pub services: Vec<String>,
    /// What may run behind it: the one itself, or those that the Service selects.
    pub targets: Vec<ScaleTarget>,
    /// All ElastiServices around it.
    pub all: Vec<&'a ElastiService>,
    /// Nothing sleeps here, so nothing is made that could. What is there stays.
    pub off: bool,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// To be there, as this.
    pub keep: Option<Box<ElastiService>>,
    /// To go.
    pub remove: Vec<ElastiService>,
    /// To be told.
    pub note: Option<Note>,
}

/// Decides.
pub fn decide(facts: &Facts<'_>) -> Decision {
    let all = facts.all.iter().copied();
    let mine = all.filter(|it| is_mine(it, &facts.owner));
    let mine: Vec<&ElastiService> = mine.collect();
    let remove = |but: Option<&str>| {
        let others = mine.iter().filter(|it| Some(&*it.name_any()) != but);
        others.map(|it| (*it).clone()).collect()
    };
    let gone = facts.annotated.deletion_timestamp.is_some();
    let none = BTreeMap::new();
    let said = facts.annotated.annotations.as_ref().unwrap_or(&none);
    let asked = match annotations::read(said) {
        // What was made goes with its owner.
        _ if gone => return Decision::default(),
        Ok(None) => {
            return Decision {
                remove: remove(None),
                ..Decision::default()
            };
        }
        Ok(Some(asked)) => wanted(facts, asked),
        Err(bad) => Err(bad),
    };
    match asked {
        // What was understood before stays until it is understood again.
        Err(bad) => Decision {
            note: Some(Note::warning("NotUnderstood", bad.to_string())),
            ..Decision::default()
        },
        Ok(wanted) => kept(facts, wanted, &remove),
    }
}

fn kept(
    facts: &Facts<'_>,
    mut wanted: ElastiService,
    remove: &dyn Fn(Option<&str>) -> Vec<ElastiService>,
) -> Decision {
    let name = wanted.name_any();
    let others = facts.all.iter().filter(|it| !is_mine(it, &facts.owner));
    let mut others =
        others.filter(|it| it.spec.service == wanted.spec.service || it.name_any() == name);
    if let Some(other) = others.next() {
        let other = other.name_any();
        let message =
            format!("the ElastiService {other} is there already, so annotations say nothing");
        return Decision {
            remove: remove(None),
            note: Some(Note::warning("AlreadyThere", message)),
            ..Decision::default()
        };
    }
    let live = facts.all.iter().find(|it| it.name_any() == name);
    let remove = remove(Some(&name));
    if live.is_none() && facts.off {
        return Decision {
            remove,
            ..Decision::default()
        };
    }
    if let Some(live) = live {
        if live.spec == wanted.spec {
            return Decision {
                remove,
                ..Decision::default()
            };
        }
        wanted = ElastiService {
            spec: wanted.spec,
            ..(*live).clone()
        };
    }
    Decision {
        keep: Some(Box::new(wanted)),
        remove,
        note: None,
    }
}

/// The ElastiService that is asked for.
fn wanted(facts: &Facts<'_>, asked: annotations::Asked) -> Result<ElastiService, Bad> {
    let service = match (asked.service, &facts.services[..]) {
        (Some(service), _) => service,
        (None, [one]) => one.clone(),
        (None, found) => return Err(unclear(SERVICE, found.len())),
    };
    let target = match (asked.target, &facts.targets[..]) {
        (Some(target), _) => target,
        (None, [one]) => one.clone(),
        (None, found) => return Err(unclear(TARGET, found.len())),
    };
    let mut spec = asked.spec;
    spec.service.clone_from(&service);
    spec.scale_target_ref = target;
    let mut wanted = ElastiService::new(&service, spec);
    wanted
        .metadata
        .namespace
        .clone_from(&facts.annotated.namespace);
    wanted.metadata.owner_references = Some(vec![facts.owner.clone()]);
    wanted.metadata.labels = Some([(FROM.to_owned(), "true".to_owned())].into());
    Ok(wanted)
}

fn unclear(annotation: &str, found: usize) -> Bad {
    let wants = if found == 0 {
        "the name of one, since none fits by its labels"
    } else {
        "the name of one, since several fit by their labels"
    };
    Bad {
        annotation: annotation.to_owned(),
        value: String::new(),
        wants,
    }
}

fn is_mine(service: &ElastiService, owner: &OwnerReference) -> bool {
    service.labels().contains_key(FROM) && is_owned(service, Some(&owner.uid))
}
