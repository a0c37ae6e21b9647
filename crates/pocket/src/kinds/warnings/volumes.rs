//! Warnings about volumes: sources that no longer exist, and files with overlapping paths.

use serde_json::Value;

use super::containers::warn_amounts;
use crate::kinds::fields::{is_set, list, text};

/// Sources that no longer exist: field, name, since when.
const REMOVED_SOURCES: [(&str, &str, &str); 9] = [
    (
        "gitRepo",
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "scaleIO",
        "scaleIO",
        "deprecated in v1.16, non-functional in v1.22+",
    ),
    (
        "flocker",
        "flocker",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "storageos",
        "storageOS",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "quobyte",
        "quobyte",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "glusterfs",
        "glusterfs",
        "deprecated in v1.25, non-functional in v1.26+",
    ),
    (
        "rbd",
        "rbd",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
    (
        "cephfs",
        "cephfs",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
];

pub(super) fn warn(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    let volumes = || list(spec, "volumes").iter().enumerate();
    for (index, volume) in volumes() {
        let path = format!("{path}.volumes[{index}]");
        for (source, called, since) in REMOVED_SOURCES {
            if is_set(volume, source) {
                warnings.push(format!("{path}.{called}: {since}"));
            }
        }
        let claim = &volume["ephemeral"]["volumeClaimTemplate"]["spec"]["resources"]["requests"];
        if is_set(claim, "storage") {
            let path = format!("{path}.ephemeral.volumeClaimTemplate.spec.resources.requests");
            warn_amounts(claim, &path, warnings);
        }
    }
    for (_, volume) in volumes() {
        warn_overlaps(volume, warnings);
    }
}

/// A file of a volume and its source, which is shown where a volume has several.
struct File {
    path: String,
    from: String,
}

fn warn_overlaps(volume: &Value, warnings: &mut Vec<String>) {
    let name = text(volume, "name");
    for (field, source) in [
        ("configMap", "name"),
        ("secret", "secretName"),
        ("downwardAPI", ""),
    ] {
        let held = &volume[field];
        let mut errors = Overlaps {
            prefix: format!(
                "volume \"{name}\" ({}): overlapping paths",
                called(field, text(held, source))
            ),
            known: Vec::new(),
        };
        for file in files(held, "") {
            errors.add(file, warnings);
        }
    }
    let mut errors = Overlaps {
        prefix: format!("volume \"{name}\" (Projected): overlapping paths"),
        known: Vec::new(),
    };
    for source in list(&volume["projected"], "sources") {
        let mut provides = false;
        for field in ["configMap", "secret", "downwardAPI"] {
            provides |= is_set(source, field);
            let held = &source[field];
            let from = format!(" ({})", called(field, text(held, "name")));
            for file in files(held, &from) {
                errors.add(file, warnings);
            }
        }
        if let Some(path) = source["serviceAccountToken"]["path"].as_str() {
            provides = true;
            errors.add(file(path, " (ServiceAccountToken)"), warnings);
        }
        if !provides {
            warnings.push(format!(
                "volume \"{name}\" (Projected) has no sources provided"
            ));
        }
    }
}

fn called(field: &str, name: &str) -> String {
    match field {
        "configMap" => format!("ConfigMap \"{name}\""),
        "secret" => format!("Secret \"{name}\""),
        _ => "DownwardAPI".to_owned(),
    }
}

fn files<'a>(source: &'a Value, from: &'a str) -> impl Iterator<Item = File> {
    let items = list(source, "items").iter();
    items.map(|item| file(text(item, "path"), from))
}

fn file(path: &str, from: &str) -> File {
    File {
        path: path.trim_end_matches('/').to_owned(),
        from: from.to_owned(),
    }
}

/// The files of one volume so far.
struct Overlaps {
    prefix: String,
    known: Vec<File>,
}

impl Overlaps {
    fn add(&mut self, file: File, warnings: &mut Vec<String>) {
        let within = |inner: &str, outer: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        for known in &self.known {
            let (new, old) = (&file.path, &known.path);
            if new == old || within(new, old) || within(old, new) {
                let (prefix, to) = (&self.prefix, &known.from);
                warnings.push(format!(
                    "{prefix}: \"{new}\"{} with \"{old}\"{to}",
                    file.from
                ));
            }
        }
        self.known.push(file);
    }
}
