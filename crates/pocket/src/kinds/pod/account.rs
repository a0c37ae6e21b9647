//! The service account of a new pod: it must exist, and the pod gets its token and pull secrets.

use std::collections::HashSet;

use serde_json::Value;

use super::token_volume;
use crate::kinds::{
    Cluster,
    fields::{fill, filled, is_set, list, set, text},
    names,
};

/// Marks the mirror of a static pod, which a node runs on its own.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// On an account: its pods may only use the secrets that it lists.
const ENFORCED: &str = "kubernetes.io/enforce-mountable-secrets";

/// Gives a new pod its account, or says why it is refused.
pub fn use_account(pod: &mut Value, cluster: &dyn Cluster, seed: u64) -> Result<(), String> {
    if is_set(&pod["metadata"]["annotations"], MIRROR) {
        return check_mirror(&pod["spec"]);
    }
    let namespace = text(&pod["metadata"], "namespace").to_owned();
    let Some(spec) = filled(pod, "spec") else {
        return Ok(());
    };
    fill(spec, "serviceAccountName", "default");
    let name = text(spec, "serviceAccountName").to_owned();
    set(spec, "serviceAccount", name.as_str());
    let Some(account) = cluster.get("", "serviceaccounts", &namespace, &name) else {
        let why = match names::path_segment(&name).as_slice() {
            [] => format!("serviceaccount \"{name}\" not found"),
            odd => format!("invalid resource name \"{name}\": [{}]", odd.join(" ")),
        };
        return Err(format!(
            "error looking up service account {namespace}/{name}: {why}"
        ));
    };
    if account["metadata"]["annotations"][ENFORCED] == "true" {
        check_secrets(spec, &account, &name)?;
    }
    if wants_token(spec, &account) {
        token_volume::add(spec, seed);
    }
    let secrets = list(&account, "imagePullSecrets");
    if list(spec, "imagePullSecrets").is_empty() && !secrets.is_empty() {
        set(spec, "imagePullSecrets", secrets);
    }
    Ok(())
}

/// Whether a token is mounted; the pod's setting goes before the account's.
fn wants_token(spec: &Value, account: &Value) -> bool {
    let said = |holder: &Value| holder["automountServiceAccountToken"].as_bool();
    said(spec).or_else(|| said(account)).unwrap_or(true)
}

/// Refuses a mirror pod that uses service accounts or secrets: the API server does not control what
/// such a pod does.
fn check_mirror(spec: &Value) -> Result<(), String> {
    if !text(spec, "serviceAccountName").is_empty() {
        return Err("a mirror pod may not reference service accounts".into());
    }
    if has_secrets(spec) {
        return Err("a mirror pod may not reference secrets".into());
    }
    let mut volumes = list(spec, "volumes").iter();
    let projects_token = |volume: &Value| {
        let mut sources = list(&volume["projected"], "sources").iter();
        sources.any(|source| is_set(source, "serviceAccountToken"))
    };
    if volumes.any(projects_token) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections".into());
    }
    Ok(())
}

fn has_secrets(spec: &Value) -> bool {
    let pulls = !list(spec, "imagePullSecrets").is_empty();
    let mounts = list(spec, "volumes").iter().any(|volume| {
        let mut sources = list(&volume["projected"], "sources").iter();
        is_set(volume, "secret")
            || is_set(&volume["csi"], "nodePublishSecretRef")
            || sources.any(|source| is_set(source, "secret"))
    });
    pulls || mounts || containers(spec).any(|(_, container)| secrets(container).next().is_some())
}

/// Every container, with its word in messages.
fn containers(spec: &Value) -> impl Iterator<Item = (&'static str, &Value)> {
    let lists = [
        ("initContainers", "init container"),
        ("containers", "container"),
    ];
    let of = |(key, word)| {
        list(spec, key)
            .iter()
            .map(move |container| (word, container))
    };
    lists.into_iter().flat_map(of)
}

/// The secrets that a container's variables come from, with the word for the source in messages.
fn secrets(container: &Value) -> impl Iterator<Item = (String, &str)> {
    let one = list(container, "env").iter().filter_map(|variable| {
        let key = variable["valueFrom"].get("secretKeyRef")?;
        let place = format!("envVar {}", text(variable, "name"));
        Some((place, text(key, "name")))
    });
    let all = list(container, "envFrom").iter().filter_map(|source| {
        let secret = source.get("secretRef")?;
        Some(("envFrom".to_owned(), text(secret, "name")))
    });
    one.chain(all)
}

/// Refuses secrets that the account does not list.
fn check_secrets(spec: &Value, account: &Value, name: &str) -> Result<(), String> {
    let listed = |key: &str| -> HashSet<&str> {
        let listed = list(account, key).iter();
        listed.map(|listed| text(listed, "name")).collect()
    };
    let (secrets_of_account, pull_secrets) = (listed("secrets"), listed("imagePullSecrets"));
    let refused = |place: String, secret: &str| {
        Err(format!(
            "{place} secret.secretName=\"{secret}\" is not allowed because service account {name} does not reference that secret"
        ))
    };
    for volume in list(spec, "volumes") {
        let secret = text(&volume["secret"], "secretName");
        if is_set(volume, "secret") && !secrets_of_account.contains(secret) {
            return refused("volume with".into(), secret);
        }
    }
    for (word, container) in containers(spec) {
        for (place, secret) in secrets(container) {
            if !secrets_of_account.contains(secret) {
                let container = text(container, "name");
                return refused(
                    format!("{word} {container} with {place} referencing"),
                    secret,
                );
            }
        }
    }
    for (index, pull) in list(spec, "imagePullSecrets").iter().enumerate() {
        let secret = text(pull, "name");
        if !pull_secrets.contains(secret) {
            return Err(format!(
                "imagePullSecrets[{index}].name=\"{secret}\" is not allowed because service account {name} does not reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}
