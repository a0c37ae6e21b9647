//! The environment of a container. Pure.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource};

use super::{downward_api, pod::WaitingReason, sources::PodSources};

/// All variables of `container`: those that the node gives to every container (`given`), then those
/// of its `envFrom` and `env`; later ones take precedence.
pub(super) fn environment(
    container: &Container,
    given: &BTreeMap<String, String>,
    sources: &PodSources,
) -> Result<BTreeMap<String, String>, WaitingReason> {
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
    sources: &PodSources,
) -> Result<Option<String>, WaitingReason> {
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
    let found = from_fields(from, container, sources);
    found.map(Some).ok_or_else(|| WaitingReason {
        reason: "CreateContainerConfigError",
        message: format!("env {}: the pod has no such field", variable.name),
    })
}

fn from_fields(from: &EnvVarSource, container: &Container, sources: &PodSources) -> Option<String> {
    match (&from.field_ref, &from.resource_field_ref) {
        (Some(reference), _) => downward_api::pod_field(&sources.pod, &reference.field_path),
        (None, Some(reference)) => downward_api::resource_field(container, reference),
        (None, None) => None,
    }
}

fn key(
    mut values: BTreeMap<String, Vec<u8>>,
    key: &str,
    optional: Option<bool>,
    kind: &str,
    name: &str,
) -> Result<Option<String>, WaitingReason> {
    match values.remove(key) {
        Some(value) => Ok(Some(text(value))),
        None if optional == Some(true) => Ok(None),
        None => Err(WaitingReason {
            reason: "CreateContainerConfigError",
            message: format!("couldn't find key {key} in {kind} {name}"),
        }),
    }
}

fn text(value: Vec<u8>) -> String {
    String::from_utf8(value)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Replaces `$(NAME)` by values. `$$` stands for one dollar, and an unknown name stays as it is.
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
