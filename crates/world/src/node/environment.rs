//! The environment of a container. Pure.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource};

use super::{field, pod::Obstacle, source::Sources};

/// All variables of `container`: what the node gives to every one (`given`), then what its
/// `envFrom` and `env` say, the later over the earlier.
pub(super) fn environment(
    container: &Container,
    given: &BTreeMap<String, String>,
    sources: &Sources,
) -> Result<BTreeMap<String, String>, Obstacle> {
    let mut all = given.clone();
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        let values = match (&from.config_map_ref, &from.secret_ref) {
            (Some(map), _) => sources.config_map(&map.name, map.optional)?,
            (None, Some(secret)) => sources.secret(&secret.name, secret.optional)?,
            (None, None) => BTreeMap::new(),
        };
        let texts = values
            .into_iter()
            .map(|(key, value)| (format!("{prefix}{key}"), text(value)));
        all.extend(texts);
    }
    for variable in container.env.iter().flatten() {
        if let Some(value) = value(variable, container, &all, sources)? {
            all.insert(variable.name.clone(), value);
        }
    }
    Ok(all)
}

fn value(
    variable: &EnvVar,
    container: &Container,
    before: &BTreeMap<String, String>,
    sources: &Sources,
) -> Result<Option<String>, Obstacle> {
    let Some(from) = &variable.value_from else {
        let value = variable.value.as_deref().unwrap_or_default();
        return Ok(Some(expand(value, before)));
    };
    if let Some(reference) = &from.config_map_key_ref {
        let values = sources.config_map(&reference.name, reference.optional)?;
        return key(
            values,
            &reference.key,
            reference.optional,
            "ConfigMap",
            &reference.name,
        );
    }
    if let Some(reference) = &from.secret_key_ref {
        let values = sources.secret(&reference.name, reference.optional)?;
        return key(
            values,
            &reference.key,
            reference.optional,
            "Secret",
            &reference.name,
        );
    }
    let found = of_itself(from, container, sources);
    found.map(Some).ok_or_else(|| Obstacle {
        reason: "CreateContainerConfigError",
        message: format!("env {}: the pod has no such field", variable.name),
    })
}

fn of_itself(from: &EnvVarSource, container: &Container, sources: &Sources) -> Option<String> {
    match (&from.field_ref, &from.resource_field_ref) {
        (Some(reference), _) => field::of_pod(&sources.pod, &reference.field_path),
        (None, Some(reference)) => field::of_resources(container, reference),
        (None, None) => None,
    }
}

fn key(
    mut values: BTreeMap<String, Vec<u8>>,
    key: &str,
    optional: Option<bool>,
    kind: &str,
    name: &str,
) -> Result<Option<String>, Obstacle> {
    match values.remove(key) {
        Some(value) => Ok(Some(text(value))),
        None if optional == Some(true) => Ok(None),
        None => Err(Obstacle {
            reason: "CreateContainerConfigError",
            message: format!("couldn't find key {key} in {kind} {name}"),
        }),
    }
}

fn text(value: Vec<u8>) -> String {
    String::from_utf8(value)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Puts values in the place of `$(NAME)`. `$$` stands for one dollar, and what is not known stays
/// as it is written.
pub(super) fn expand(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(left) = after.strip_prefix('$') {
            expanded.push('$');
            rest = left;
            continue;
        }
        let named = after
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'));
        let Some((name, left)) = named else {
            expanded.push('$');
            rest = after;
            continue;
        };
        match values.get(name) {
            Some(value) => expanded.push_str(value),
            None => expanded.extend(["$(", name, ")"]),
        }
        rest = left;
    }
    expanded.push_str(rest);
    expanded
}
