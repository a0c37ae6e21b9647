//! Namespaces.
//!
//! `spec.finalizers` keeps a namespace until its content is removed; only the `finalize`
//! subresource changes it.

use serde_json::{Value, json};

use super::{
    NameRule, Rules, Traits, WriteContext,
    fields::{append, fill, filled, is_set, list, set, take, text},
    names,
};
use crate::status::Problems;

/// The label that selects a namespace by its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    validate,
    validate_status,
    traits: Traits {
        delete_returns_object: true,
        name: NameRule::Label,
        checks_metadata_again: true,
        metadata_change_last: true,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn default(namespace: &mut Value) {
    label_with_name(namespace);
    if let Some(status) = namespace.get_mut("status") {
        fill(status, "phase", "Active");
    }
}

fn label_with_name(namespace: &mut Value) {
    let name = text(&namespace["metadata"], "name").to_owned();
    if name.is_empty() {
        return;
    }
    if let Some(labels) = filled(namespace, "metadata").and_then(|m| filled(m, "labels")) {
        set(labels, NAME_LABEL, name);
    }
}

fn prepare_create(namespace: &mut Value, _: &WriteContext) {
    label_with_name(namespace);
    set(namespace, "status", json!({"phase": "Active"}));
    let Some(spec) = filled(namespace, "spec") else {
        return;
    };
    let held = list(spec, "finalizers");
    if !held.iter().any(|finalizer| finalizer == "kubernetes") {
        append(spec, "finalizers", [json!("kubernetes")]);
    }
}

fn prepare_update(new: &mut Value, old: &Value) {
    let Some(spec) = filled(new, "spec") else {
        return;
    };
    match old["spec"].get("finalizers") {
        Some(Value::Array(held)) if !held.is_empty() => set(spec, "finalizers", held.clone()),
        _ => {
            take(spec, "finalizers");
        }
    }
}

fn validate(namespace: &Value, problems: &mut Problems) {
    for finalizer in list(&namespace["spec"], "finalizers")
        .iter()
        .filter_map(Value::as_str)
    {
        for complaint in names::qualified(finalizer) {
            problems.invalid("spec.finalizers", finalizer, complaint);
        }
        if finalizer != "kubernetes" && !finalizer.contains('/') {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            problems.invalid("spec.finalizers", finalizer, detail);
        }
    }
}

fn validate_status(new: &Value, _old: &Value, problems: &mut Problems) {
    let phase = text(&new["status"], "phase");
    let (allowed, detail) = if is_set(&new["metadata"], "deletionTimestamp") {
        (
            "Terminating",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        )
    } else {
        (
            "Active",
            "may only be 'Active' if `deletionTimestamp` is empty",
        )
    };
    if phase != allowed {
        problems.invalid("status.Phase", phase, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kinds::{
            check::validate_change,
            testing::{created, defaulted, errors, texts},
        },
        schema::builtin,
    };

    #[test]
    fn the_name_label_cannot_lie() {
        let sent = json!({"metadata": {"name": "a", "labels": {NAME_LABEL: "b", "c": "d"}}});
        let labels = defaulted(&RULES, &sent)["metadata"]["labels"].clone();
        assert_eq!(labels, json!({NAME_LABEL: "a", "c": "d"}));
    }

    #[test]
    fn own_finalizers_stay_beside_the_servers() {
        let sent = json!({"metadata": {"name": "a"}, "spec": {"finalizers": ["x.io/y"]}, "status": {"phase": "Odd"}});
        let stored = created(&RULES, &sent);
        assert_eq!(
            stored["spec"]["finalizers"],
            json!(["x.io/y", "kubernetes"])
        );
        assert_eq!(stored["status"], json!({"phase": "Active"}));
        let bad = json!({"spec": {"finalizers": ["mine"]}});
        assert_eq!(errors(&RULES, &bad).len(), 1);
    }

    #[test]
    fn an_update_does_not_touch_finalizers() {
        let old = json!({"spec": {"finalizers": ["kubernetes"]}});
        let mut new = json!({"spec": {"finalizers": []}});
        prepare_update(&mut new, &old);
        assert_eq!(new, old);
        for none in [json!(null), json!([])] {
            let mut new = json!({"spec": {"finalizers": ["kubernetes"]}});
            prepare_update(&mut new, &json!({"spec": {"finalizers": none}}));
            assert_eq!(new, json!({"spec": {}}));
        }
    }

    #[test]
    fn a_change_of_metadata_is_judged_after_the_object() {
        let old = json!({"metadata": {"name": "a", "uid": "u"}});
        let new = json!({"metadata": {"name": "a", "uid": "x", "labels": {"l": "b."}, "finalizers": ["f"]}});
        let schema = builtin().named("io.k8s.api.core.v1.Namespace").unwrap();
        let mut problems = Problems::new();
        validate_change(&RULES, schema, false, (&new, &old), &mut problems);
        let errors = texts(&problems);
        let fields: Vec<_> = errors
            .iter()
            .filter_map(|text| text.split(": ").next())
            .collect();
        let (labels, uid, finalizer) =
            ("metadata.labels", "metadata.uid", "metadata.finalizers[0]");
        let shared = [labels, uid, labels];
        let object = [labels, finalizer];
        let change = [uid, labels, finalizer];
        assert_eq!(fields, [&shared[..], &object, &change].concat());
    }

    #[test]
    fn a_status_without_a_phase_is_active() {
        let sent = json!({"metadata": {"name": "a"}, "status": {"conditions": []}});
        assert_eq!(defaulted(&RULES, &sent)["status"]["phase"], "Active");
    }

    #[test]
    fn the_phase_follows_deletion() {
        for (metadata, phase, good) in [
            (json!({}), "Active", true),
            (json!({}), "Terminating", false),
            (json!({"deletionTimestamp": "t"}), "Terminating", true),
            (json!({"deletionTimestamp": "t"}), "Active", false),
        ] {
            let new = json!({"metadata": metadata, "status": {"phase": phase}});
            let mut problems = Problems::new();
            validate_status(&new, &json!({}), &mut problems);
            assert_eq!(problems.is_empty(), good, "{:?}", texts(&problems));
        }
    }
}
