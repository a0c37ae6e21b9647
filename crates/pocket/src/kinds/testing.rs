//! Running the rules of one kind in tests.

use serde_json::Value;

use super::{Cluster, Moment, Rules, Settings};
use crate::status::Problems;

pub(super) fn texts(problems: &Problems) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// What `validate` says.
pub(super) fn told(rules: &Rules, object: &Value) -> Vec<String> {
    let mut problems = Problems::new();
    (rules.validate)(object, &mut problems);
    texts(&problems)
}

/// What `validate_update` says.
pub(super) fn told_of_update(rules: &Rules, new: &Value, old: &Value) -> Vec<String> {
    let mut problems = Problems::new();
    (rules.validate_update)(new, old, &mut problems);
    texts(&problems)
}

/// The object after `default`.
pub(super) fn defaulted(rules: &Rules, object: &Value) -> Value {
    let mut object = object.clone();
    (rules.default)(&mut object);
    object
}

/// The moment of every write in tests.
pub(super) fn moment() -> Moment {
    Moment {
        now: jiff::Timestamp::UNIX_EPOCH,
        seed: 0x5eed_5eed_5eed,
    }
}

/// The object after `default` and `prepare_create`.
pub(super) fn created(rules: &Rules, object: &Value) -> Value {
    let mut object = defaulted(rules, object);
    (rules.prepare_create)(&mut object, &moment());
    object
}

/// Other objects, by plural.
#[derive(Default)]
pub(super) struct Others {
    pub(super) objects: Vec<(&'static str, Value)>,
    pub(super) settings: Settings,
}

impl Cluster for Others {
    fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let mut found = self.list(group, plural, namespace).into_iter();
        found.find(|object| object["metadata"]["name"] == name)
    }

    fn list(&self, _group: &str, plural: &str, namespace: &str) -> Vec<Value> {
        let here =
            |object: &Value| namespace.is_empty() || object["metadata"]["namespace"] == namespace;
        let of_kind = self.objects.iter().filter(|(kind, _)| *kind == plural);
        of_kind
            .map(|(_, object)| object)
            .filter(|o| here(o))
            .cloned()
            .collect()
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }
}
