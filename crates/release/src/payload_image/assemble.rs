//! Makes the contents of a payload from its components: a pure function.
//!
//! Components are taken in the order of their names, whatever order they are given in, and nothing depends on
//! the time or the machine: the same inputs give the same contents.

mod component;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use semver::Version;
use serde_json::{Map, Value};

pub use self::component::Component;
use self::component::{Parsed, VersionTable};
use super::{
    contents::Contents,
    image_references::{ImageReferences, Metadata},
    labels::{self, InvalidLabel},
    manifest_file::{self, ManifestFile, Names, is_manifest, name_in_payload},
    release_metadata::{self, ReleaseMetadata},
    substitution,
};
use crate::oci::reference::is_tag;

/// What a payload is to be.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Release {
    /// Its name, which is its version.
    pub name: String,
    /// When it was created.
    pub created: Timestamp,
    /// The versions that may be upgraded to it.
    pub previous: Vec<String>,
    /// The versions that it may be upgraded to.
    pub next: Vec<String>,
    /// Anything else about it.
    pub metadata: Map<String, Value>,
    /// Where its images came from.
    pub annotations: BTreeMap<String, String>,
    /// Components that are kept although no manifest names them.
    pub include: BTreeSet<String>,
    /// Components that are left out.
    pub exclude: BTreeSet<String>,
    /// The component whose image the payload is based on; it must exist.
    pub base: Option<String>,
    /// Images that manifests name and the inputs do not have are left as they are.
    pub allow_missing_images: bool,
    /// Manifests are not checked.
    pub skip_manifest_check: bool,
}

/// The contents, and what the user should know.
#[derive(Debug, Clone, PartialEq)]
pub struct Assembled {
    /// The files of the payload.
    pub contents: Contents,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// Why there is no payload.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No inputs.
    #[error("there are no images to make a payload of")]
    Empty,
    /// A name that no tag may have. Names of components become tags and names of files.
    #[error("component {0:?}: the name may have up to 128 letters, digits, _, . and -")]
    Name(String),
    /// A component twice.
    #[error("component {name} is given twice: as {first} and as {second}")]
    Duplicate {
        /// The component.
        name: String,
        /// One image.
        first: String,
        /// Another image.
        second: String,
    },
    /// The component that the payload is based on is absent.
    #[error(
        "the payload is based on the image of {0:?}, which is not among the inputs; name another with --to-image-base-tag or --to-image-base"
    )]
    NoBase(String),
    /// A label is not understood.
    #[error("component {component} ({image})")]
    Label {
        /// The component.
        component: String,
        /// Its image.
        image: String,
        /// The label.
        source: InvalidLabel,
    },
    /// A component's list of images is not usable.
    #[error("component {component}: image-references {reason}")]
    References {
        /// The component.
        component: String,
        /// Why.
        reason: String,
    },
    /// A file is no manifest.
    #[error("{component}/{file} is not a manifest")]
    Manifest {
        /// The component.
        component: String,
        /// The file.
        file: String,
        /// Why.
        source: manifest_file::Error,
    },
    /// A placeholder has no value.
    #[error("{component}/{file}")]
    Placeholder {
        /// The component.
        component: String,
        /// The file.
        file: String,
        /// Why.
        source: substitution::Error,
    },
    /// Components bring different versions.
    #[error(
        "component {component} asks for the version of {key}, and its images disagree: {values}"
    )]
    VersionConflict {
        /// The component.
        component: String,
        /// The key.
        key: String,
        /// The values and where they come from.
        values: String,
    },
    /// The release's own metadata.
    #[error(transparent)]
    Metadata(#[from] release_metadata::Error),
}

/// Makes the contents of a payload.
pub fn assemble(components: Vec<Component>, release: &Release) -> Result<Assembled, Error> {
    let components = sorted(components, release)?;
    let metadata = ReleaseMetadata::new(
        &release.name,
        &release.previous,
        &release.next,
        release.metadata.clone(),
    )?;
    let parsed = components.iter().map(Parsed::new);
    let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
    let mut assembly = Assembly {
        release,
        parsed: &parsed,
        names: Names::default(),
        files: Vec::new(),
        warnings: Vec::new(),
    };
    for component in parsed.iter().filter(|it| it.is_operator()) {
        assembly.add(component)?;
    }
    if !parsed.iter().any(Parsed::is_operator) {
        let label = labels::OPERATOR;
        assembly.warnings.push(format!(
            "no image has the label {label}: the payload has no manifests"
        ));
    }
    let (files, warnings) = (assembly.files, assembly.warnings);
    let named = named(&parsed, release);
    let tags = parsed.iter().filter(|it| named.contains(it.name()));
    let metadata_of = Metadata {
        name: release.name.clone(),
        creation_timestamp: Some(release.created),
        annotations: release.annotations.clone(),
        ..Metadata::default()
    };
    let references = ImageReferences::new(metadata_of, tags.map(Parsed::tag).collect());
    Ok(Assembled {
        contents: Contents::new(references, metadata, files),
        warnings,
    })
}

