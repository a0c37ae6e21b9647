//! Helpers for testing the rules of one kind.

use serde_json::Value;

use super::{Cluster, Rules, Settings, WriteContext};
use crate::status::Problems;

pub(super) fn texts(problems: &Problems) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// The errors of `validate`.
pub(super) fn errors(rules: &Rules, object: &Value) -> Vec<String> {
    let mut problems = Problems::new();
    (rules.validate)(object, &mut problems);
    texts(&problems)
}

/// The errors of `validate_update`.
pub(super) fn update_errors(rules: &Rules, new: &Value, old: &Value) -> Vec<String> {
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

/// The time and seed of every write in tests.
pub(super) fn moment() -> WriteContext {
    WriteContext {
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
pub(super) struct OtherObjects {
    pub(super) objects: Vec<(&'static str, Value)>,
    pub(super) settings: Settings,
}

impl Cluster for OtherObjects {
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
