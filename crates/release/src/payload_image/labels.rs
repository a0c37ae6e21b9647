//! The labels of component images: whether they have manifests, where they were built from, and the versions
//! that they bring.

use std::collections::BTreeMap;

use semver::Version;

/// Marks an image with manifests.
pub const OPERATOR: &str = "io.openshift.release.operator";
/// The commit.
pub const COMMIT_ID: &str = "io.openshift.build.commit.id";
/// The branch.
pub const COMMIT_REF: &str = "io.openshift.build.commit.ref";
/// The source repository.
pub const SOURCE_LOCATION: &str = "io.openshift.build.source-location";
/// `key=version[,key=version]`.
pub const VERSIONS: &str = "io.openshift.build.versions";
/// `key=text[,key=text]`.
pub const DISPLAY_NAMES: &str = "io.openshift.build.version-display-names";

/// The keys that a payload may have.
pub const VERSION_KEYS: [&str; 6] = [
    "kubernetes",
    "machine-os",
    "kernel",
    "crio",
    "kubectl",
    "kubernetes-tests",
];
/// The version of `kubectl` counts only from these tags.
const KUBECTL_TAGS: [&str; 2] = ["cli", "cli-artifacts"];

/// A label with a value that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("label {label} is {value:?}: {reason}")]
pub struct InvalidLabel {
    /// The label.
    pub label: &'static str,
    /// Its value.
    pub value: String,
    /// What is wrong.
    pub reason: String,
}

/// Whether an image has manifests. The original takes any text, `false` included.
pub fn is_operator(labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(OPERATOR).map_or("", |value| value.trim());
    !value.is_empty() && !value.eq_ignore_ascii_case("false")
}

/// The annotations of an image's tag in a payload.
pub fn annotations(
    labels: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, InvalidLabel> {
    let value = |label: &str| labels.get(label).cloned().unwrap_or_default();
    let mut annotations: BTreeMap<_, _> = [COMMIT_ID, COMMIT_REF, SOURCE_LOCATION]
        .map(|label| (label.to_owned(), value(label)))
        .into();
    let raw = value(VERSIONS);
    if !raw.is_empty() {
        let found = versions(&raw)?;
        if let Some(key) = found
            .keys()
            .find(|key| !VERSION_KEYS.contains(&key.as_str()))
        {
            let reason = format!(
                "{key} is not a version of a payload; it may have {}",
                VERSION_KEYS.join(", ")
            );
            return Err(invalid(VERSIONS, &raw, reason));
        }
        let names = value(DISPLAY_NAMES);
        display_names(&names)?;
        annotations.insert(VERSIONS.to_owned(), raw);
        annotations.insert(DISPLAY_NAMES.to_owned(), names);
    }
    Ok(annotations)
}

/// The versions of a label, without their build parts.
pub fn versions(value: &str) -> Result<BTreeMap<String, String>, InvalidLabel> {
    let mut found = BTreeMap::new();
    for (key, text) in pairs(VERSIONS, value)? {
        let version = Version::parse(&text).map_err(|_| {
            invalid(
                VERSIONS,
                value,
                format!("{text:?} is not a semantic version"),
            )
        })?;
        found.insert(key, without_build(&version));
    }
    Ok(found)
}

/// The names of a label.
pub fn display_names(value: &str) -> Result<BTreeMap<String, String>, InvalidLabel> {
    let mut found = BTreeMap::new();
    for (key, text) in pairs(DISPLAY_NAMES, value)? {
        let allowed =
            |it: char| it.is_ascii_alphanumeric() || it.is_whitespace() || "-:.()".contains(it);
        if text.is_empty() || !text.chars().all(allowed) {
            let reason = format!("{text:?} may have letters, digits, spaces and -:.()");
            return Err(invalid(DISPLAY_NAMES, value, reason));
        }
        found.insert(key, text);
    }
    Ok(found)
}

fn pairs(label: &'static str, value: &str) -> Result<Vec<(String, String)>, InvalidLabel> {
    if value.trim().is_empty() {
        return Ok(Vec::new());
    }
    let parts = value.split(',').map(|part| {
        let (key, text) = part
            .trim()
            .split_once('=')
            .ok_or_else(|| invalid(label, value, format!("{part:?} is not key=value")))?;
        if !is_key(key) {
            let reason =
                format!("{key:?} must be lowercase letters and digits, with hyphens inside");
            return Err(invalid(label, value, reason));
        }
        Ok((key.to_owned(), text.to_owned()))
    });
    parts.collect()
}

fn is_key(key: &str) -> bool {
    let allowed = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    key.len() >= 2 && key.chars().all(allowed) && !key.starts_with('-') && !key.ends_with('-')
}

fn invalid(label: &'static str, value: &str, reason: String) -> InvalidLabel {
    InvalidLabel {
        label,
        value: value.to_owned(),
        reason,
    }
}

/// The text of a version without its build part.
pub fn without_build(version: &Version) -> String {
    let mut version = version.clone();
    version.build = semver::BuildMetadata::EMPTY;
    version.to_string()
}

/// Whether the versions of `tag` give the value of `key`.
pub fn counts(tag: &str, key: &str) -> bool {
    key != "kubectl" || KUBECTL_TAGS.contains(&tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()));
        pairs.collect()
    }

    #[test]
    fn only_images_that_say_so_have_manifests() {
        assert!(is_operator(&labels(&[(OPERATOR, "true")])));
        assert!(is_operator(&labels(&[(OPERATOR, "yes")])));
        for value in ["", " ", "false", "False"] {
            assert!(!is_operator(&labels(&[(OPERATOR, value)])), "{value}");
        }
        assert!(!is_operator(&labels(&[])));
    }

    #[test]
    fn sources_are_always_noted_and_versions_only_where_there_are_some() {
        let bare = annotations(&labels(&[])).unwrap();
        assert_eq!(
            bare,
            labels(&[(COMMIT_ID, ""), (COMMIT_REF, ""), (SOURCE_LOCATION, "")])
        );
        let full = annotations(&labels(&[(VERSIONS, "kubernetes=1.35.2+b1")])).unwrap();
        assert_eq!(full[VERSIONS], "kubernetes=1.35.2+b1");
        assert_eq!(full[DISPLAY_NAMES], "");
    }

    #[test]
    fn versions_lose_their_build_part_and_a_later_one_wins() {
        let found = versions("kubernetes=1.35.2+b1, kernel=5.1.0-rc.1,kernel=6.0.0").unwrap();
        assert_eq!(
            found,
            labels(&[("kubernetes", "1.35.2"), ("kernel", "6.0.0")])
        );
        for wrong in [
            "kubernetes",
            "k=1.0.0",
            "-kk=1.0.0",
            "kk-=1.0.0",
            "KK=1.0.0",
            "kk=1.0",
            "kk=1.0.0,",
        ] {
            assert!(versions(wrong).is_err(), "{wrong}");
        }
        assert!(display_names("kubernetes=Kubernetes (x): 1.0").is_ok());
        assert!(display_names("kubernetes=<b>").is_err());
        assert!(annotations(&labels(&[(VERSIONS, "mine=1.0.0")])).is_err());
        assert!(
            annotations(&labels(&[
                (VERSIONS, "crio=1.0.0"),
                (DISPLAY_NAMES, "crio=")
            ]))
            .is_err()
        );
        assert!(annotations(&labels(&[(DISPLAY_NAMES, "crio=")])).is_ok());
    }
}
