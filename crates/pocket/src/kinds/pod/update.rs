//! Which fields of an existing pod may change: images, added tolerations, an earlier deadline, a
//! negative grace period, fewer scheduling gates and, while there are gates, a narrower choice of
//! nodes. Nothing else.

mod gated;

use std::{
    collections::{HashMap, HashSet},
    ops::ControlFlow,
};

use serde_json::Value;

use crate::{
    kinds::{
        fields::{each_mut, is_set, list, number, set, take, text},
        path::Path,
        pod_spec::{validate_image_name, validate_tolerations},
    },
    status::Problems,
};

const FIXED: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn validate(new: &Value, old: &Value, problems: &mut Problems) {
    let (new, old) = (&new["spec"], &old["spec"]);
    if new == old {
        return;
    }
    for field in ["containers", "initContainers"] {
        if check_containers(field, new, old, problems).is_break() {
            return;
        }
    }
    if check_deadline(new, old, problems).is_break() {
        return;
    }
    check_tolerations(new, old, problems);
    check_gates(new, old, problems);
    if is_gated(old) {
        gated::check(new, old, problems);
    }
    if without_changeable(new, old) != *old {
        problems.forbidden("spec", FIXED);
    }
}

/// The new spec with the old values of the mutable fields.
fn without_changeable(new: &Value, old: &Value) -> Value {
    let mut spec = new.clone();
    for field in ["containers", "initContainers"] {
        let before = list(old, field);
        for (container, before) in each_mut(&mut spec, field).zip(before) {
            restore(container, before, "image");
        }
    }
    let mut fields = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    let was_negative = number(old, "terminationGracePeriodSeconds") < 0;
    if was_negative && number(new, "terminationGracePeriodSeconds") == 1 {
        fields.push("terminationGracePeriodSeconds");
    }
    if is_gated(old) {
        fields.push("nodeSelector");
        gated::restore_affinity(&mut spec, old);
    }
    for field in fields {
        restore(&mut spec, old, field);
    }
    spec
}

/// Whether the pod has scheduling gates.
fn is_gated(spec: &Value) -> bool {
    !list(spec, "schedulingGates").is_empty()
}

fn restore(new: &mut Value, old: &Value, field: &str) {
    match old.get(field) {
        Some(value) => set(new, field, value.clone()),
        None => {
            take(new, field);
        }
    }
}

/// Validates the changed fields once more. A different number of containers stops the validation.
fn check_containers(
    field: &str,
    new: &Value,
    old: &Value,
    problems: &mut Problems,
) -> ControlFlow<()> {
    let (spec, containers) = (Path::At("spec"), list(new, field));
    let path = spec.field(field);
    if containers.len() != list(old, field).len() {
        problems.forbidden(path, "pod updates may not add or remove containers");
        return ControlFlow::Break(());
    }
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index);
        if text(container, "image").is_empty() {
            problems.required(path.field("image"), "");
        }
        validate_image_name(container, &path, problems);
    }
    ControlFlow::Continue(())
}

/// An invalid deadline stops the validation.
fn check_deadline(new: &Value, old: &Value, problems: &mut Problems) -> ControlFlow<()> {
    const FIELD: &str = "activeDeadlineSeconds";
    let (path, seconds) = ("spec.activeDeadlineSeconds", number(new, FIELD));
    let most = i64::from(i32::MAX);
    let detail = if !is_set(new, FIELD) {
        if is_set(old, FIELD) {
            let detail = "must not update from a positive integer to nil value";
            problems.invalid(path, Value::Null, detail);
        }
        return ControlFlow::Continue(());
    } else if !(0..=most).contains(&seconds) {
        format!("must be between 0 and {most}, inclusive")
    } else if is_set(old, FIELD) && seconds > number(old, FIELD) {
        "must be less than or equal to previous value".to_owned()
    } else {
        return ControlFlow::Continue(());
    };
    problems.invalid(path, seconds, detail);
    ControlFlow::Break(())
}

/// Validates added tolerations once more.
fn check_tolerations(new: &Value, old: &Value, problems: &mut Problems) {
    let lasting = |toleration: &Value| {
        let mut toleration = toleration.clone();
        take(&mut toleration, "tolerationSeconds");
        toleration
    };
    let now: HashSet<Value> = list(new, "tolerations").iter().map(lasting).collect();
    let kept = |toleration: &Value| now.contains(&lasting(toleration));
    if list(old, "tolerations").iter().all(kept) {
        validate_tolerations(new, &Path::At("spec"), problems);
    } else {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        problems.forbidden("spec.tolerations", detail);
    }
}

fn check_gates(new: &Value, old: &Value, problems: &mut Problems) {
    let before: HashSet<&Value> = list(old, "schedulingGates").iter().collect();
    let path = Path::At("spec.schedulingGates");
    let now = list(new, "schedulingGates");
    // Of duplicate gates, the last is reported.
    let last: HashMap<&Value, usize> = now.iter().zip(0..).collect();
    for (index, gate) in now.iter().enumerate() {
        if !before.contains(gate) && last[gate] == index {
            let name = text(gate, "name");
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            problems.forbidden(path.index(index).field("name"), detail);
        }
    }
}
