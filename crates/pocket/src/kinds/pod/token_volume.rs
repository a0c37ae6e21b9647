//! The volume with the token of the pod's account, the server's certificate and the namespace.

use serde_json::{Value, json};

use crate::{
    kinds::{
        fields::{append, each_mut, is_set, list, text},
        path::Path,
    },
    status::Problems,
};

const PREFIX: &str = "kube-api-access-";
const PLACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// A little more than an hour, so that a token refreshed each hour never expires.
const TOKEN_LIFETIME_SECONDS: i64 = 3607;
const SUFFIX_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Adds the volume and mounts it where no container mounts something else. An existing volume of
/// its name prefix is mounted instead.
pub(super) fn add(spec: &mut Value, seed: u64) {
    let known = list(spec, "volumes")
        .iter()
        .map(|volume| text(volume, "name"));
    let known = known.rev().find(|name| name.starts_with(PREFIX));
    let made = || format!("{PREFIX}{}", suffix(seed));
    let (name, missing) = known.map_or_else(|| (made(), true), |name| (name.to_owned(), false));
    let mut mounted = false;
    for containers in ["initContainers", "containers"] {
        for container in each_mut(spec, containers) {
            mounted |= mount(container, &name);
        }
    }
    if mounted && missing {
        append(spec, "volumes", [volume(&name)]);
    }
}

/// Refuses token volumes in a pod without an account.
pub(super) fn refuse(spec: &Value, problems: &mut Problems) {
    let all = Path::At("spec.volumes");
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = all.index(index);
        let path = path.field("projected");
        let path = path.field("sources");
        for (index, source) in list(&volume["projected"], "sources").iter().enumerate() {
            if is_set(source, "serviceAccountToken") {
                let detail = "must not be specified when serviceAccountName is not set";
                problems.forbidden(path.index(index).field("serviceAccountToken"), detail);
            }
        }
    }
}

fn mount(container: &mut Value, name: &str) -> bool {
    let mut mounts = list(container, "volumeMounts").iter();
    if mounts.any(|mount| text(mount, "mountPath") == PLACE) {
        return false;
    }
    let mount = json!({"name": name, "readOnly": true, "mountPath": PLACE});
    append(container, "volumeMounts", [mount]);
    true
}

fn volume(name: &str) -> Value {
    json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_LIFETIME_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [
            {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
        ]}},
    ]}})
}

/// Five characters that cannot spell a word.
fn suffix(mut seed: u64) -> String {
    let letters = SUFFIX_LETTERS.len() as u64;
    (0..5)
        .map(|_| {
            let letter = SUFFIX_LETTERS[(seed % letters) as usize];
            seed /= letters;
            char::from(letter)
        })
        .collect()
}
