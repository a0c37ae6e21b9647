//! Components in a folder: each sub-folder has the manifests of the component of its name, and the file
//! `image-references` beside them says which images they are. No registry is asked.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::{
    super::{
        assemble::Component,
        image_references::{self, FILE, ImageReferences},
        labels::{OPERATOR, SOURCE_LOCATION},
        manifest_file::ManifestFile,
    },
    Error, from_payload,
};

/// The largest file.
const MAX_FILE: u64 = 16 << 20;
/// Files in all.
const MAX_FILES: usize = 100_000;
/// Annotations of a tag that come from labels of its image.
const BUILD: &str = "io.openshift.build.";

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file or folder that cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that is too large.
    #[error("{} has {size} bytes; at most {MAX_FILE} are read", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        size: u64,
    },
    /// Too many files.
    #[error("{} has more than {MAX_FILES} files", _0.display())]
    TooMany(PathBuf),
    /// A name that is not UTF-8.
    #[error("the name of {} is not UTF-8", _0.display())]
    Name(PathBuf),
    /// The list of images.
    #[error("{} is not usable", path.display())]
    References {
        /// The file.
        path: PathBuf,
        /// Why.
        source: image_references::Error,
    },
    /// The images of the list.
    #[error("{}", path.display())]
    Images {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Error,
    },
    /// A component without an image.
    #[error(
        "{} is a component, and neither image-references nor a mapping says which image it is", _0.display()
    )]
    NoImage(PathBuf),
}

/// The components of a folder.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Folder {
    /// The components, with their manifests.
    pub components: Vec<Component>,
    /// The manifests of components that the list of images does not name, by component.
    pub unnamed: BTreeMap<String, Vec<ManifestFile>>,
    /// The name in the list of images.
    pub name: Option<String>,
    /// The time in the list of images.
    pub created: Option<Timestamp>,
    /// What was left out, because it is no regular file.
    pub skipped: Vec<String>,
}

/// Reads a folder. The times of files are not used: a copy of the folder gives the same payload.
pub fn from_folder(path: &Path) -> Result<Folder, FolderError> {
    let mut folder = Folder::default();
    let list = path.join(FILE);
    if list.is_file() {
        let references = ImageReferences::read(&content(&list)?);
        let references = references.map_err(|source| FolderError::References {
            path: list.clone(),
            source,
        })?;
        folder.components = from_payload(&references).map_err(|source| FolderError::Images {
            path: list.clone(),
            source,
        })?;
        folder.name = Some(references.metadata.name).filter(|name| !name.is_empty());
        folder.created = references.metadata.creation_timestamp;
    }
    let mtime = folder.created.map_or(0, Timestamp::as_second);
    let mut files = 0;
    for (name, entry) in sorted(path)? {
        if entry == list {
            continue;
        }
        if !entry.is_dir() || entry.is_symlink() {
            folder.skipped.push(name);
            continue;
        }
        let (manifests, skipped) = manifests(&entry, mtime)?;
        folder
            .skipped
            .extend(skipped.iter().map(|file| format!("{name}/{file}")));
        files += manifests.len();
        if files > MAX_FILES {
            return Err(FolderError::TooMany(path.to_owned()));
        }
        match folder.components.iter_mut().find(|it| it.name == name) {
            Some(component) => component.manifests = manifests,
            None => {
                folder.unnamed.insert(name, manifests);
            }
        }
    }
    for component in &mut folder.components {
        // The labels of the images, of which the annotations were made.
        component.labels = component
            .annotations
            .iter()
            .filter(|(name, _)| name.starts_with(BUILD))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        component
            .labels
            .entry(SOURCE_LOCATION.to_owned())
            .or_default();
        if !component.manifests.is_empty() {
            component
                .labels
                .insert(OPERATOR.to_owned(), "true".to_owned());
        }
    }
    Ok(folder)
}

impl Folder {
    /// The error about the first component without an image that `mapped` does not name.
    pub fn check(&self, path: &Path, mapped: impl Fn(&str) -> bool) -> Result<(), FolderError> {
        let missing = self.unnamed.keys().find(|name| !mapped(name));
        missing.map_or(Ok(()), |name| Err(FolderError::NoImage(path.join(name))))
    }
}

