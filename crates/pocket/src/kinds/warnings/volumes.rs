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

/// Overlaps of one volume that are reported, at most: a response has room for a hundred warnings.
const MAX_OVERLAPS: usize = 200;

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
struct MountedFile {
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
        let mut overlaps = Overlaps {
            prefix: format!(
                "volume \"{name}\" ({}): overlapping paths",
                called(field, text(held, source))
            ),
            known: Vec::new(),
        };
        overlaps.known.extend(files(held, ""));
        overlaps.warn(warnings);
    }
    let mut overlaps = Overlaps {
        prefix: format!("volume \"{name}\" (Projected): overlapping paths"),
        known: Vec::new(),
    };
    let mut empty = Vec::new();
    for source in list(&volume["projected"], "sources") {
        let mut provides = false;
        for field in ["configMap", "secret", "downwardAPI"] {
            provides |= is_set(source, field);
            let held = &source[field];
            let from = format!(" ({})", called(field, text(held, "name")));
            overlaps.known.extend(files(held, &from));
        }
        if let Some(path) = source["serviceAccountToken"]["path"].as_str() {
            provides = true;
            overlaps.known.push(file(path, " (ServiceAccountToken)"));
        }
        if !provides {
            empty.push(format!(
                "volume \"{name}\" (Projected) has no sources provided"
            ));
        }
    }
    overlaps.warn(warnings);
    warnings.append(&mut empty);
}

fn called(field: &str, name: &str) -> String {
    match field {
        "configMap" => format!("ConfigMap \"{name}\""),
        "secret" => format!("Secret \"{name}\""),
        _ => "DownwardAPI".to_owned(),
    }
}

fn files<'a>(source: &'a Value, from: &'a str) -> impl Iterator<Item = MountedFile> {
    let items = list(source, "items").iter();
    items.map(|item| file(text(item, "path"), from))
}

fn file(path: &str, from: &str) -> MountedFile {
    MountedFile {
        path: path.trim_end_matches('/').to_owned(),
        from: from.to_owned(),
    }
}

/// The files of one volume.
struct Overlaps {
    prefix: String,
    known: Vec<MountedFile>,
}

impl Overlaps {
    /// Warns of each pair of files of which one is, or lies in, the other: later files in their
    /// order, each with the earlier ones in theirs.
    fn warn(&self, warnings: &mut Vec<String>) {
        // Sorted by their parts, all files within a file follow it directly.
        let parts = |at: usize| self.known[at].path.split('/');
        let mut sorted: Vec<usize> = (0..self.known.len()).collect();
        sorted.sort_by(|a, b| parts(*a).cmp(parts(*b)).then(a.cmp(b)));
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        let mut outer: Vec<usize> = Vec::new();
        for at in sorted {
            while outer.pop_if(|outer| !self.holds(*outer, at)).is_some() {}
            let room = MAX_OVERLAPS.saturating_sub(pairs.len());
            let new = outer.iter().take(room);
            pairs.extend(new.map(|&outer| (outer.max(at), outer.min(at))));
            outer.push(at);
        }
        pairs.sort_unstable();
        for (later, earlier) in pairs {
            let (new, old) = (&self.known[later], &self.known[earlier]);
            warnings.push(format!(
                "{}: \"{}\"{} with \"{}\"{}",
                self.prefix, new.path, new.from, old.path, old.from
            ));
        }
    }

    fn holds(&self, outer: usize, inner: usize) -> bool {
        let [outer, inner] = [outer, inner].map(|at| &*self.known[at].path);
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}
