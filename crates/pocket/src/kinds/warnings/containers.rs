//! Warnings about containers: duplicate variables, fractional bytes, profiles in annotations.

use std::collections::HashSet;

use serde_json::Value;

use super::deaf;
use crate::{
    kinds::fields::{is_set, list, text},
    quantity::Quantity,
};

const SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) fn warn(spec: &Value, annotations: &Value, at: &str, warnings: &mut Vec<String>) {
    for field in ["initContainers", "containers"] {
        for (index, container) in list(spec, field).iter().enumerate() {
            let path = format!("{at}spec.{field}[{index}]");
            warn_profiles(container, annotations, at, warnings);
            for side in ["limits", "requests"] {
                let path = format!("{path}.resources.{side}");
                warn_amounts(&container["resources"][side], &path, warnings);
            }
            warn_duplicates(container, &path, warnings);
        }
    }
}

fn warn_profiles(container: &Value, annotations: &Value, at: &str, warnings: &mut Vec<String>) {
    let (name, context) = (text(container, "name"), &container["securityContext"]);
    let seccomp = format!("{SECCOMP}{name}");
    if is_set(annotations, &seccomp) && !is_set(context, "seccompProfile") {
        warnings.push(deaf(at, &seccomp, "v1.27+", "seccompProfile"));
    }
    let apparmor = format!("{APPARMOR}{name}");
    if is_set(annotations, &apparmor) {
        warnings.push(format!(
            "{at}metadata.annotations[{apparmor}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
        ));
    }
}

/// Warns of fractional amounts of memory and storage.
pub(super) fn warn_amounts(amounts: &Value, path: &str, warnings: &mut Vec<String>) {
    for name in ["memory", "ephemeral-storage", "storage"] {
        let amount = text(amounts, name);
        let whole = amount.parse::<Quantity>().is_ok_and(Quantity::is_whole);
        if !amount.is_empty() && !whole {
            warnings.push(format!(
                "{path}[{name}]: fractional byte value \"{amount}\" is invalid, must be an integer"
            ));
        }
    }
}

/// Warns of a duplicate variable, unless the later one refers to the earlier.
fn warn_duplicates(container: &Value, path: &str, warnings: &mut Vec<String>) {
    let variables = list(container, "env");
    let mut seen = HashSet::with_capacity(variables.len());
    for (index, variable) in variables.iter().enumerate() {
        let name = text(variable, "name");
        let known = !seen.insert(name);
        if known && !text(variable, "value").contains(&format!("$({name})")) {
            warnings.push(format!(
                "{path}.env[{index}]: hides previous definition of \"{name}\", which may be dropped when using apply"
            ));
        }
    }
}
