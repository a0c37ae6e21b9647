//! Validation of volume sources.

use serde_json::{Value, json};

use super::{check_inside, check_no_backsteps, files};
use crate::{
    kinds::{
        field_rules::obeys,
        fields::{entries, flag, is_set, list, number, text},
        names,
        path::Path,
        resources::quantity,
    },
    status::Problems,
};

/// Required fields of each source, and the name of the source in messages.
const REQUIRED: [(&str, &str, &[&str]); 22] = [
    ("hostPath", "hostPath", &["path"]),
    ("gitRepo", "gitRepo", &["repository"]),
    ("gcePersistentDisk", "persistentDisk", &["pdName"]),
    (
        "awsElasticBlockStore",
        "awsElasticBlockStore",
        &["volumeID"],
    ),
    ("nfs", "nfs", &["server", "path"]),
    ("iscsi", "iscsi", &["targetPortal", "iqn"]),
    ("glusterfs", "glusterfs", &["endpoints", "path"]),
    (
        "persistentVolumeClaim",
        "persistentVolumeClaim",
        &["claimName"],
    ),
    ("rbd", "rbd", &["monitors", "image"]),
    ("cinder", "cinder", &["volumeID"]),
    ("cephfs", "cephfs", &["monitors"]),
    ("quobyte", "quobyte", &["volume"]),
    ("flexVolume", "flexVolume", &["driver"]),
    ("azureFile", "azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", "vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", "photonPersistentDisk", &["pdID"]),
    ("portworxVolume", "portworxVolume", &["volumeID"]),
    ("azureDisk", "azureDisk", &["diskName", "diskURI"]),
    ("storageos", "storageos", &["volumeName"]),
    ("scaleIO", "scaleIO", &["gateway", "system", "volumeName"]),
    ("csi", "csi", &["driver"]),
    ("ephemeral", "ephemeral", &["volumeClaimTemplate"]),
];

/// Validates the source under `field` of the volume at `path`.
pub(super) fn check(field: &str, source: &Value, path: &Path<'_>, problems: &mut Problems) {
    let known = REQUIRED.iter().find(|(name, ..)| *name == field);
    let (_, shown, required) = known.copied().unwrap_or((field, field, &[]));
    let path = path.field(shown);
    for name in required {
        if text(source, name).is_empty()
            && list(source, name).is_empty()
            && !source[*name].is_object()
        {
            problems.required(path.field(name), "");
        }
    }
    match field {
        "emptyDir" => check_empty(source, &path, problems),
        "hostPath" => check_host_path(source, &path, problems),
        "gitRepo" => check_inside(
            text(source, "directory"),
            &path.field("directory"),
            problems,
        ),
        "gcePersistentDisk" | "awsElasticBlockStore" => check_partition(source, &path, problems),
        "secret" => files::check_object(source, "secretName", &path, problems),
        "configMap" => files::check_object(source, "name", &path, problems),
        "downwardAPI" => files::check_downward(source, &path, problems),
        "projected" => files::check_projected(source, &path, problems),
        "nfs" if !text(source, "path").starts_with('/') => {
            let place = text(source, "path");
            problems.invalid(path.field("path"), place, "must be an absolute path");
        }
        "iscsi" => check_iscsi(source, &path, problems),
        "flocker" => check_flocker(source, &path, problems),
        "cinder" => check_secret(source, &path, problems),
        "quobyte" => check_quobyte(source, &path, problems),
        "fc" => check_fibre(source, &path, problems),
        "flexVolume" => check_flex(source, &path, problems),
        "azureDisk" => check_azure_disk(source, &path, problems),
        "storageos" => check_storageos(source, &path, problems),
        "csi" => check_csi(source, &path, problems),
        "image" => one_of_set(
            &["Always", "IfNotPresent", "Never"],
            source,
            &path,
            "pullPolicy",
            problems,
        ),
        _ => {}
    }
}

/// Refuses a text that is set, even if empty, and not listed.
fn one_of_set(
    values: &[&str],
    holder: &Value,
    path: &Path<'_>,
    key: &str,
    problems: &mut Problems,
) {
    if let Some(value) = holder[key].as_str().filter(|value| !values.contains(value)) {
        problems.not_supported(path.field(key), value, values);
    }
}

fn check_empty(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    if quantity(&source["sizeLimit"]).is_some_and(crate::quantity::Quantity::is_negative) {
        let detail = "SizeLimit field must be a valid resource quantity";
        problems.forbidden(path.field("sizeLimit"), detail);
    }
}

