//! `neap release validate`: checks all configurations below a directory: files `*.json`, and the annotations of
//! ImageStreams in manifests.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    api::annotations,
    config::{Problem, QualifierError, ReleaseConfig, ReleaseQualifiers, check, check_all},
    payload_image::manifest_file::documents,
};

/// The deepest folder below the directory that is looked into.
const MAX_DEPTH: usize = 16;

/// What was found wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidField {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// The result of a validation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Validation {
    /// The configurations that could be read, by file.
    pub configs: BTreeMap<String, ReleaseConfig>,
    /// What is wrong.
    pub invalid: Vec<InvalidField>,
}

impl Validation {
    /// Whether there was nothing to check.
    pub fn is_empty(&self) -> bool {
        self.configs.is_empty() && self.invalid.is_empty()
    }

    /// The configurations that are files of their own, and not part of a manifest.
    pub fn own_files(&self) -> impl Iterator<Item = &String> {
        let is_own = |file: &&String| Path::new(file).extension().is_some_and(|it| it == "json");
        self.configs.keys().filter(is_own)
    }

    fn add(&mut self, file: &str, text: &str) {
        let checked = check(text);
        if let Some(config) = checked.config {
            self.configs.insert(file.to_owned(), config);
        }
        self.refuse(file, checked.problems);
    }

    fn refuse(&mut self, file: &str, problems: impl IntoIterator<Item = Problem>) {
        let found = problems.into_iter();
        self.invalid.extend(found.map(|problem| InvalidField {
            file: file.to_owned(),
            problem,
        }));
    }
}

/// Checks every configuration below `directory`, and the file with the global qualifiers if there is one. A file
/// that cannot be read as text keeps no other from being checked.
pub fn directory(directory: &Path, qualifiers: Option<&Path>) -> io::Result<Validation> {
    let mut validation = Validation::default();
    for path in files(directory, 0)? {
        let file = path
            .strip_prefix(directory)
            .unwrap_or(&path)
            .display()
            .to_string();
        let is_own = path.extension().is_some_and(|it| it == "json");
        match fs::read_to_string(&path) {
            Ok(text) if is_own => validation.add(&file, &text),
            Ok(text) => {
                for (stream, text) in in_manifest(&text) {
                    validation.add(&format!("{file}: ImageStream {stream}"), &text);
                }
            }
            Err(error) if is_own => {
                let message = match error.kind() {
                    io::ErrorKind::InvalidData => "the file is not UTF-8".to_owned(),
                    _ => format!("the file cannot be read: {error}"),
                };
                validation.refuse(&file, [Problem::new("", message)]);
            }
            Err(_) => {}
        }
    }
    for (file, problem) in check_all(&validation.configs) {
        validation.refuse(&file, [problem]);
    }
    if let Some(path) = qualifiers {
        let file = path.display().to_string();
        let problems = match ReleaseQualifiers::parse(&fs::read_to_string(path)?) {
            Ok(_) => Vec::new(),
            Err(QualifierError::Invalid(problems)) => problems,
            Err(QualifierError::Unreadable(cause)) => vec![Problem::new("", cause)],
        };
        validation.refuse(&file, problems);
    }
    Ok(validation)
}

/// The configurations of the ImageStreams of a manifest, by their names. A file that is no manifest has none.
fn in_manifest(text: &str) -> Vec<(String, String)> {
    let documents = documents(text.as_bytes()).unwrap_or_default();
    let streams = documents
        .into_iter()
        .filter(|object| object["kind"] == "ImageStream");
    streams
        .filter_map(|object| {
            let config = object["metadata"]["annotations"][annotations::CONFIG].as_str()?;
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            Some((name.to_owned(), config.to_owned()))
        })
        .collect()
}

fn files(directory: &Path, depth: usize) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(directory)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        // Links are not followed: they may lead in a circle.
        if kind.is_dir() && depth < MAX_DEPTH {
            found.extend(files(&path, depth + 1)?);
        } else if kind.is_file()
            && path
                .extension()
                .is_some_and(|it| it == "json" || it == "yaml" || it == "yml")
        {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_below_a_directory_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        fs::create_dir(folder.path().join("priv")).unwrap();
        write("good.json", r#"{"name": "a", "to": "release"}"#);
        write(
            "priv/bad.json",
            r#"{"name": "b", "to": "release", "publsh": {}}"#,
        );
        write("priv/broken.json", "{");
        write("notes.txt", "{");
        write("qualifiers.yaml", "qualifiers:\n  qe: {badge: x}\n");
        let qualifiers = folder.path().join("qualifiers.yaml");
        let found = directory(folder.path(), Some(&qualifiers)).unwrap();
        let places: Vec<_> = found
            .invalid
            .iter()
            .map(|it| (it.file.as_str(), it.problem.path.as_str()))
            .collect();
        let qualifiers = qualifiers.display().to_string();
        assert_eq!(
            places,
            [
                ("priv/bad.json", "publsh"),
                ("priv/broken.json", ""),
                (qualifiers.as_str(), "qualifiers.qe.badge")
            ]
        );
        assert_eq!(found.configs.len(), 2);
        assert!(directory(&folder.path().join("nowhere"), None).is_err());
    }

    #[test]
    fn configurations_in_manifests_are_checked_and_unreadable_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        assert!(directory(folder.path(), None).unwrap().is_empty());
        let write = |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).unwrap();
        write("broken.yaml", b"a: [");
        write("other.yaml", b"kind: ConfigMap\napiVersion: v1\n");
        assert!(directory(folder.path(), None).unwrap().is_empty());
        write("bytes.json", &[0xff, 0xfe]);
        write("good.json", br#"{"name": "a", "to": "release"}"#);
        let manifest = br#"
kind: ImageStream
metadata:
  name: "4.21"
  annotations:
    release.openshift.io/config: '{"name": "../x", "to": "release"}'
"#;
        write("stream.yaml", manifest);
        let found = directory(folder.path(), None).unwrap();
        let said: Vec<_> = found
            .invalid
            .iter()
            .map(|it| (it.file.as_str(), it.problem.to_string()))
            .collect();
        assert_eq!(said[0], ("bytes.json", "the file is not UTF-8".to_owned()));
        assert_eq!(said[1].0, "stream.yaml: ImageStream 4.21");
        assert!(said[1].1.starts_with("name: "), "{said:?}");
        assert_eq!(said.len(), 2);
        assert_eq!(found.own_files().collect::<Vec<_>>(), ["good.json"]);
    }
}