/// The manifests of a component, and the names of what is no regular file.
fn manifests(path: &Path, mtime: i64) -> Result<(Vec<ManifestFile>, Vec<String>), FolderError> {
    let (mut manifests, mut skipped) = (Vec::new(), Vec::new());
    for (name, entry) in sorted(path)? {
        if entry.is_symlink() || !entry.is_file() {
            skipped.push(name);
            continue;
        }
        manifests.push(ManifestFile {
            content: content(&entry)?,
            name,
            mtime,
        });
        if manifests.len() > MAX_FILES {
            return Err(FolderError::TooMany(path.to_owned()));
        }
    }
    Ok((manifests, skipped))
}

/// The entries of a folder, by name.
fn sorted(path: &Path) -> Result<BTreeMap<String, PathBuf>, FolderError> {
    let failed = |source| FolderError::Read {
        path: path.to_owned(),
        source,
    };
    let mut entries = BTreeMap::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().into_string();
        let name = name.map_err(|_| FolderError::Name(entry.path()))?;
        entries.insert(name, entry.path());
        if entries.len() > MAX_FILES {
            return Err(FolderError::TooMany(path.to_owned()));
        }
    }
    Ok(entries)
}

fn content(path: &Path) -> Result<Vec<u8>, FolderError> {
    use io::Read;
    let failed = |source| FolderError::Read {
        path: path.to_owned(),
        source,
    };
    let file = fs::File::open(path).map_err(failed)?;
    let mut content = Vec::new();
    let read = file.take(MAX_FILE + 1).read_to_end(&mut content);
    let size = read.map_err(failed)? as u64;
    if size > MAX_FILE {
        return Err(FolderError::TooLarge {
            path: path.to_owned(),
            size,
        });
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn list() -> String {
        format!(
            "kind: ImageStream\napiVersion: image.openshift.io/v1\nmetadata: {{name: 4.99.0, creationTimestamp: '2026-01-02T03:04:05Z'}}\n\
             spec:\n  tags:\n  - name: cli\n    annotations: {{io.openshift.build.commit.id: aaa1}}\n    from: {{kind: DockerImage, name: 'reg.example/cli@{D}'}}\n  \
             - name: demo\n    from: {{kind: DockerImage, name: 'reg.example/demo@{D}'}}\n"
        )
    }

    #[test]
    fn folders_are_components_and_the_list_names_their_images() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(FILE), list()).unwrap();
        fs::write(root.path().join("README"), "no component").unwrap();
        let demo = root.path().join("demo");
        fs::create_dir(&demo).unwrap();
        fs::write(demo.join("b.yaml"), "kind: B\n").unwrap();
        fs::write(demo.join("a.yaml"), "kind: A\n").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", demo.join("link.yaml")).unwrap();
        let found = from_folder(root.path()).unwrap();
        assert_eq!(found.skipped, ["README", "demo/link.yaml"]);
        assert_eq!(found.name.as_deref(), Some("4.99.0"));
        let [cli, demo] = &found.components[..] else {
            panic!("{found:?}")
        };
        assert_eq!(cli.labels["io.openshift.build.commit.id"], "aaa1");
        assert!(!cli.labels.contains_key(OPERATOR));
        assert_eq!(demo.labels[OPERATOR], "true");
        let names: Vec<_> = demo.manifests.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a.yaml", "b.yaml"]);
        let time = found.created.unwrap().as_second();
        assert!(demo.manifests.iter().all(|it| it.mtime == time));
    }

    #[test]
    fn a_component_without_an_image_is_refused_by_its_path() {
        let root = tempfile::tempdir().unwrap();
        let demo = root.path().join("demo");
        fs::create_dir(&demo).unwrap();
        fs::write(demo.join("a.yaml"), "kind: A\n").unwrap();
        let found = from_folder(root.path()).unwrap();
        let error = found.check(root.path(), |_| false).unwrap_err().to_string();
        assert!(error.contains(demo.to_str().unwrap()), "{error}");
        assert!(found.check(root.path(), |name| name == "demo").is_ok());
        fs::write(root.path().join(FILE), "kind: List\n").unwrap();
        let error = from_folder(root.path()).unwrap_err();
        assert!(matches!(error, FolderError::References { .. }), "{error}");
        assert!(from_folder(&root.path().join("absent")).is_err());
    }
}