fn check_host_path(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    // Without a path the type is not checked; the missing path is reported already.
    if text(source, "path").is_empty() {
        return;
    }
    check_no_backsteps(text(source, "path"), &path.field("path"), problems);
    let types = [
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    one_of_set(&types, source, path, "type", problems);
}

fn check_partition(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    let partition = number(source, "partition");
    if !(0..=255).contains(&partition) {
        let detail = "must be between 1 and 255, inclusive";
        problems.invalid(path.field("partition"), partition, detail);
    }
}

fn check_unit(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    let unit = number(source, "lun");
    if !(0..=255).contains(&unit) {
        problems.invalid(
            path.field("lun"),
            unit,
            "must be between 0 and 255, inclusive",
        );
    }
}

fn check_iscsi(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    let name = text(source, "iqn");
    if !name.is_empty() {
        check_target(name, &path.field("iqn"), problems);
    }
    check_unit(source, path, problems);
    let asks = flag(source, "chapAuthDiscovery") || flag(source, "chapAuthSession");
    if asks && !is_set(source, "secretRef") {
        problems.required(path.field("secretRef"), "");
    }
    if let Some(name) = source["initiatorName"].as_str() {
        check_target(name, &path.field("initiatorname"), problems);
    }
}

/// Validates the name of an iSCSI target or initiator, which has one of three forms.
fn check_target(name: &str, path: &Path<'_>, problems: &mut Problems) {
    let forms = ["iqn", "eui", "naa"];
    if !forms.iter().any(|form| name.starts_with(form)) {
        let detail = "must be valid format starting with iqn, eui, or naa";
        problems.invalid(path, name, detail);
    } else if !is_target(name) {
        problems.invalid(path, name, "must be valid format");
    }
}

fn is_target(name: &str) -> bool {
    let number = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|c| c.is_ascii_alphanumeric())
    };
    let (form, rest) = name.split_once('.').unwrap_or((name, ""));
    match form {
        "eui" => number(rest, 16),
        "naa" => number(rest, 32),
        "iqn" => rest.split_once(':').is_some_and(|(authority, own)| {
            let dated = authority.len() > 8
                && authority.is_char_boundary(8)
                && authority[..8].bytes().enumerate().all(|(at, c)| match at {
                    4 => c == b'-',
                    7 => c == b'.',
                    _ => c.is_ascii_digit(),
                });
            let domain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.');
            dated
                && authority[8..].bytes().all(domain)
                && !own.is_empty()
                && !own.contains(|c: char| ",;*&$|".contains(c) || c.is_whitespace())
        }),
        _ => false,
    }
}

fn check_flocker(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    let (name, uuid) = (text(source, "datasetName"), text(source, "datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        problems.required(path, "one of datasetName and datasetUUID is required");
    } else if !name.is_empty() && !uuid.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        problems.invalid(path, "resource", detail);
    }
    if name.contains('/') {
        problems.invalid(path.field("datasetName"), name, "must not contain '/'");
    }
}

fn check_secret(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    if is_set(source, "secretRef") && text(&source["secretRef"], "name").is_empty() {
        problems.required(path.field("secretRef").field("name"), "");
    }
}

fn check_quobyte(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    let registry = text(source, "registry");
    let place = path.field("registry");
    let detail = "must be a host:port pair or multiple pairs separated by commas";
    let is_pair = |pair: &str| pair.split_once(':').is_some_and(|(_, p)| !p.contains(':'));
    if registry.is_empty() {
        problems.required(place, detail);
    } else if !registry.split(',').all(is_pair) {
        problems.invalid(place, registry, detail);
    }
    if text(source, "tenant").len() >= 65 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        problems.required(path.field("tenant"), detail);
    }
}

fn check_fibre(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    let (targets, ids) = (list(source, "targetWWNs"), list(source, "wwids"));
    let place = path.field("targetWWNs");
    match (targets.is_empty(), ids.is_empty()) {
        (true, true) => {
            let detail = "must specify either targetWWNs or wwids, but not both";
            problems.required(place, detail);
        }
        (false, false) => {
            let detail = "targetWWNs and wwids can not be specified simultaneously";
            problems.invalid(place, json!(targets), detail);
        }
        _ => {}
    }
    if targets.is_empty() {
        return;
    }
    if is_set(source, "lun") {
        check_unit(source, path, problems);
    } else {
        let detail = "lun is required if targetWWNs is specified";
        problems.required(path.field("lun"), detail);
    }
}

fn check_flex(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    let place = path.field("options");
    for (key, _) in entries(source, "options") {
        let domain = key.split('/').next().unwrap_or_default();
        let own = |owner: &str| domain == owner || domain.ends_with(&format!(".{owner}"));
        if key.contains('/') && (own("kubernetes.io") || own("k8s.io")) {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            problems.invalid(place.key(key), key.as_str(), detail);
        }
    }
}

fn check_azure_disk(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    let modes = ["None", "ReadOnly", "ReadWrite"];
    one_of_set(&modes, source, path, "cachingMode", problems);
    let kinds = ["Dedicated", "Managed", "Shared"];
    one_of_set(&kinds, source, path, "kind", problems);
    let (start, form) = match text(source, "kind") {
        "Managed" => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        _ => (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        ),
    };
    let place = text(source, "diskURI");
    if !place.starts_with(start) {
        problems.not_supported(path.field("diskURI"), place, &[form]);
    }
}

fn check_storageos(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    for field in ["volumeName", "volumeNamespace"] {
        let name = text(source, field);
        if !name.is_empty() {
            obeys(names::label, name, &path.field(field), problems);
        }
    }
    check_secret(source, path, problems);
}

fn check_csi(source: &Value, path: &Path<'_>, problems: &mut Problems) {
    let driver = text(source, "driver");
    if !driver.is_empty() {
        let path = path.field("driver");
        if driver.len() > names::MAX_LABEL_LENGTH {
            problems.too_long(path, names::MAX_LABEL_LENGTH);
        }
        for complaint in names::subdomain(&driver.to_lowercase()) {
            problems.invalid(path, driver, complaint);
        }
    }
    if is_set(source, "nodePublishSecretRef") {
        match text(&source["nodePublishSecretRef"], "name") {
            "" => {
                let place = path.field("nodePublishSecretRef");
                problems.required(place.field("name"), "");
            }
            name => obeys(names::subdomain, name, &path.field("name"), problems),
        }
    }
}
