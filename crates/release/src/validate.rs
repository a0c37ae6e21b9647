//! `neap release validate`: checks all configurations below a directory.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use crate::config::{Problem, QualifierError, ReleaseConfig, ReleaseQualifiers, check, check_all};

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

/// Checks every `*.json` below `directory`, and the file with the global qualifiers if there is one.
pub fn directory(directory: &Path, qualifiers: Option<&Path>) -> io::Result<Validation> {
    let mut validation = Validation::default();
    for path in files(directory, 0)? {
        let file = path
            .strip_prefix(directory)
            .unwrap_or(&path)
            .display()
            .to_string();
        let checked = check(&fs::read_to_string(&path)?);
        if let Some(config) = checked.config {
            validation.configs.insert(file.clone(), config);
        }
        let found = checked.problems.into_iter();
        validation.invalid.extend(found.map(|problem| InvalidField {
            file: file.clone(),
            problem,
        }));
    }
    let shared = check_all(&validation.configs).into_iter();
    validation
        .invalid
        .extend(shared.map(|(file, problem)| InvalidField { file, problem }));
    if let Some(path) = qualifiers {
        let file = path.display().to_string();
        let problems = match ReleaseQualifiers::parse(&fs::read_to_string(path)?) {
            Ok(_) => Vec::new(),
            Err(QualifierError::Invalid(problems)) => problems,
            Err(QualifierError::Unreadable(cause)) => vec![Problem::new("", cause)],
        };
        validation
            .invalid
            .extend(problems.into_iter().map(|problem| InvalidField {
                file: file.clone(),
                problem,
            }));
    }
    Ok(validation)
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
        } else if kind.is_file() && path.extension().is_some_and(|it| it == "json") {
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
}
