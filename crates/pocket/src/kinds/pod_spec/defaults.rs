//! The defaults of a pod spec.

use serde_json::{Value, json};

use super::images::may_change;
use crate::kinds::claim::default_claim_spec;
use crate::kinds::fields::{each_mut, fill, filled, is_empty, part, set, text};

/// Permissions of files in volumes made from objects: `0644`.
const DEFAULT_FILE_MODE: i32 = 0o644;

/// Fills a pod template: its metadata, and its spec as [`default_pod_spec`] does.
pub fn default_pod_template(template: &mut Value) {
    filled(template, "metadata");
    if let Some(spec) = filled(template, "spec") {
        default_pod_spec(spec);
    }
}

/// Fills a pod spec with the defaults of both pods and templates. Those of pods alone (tolerations,
/// priority, service links) are not here.
pub fn default_pod_spec(spec: &mut Value) {
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "restartPolicy", "Always");
    fill(spec, "schedulerName", "default-scheduler");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    default_service_account(spec);
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        for container in each_mut(spec, containers) {
            default_container(container);
        }
    }
    for volume in each_mut(spec, "volumes") {
        default_volume(volume);
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`; the server keeps the two equal.
fn default_service_account(spec: &mut Value) {
    let account = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    if account.is_empty() {
        return;
    }
    let account = Value::from(account);
    set(spec, "serviceAccount", account.clone());
    set(spec, "serviceAccountName", account);
}

fn default_container(container: &mut Value) {
    if is_empty(container.get("imagePullPolicy")) {
        let policy = pull_policy(text(container, "image"));
        set(container, "imagePullPolicy", policy);
    }
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    fill(container, "resources", json!({}));
    for port in each_mut(container, "ports") {
        fill(port, "protocol", "TCP");
    }
    for variable in each_mut(container, "env") {
        if let Some(from) = part(variable, "valueFrom") {
            default_field_ref(from);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = part(container, probe) {
            default_probe(probe);
        }
    }
    if let Some(lifecycle) = part(container, "lifecycle") {
        for moment in ["postStart", "preStop"] {
            if let Some(handler) = part(lifecycle, moment) {
                default_handler(handler);
            }
        }
    }
}

/// Images without a fixed tag or digest are always pulled.
pub(super) fn pull_policy(image: &str) -> &'static str {
    if may_change(image) {
        "Always"
    } else {
        "IfNotPresent"
    }
}

fn default_probe(probe: &mut Value) {
    // Zero counts as absent here.
    for (field, seconds) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        if probe[field] == 0 {
            set(probe, field, Value::Null);
        }
        fill(probe, field, seconds);
    }
    default_handler(probe);
}

fn default_handler(handler: &mut Value) {
    if let Some(get) = part(handler, "httpGet") {
        fill(get, "path", "/");
        fill(get, "scheme", "HTTP");
    }
    if let Some(grpc) = part(handler, "grpc") {
        fill(grpc, "service", "");
    }
}

fn default_field_ref(holder: &mut Value) {
    if let Some(reference) = part(holder, "fieldRef") {
        fill(reference, "apiVersion", "v1");
    }
    if let Some(reference) = part(holder, "resourceFieldRef") {
        fill(reference, "divisor", "0");
    }
}

/// A volume with no source is an empty directory.
fn default_volume(volume: &mut Value) {
    let Some(map) = volume.as_object() else {
        return;
    };
    let sourced = map
        .iter()
        .any(|(key, source)| key != "name" && !source.is_null());
    if !sourced {
        set(volume, "emptyDir", json!({}));
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = part(volume, source) {
            fill(source, "defaultMode", DEFAULT_FILE_MODE);
        }
    }
    if let Some(downward) = part(volume, "downwardAPI") {
        each_mut(downward, "items").for_each(default_field_ref);
    }
    if let Some(projected) = part(volume, "projected") {
        each_mut(projected, "sources").for_each(default_projection);
    }
    if let Some(claim) = part(volume, "ephemeral")
        .and_then(|source| part(source, "volumeClaimTemplate"))
        .and_then(|template| part(template, "spec"))
    {
        default_claim_spec(claim);
    }
    if let Some(image) = part(volume, "image") {
        let policy = pull_policy(text(image, "reference"));
        fill(image, "pullPolicy", policy);
    }
    default_volume_source(volume);
}

/// Defaults of the sources that pods and persistent volumes have in common.
pub(in crate::kinds) fn default_volume_source(holder: &mut Value) {
    if let Some(path) = part(holder, "hostPath") {
        fill(path, "type", "");
    }
    if let Some(iscsi) = part(holder, "iscsi") {
        fill(iscsi, "iscsiInterface", "default");
    }
    if let Some(rbd) = part(holder, "rbd") {
        fill(rbd, "pool", "rbd");
        fill(rbd, "user", "admin");
        fill(rbd, "keyring", "/etc/ceph/keyring");
    }
    if let Some(disk) = part(holder, "azureDisk") {
        fill(disk, "cachingMode", "ReadWrite");
        fill(disk, "kind", "Shared");
        fill(disk, "fsType", "ext4");
        fill(disk, "readOnly", false);
    }
    if let Some(scale) = part(holder, "scaleIO") {
        fill(scale, "storageMode", "ThinProvisioned");
        fill(scale, "fsType", "xfs");
    }
}

fn default_projection(source: &mut Value) {
    if let Some(token) = part(source, "serviceAccountToken") {
        fill(token, "expirationSeconds", 3600);
    }
    if let Some(downward) = part(source, "downwardAPI") {
        each_mut(downward, "items").for_each(default_field_ref);
    }
}
