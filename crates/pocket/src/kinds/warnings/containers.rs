//! Warnings about containers: variables that hide one another, amounts that are no number of
//! bytes, profiles in annotations.

use serde_json::Value;

use super::deaf;
use crate::{
    kinds::fields::{is_set, list, text},
    quantity::Quantity,
};

const SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) fn tell(spec: &Value, annotations: &Value, at: &str, warnings: &mut Vec<String>) {
    for field in ["initContainers", "containers"] {
        for (index, container) in list(spec, field).iter().enumerate() {
            let path = format!("{at}spec.{field}[{index}]");
            tell_profiles(container, annotations, at, warnings);
            for side in ["limits", "requests"] {
                let path = format!("{path}.resources.{side}");
                tell_amounts(&container["resources"][side], &path, warnings);
            }
            tell_hidden(container, &path, warnings);
        }
    }
}

fn tell_profiles(container: &Value, annotations: &Value, at: &str, warnings: &mut Vec<String>) {
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

/// Memory and disks come in whole bytes.
pub(super) fn tell_amounts(amounts: &Value, path: &str, warnings: &mut Vec<String>) {
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

/// A variable that builds on one of the same name does not hide it.
fn tell_hidden(container: &Value, path: &str, warnings: &mut Vec<String>) {
    let variables = list(container, "env");
    for (index, variable) in variables.iter().enumerate() {
        let name = text(variable, "name");
        let known = variables[..index]
            .iter()
            .any(|before| text(before, "name") == name);
        if known && !text(variable, "value").contains(&format!("$({name})")) {
            warnings.push(format!(
                "{path}.env[{index}]: hides previous definition of \"{name}\", which may be dropped when using apply"
            ));
        }
    }
}