/// The components by name, each once, without those that are excluded.
fn sorted(mut components: Vec<Component>, release: &Release) -> Result<Vec<Component>, Error> {
    components.retain(|it| !release.exclude.contains(&it.name));
    if let Some(wrong) = components.iter().find(|it| !is_tag(&it.name)) {
        return Err(Error::Name(wrong.name.clone()));
    }
    components
        .sort_by(|one, other| (&one.name, &one.pull_spec).cmp(&(&other.name, &other.pull_spec)));
    let twice = components
        .windows(2)
        .find(|pair| pair[0].name == pair[1].name);
    if let Some([one, other]) = twice {
        return Err(Error::Duplicate {
            name: one.name.clone(),
            first: one.pull_spec.clone(),
            second: other.pull_spec.clone(),
        });
    }
    if components.is_empty() {
        return Err(Error::Empty);
    }
    match &release.base {
        Some(base) if !components.iter().any(|it| it.name == *base) => {
            Err(Error::NoBase(base.clone()))
        }
        _ => Ok(components),
    }
}

/// The components that belong to the payload: those with manifests, those that manifests name, and those that
/// the user names.
fn named<'a>(parsed: &'a [Parsed<'a>], release: &'a Release) -> BTreeSet<&'a str> {
    let operators = parsed.iter().filter(|it| it.is_operator());
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for operator in operators {
        named.insert(operator.name());
        let listed = operator.references.iter().flat_map(|it| &it.spec.tags);
        named.extend(listed.map(|tag| tag.name.as_str()));
    }
    named.extend(release.include.iter().map(String::as_str));
    named.extend(release.base.as_deref());
    named
}

struct Assembly<'a> {
    release: &'a Release,
    parsed: &'a [Parsed<'a>],
    names: Names,
    files: Vec<ManifestFile>,
    warnings: Vec<String>,
}

impl Assembly<'_> {
    /// Adds the manifests of an operator.
    fn add(&mut self, operator: &Parsed<'_>) -> Result<(), Error> {
        let component = operator.name();
        let substitution = self.substitution(operator)?;
        let manifests = operator.manifests();
        if manifests.is_empty() {
            let image = &operator.component.pull_spec;
            self.warnings.push(format!("component {component} ({image}) is marked as an operator and has no manifests in its last layer"));
        }
        for file in manifests {
            if !self.release.skip_manifest_check && is_manifest(&file.name) {
                manifest_file::check(&file.content).map_err(|source| Error::Manifest {
                    component: component.to_owned(),
                    file: file.name.clone(),
                    source,
                })?;
            }
            let replaced = substitution.apply(&file.content);
            let replaced = replaced.map_err(|source| Error::Placeholder {
                component: component.to_owned(),
                file: file.name.clone(),
                source,
            })?;
            for image in replaced.remaining {
                let file = &file.name;
                self.warnings.push(format!("{component}/{file} names {image} in a way that is not understood; it was not replaced"));
            }
            let name = name_in_payload(component, &file.name);
            self.files.push(ManifestFile {
                name: self.names.take(name),
                mtime: file.mtime,
                content: replaced.content,
            });
        }
        Ok(())
    }

    /// What is replaced in the manifests of an operator.
    fn substitution(&self, operator: &Parsed<'_>) -> Result<substitution::Substitution, Error> {
        let release = Version::parse(&self.release.name).ok();
        let release = release.map(|version| labels::without_build(&version));
        let Some(references) = &operator.references else {
            return Ok(substitution::Substitution {
                release,
                ..substitution::Substitution::default()
            });
        };
        let refuse = |reason: String| Error::References {
            component: operator.name().to_owned(),
            reason,
        };
        let mut images = BTreeMap::new();
        let mut listed = Vec::new();
        for tag in &references.spec.tags {
            let found = self.parsed.iter().find(|it| it.name() == tag.name);
            listed.extend(found);
            let Some(source) = tag.pull_spec() else {
                continue;
            };
            if source.is_empty() {
                return Err(refuse(format!("has no name in from of {:?}", tag.name)));
            }
            let Some(found) = found else {
                if self.release.allow_missing_images {
                    continue;
                }
                return Err(refuse(format!(
                    "names {:?}, and there is no such image among the inputs",
                    tag.name
                )));
            };
            let target = found.component.pull_spec.clone();
            if images.insert(source.to_owned(), target).is_some() {
                return Err(refuse(format!("names {source} twice")));
            }
        }
        let versions = VersionTable::of(&listed).resolve(operator)?;
        Ok(substitution::Substitution {
            images,
            release,
            versions: Some(versions),
        })
    }
}
