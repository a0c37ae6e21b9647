//! The components of a payload: an image under a name, and what was read from it.

use std::collections::BTreeMap;

use super::{
    super::{
        image_references::{self, ImageReferences, OVERRIDE, Tag},
        labels::{self, VERSIONS},
        manifest_file::ManifestFile,
    },
    Error,
};
use crate::image_stream::api::{ImageSource, ImportPolicy, ReferencePolicy};

/// An image under a name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Component {
    /// The name.
    pub name: String,
    /// The image, by digest.
    pub pull_spec: String,
    /// Annotations that the input had.
    pub annotations: BTreeMap<String, String>,
    /// Kept from the input.
    pub reference: bool,
    /// Kept from the input.
    pub generation: Option<i64>,
    /// Kept from the input.
    pub import_policy: ImportPolicy,
    /// Kept from the input.
    pub reference_policy: ReferencePolicy,
    /// Whether the user put it in place of another.
    pub replaced: bool,
    /// The labels of the image.
    pub labels: BTreeMap<String, String>,
    /// The files in the image's folder of manifests.
    pub manifests: Vec<ManifestFile>,
}

/// A component whose labels and list of images are understood.
#[derive(Debug)]
pub(super) struct Parsed<'a> {
    pub(super) component: &'a Component,
    pub(super) references: Option<ImageReferences>,
    annotations: BTreeMap<String, String>,
}

impl<'a> Parsed<'a> {
    pub(super) fn new(component: &'a Component) -> Result<Self, Error> {
        let own = labels::annotations(&component.labels).map_err(|source| Error::Label {
            component: component.name.clone(),
            image: component.pull_spec.clone(),
            source,
        })?;
        let mut annotations = component.annotations.clone();
        annotations.extend(own);
        if component.replaced {
            annotations.insert(OVERRIDE.to_owned(), "true".to_owned());
        }
        let mut files = component.manifests.iter();
        let references = files.find(|file| file.name == image_references::FILE);
        let references = references.map(|file| ImageReferences::read(&file.content));
        let references = references.transpose().map_err(|error| Error::References {
            component: component.name.clone(),
            reason: error
                .to_string()
                .trim_start_matches("image-references ")
                .to_owned(),
        })?;
        Ok(Self {
            component,
            references,
            annotations,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.component.name
    }

    pub(super) fn is_operator(&self) -> bool {
        labels::is_operator(&self.component.labels)
    }

    /// Its manifests, in the order of their names.
    pub(super) fn manifests(&self) -> Vec<&'a ManifestFile> {
        let files = self.component.manifests.iter();
        let mut files: Vec<_> = files
            .filter(|it| it.name != image_references::FILE)
            .collect();
        files.sort_by(|one, other| one.name.cmp(&other.name));
        files
    }

    pub(super) fn tag(&self) -> Tag {
        let component = self.component;
        Tag {
            name: component.name.clone(),
            annotations: self.annotations.clone(),
            from: Some(ImageSource::image(&component.pull_spec)),
            reference: component.reference,
            generation: component.generation,
            import_policy: component.import_policy,
            reference_policy: component.reference_policy.clone(),
        }
    }
}

/// The versions that the listed images bring: by key, the value of each tag.
pub(super) struct VersionTable<'a>(BTreeMap<String, Vec<(&'a str, String)>>);

impl<'a> VersionTable<'a> {
    pub(super) fn of(listed: &[&'a Parsed<'a>]) -> Self {
        let mut table: BTreeMap<String, Vec<(&str, String)>> = BTreeMap::new();
        for parsed in listed {
            let raw = parsed.annotations.get(VERSIONS).map_or("", String::as_str);
            // Checked when the component was parsed.
            for (key, value) in labels::versions(raw).unwrap_or_default() {
                if labels::counts(parsed.name(), &key) {
                    table.entry(key).or_default().push((parsed.name(), value));
                }
            }
        }
        Self(table)
    }

    /// One value for each key. Images must agree, except about the operating system of machines, of which a
    /// payload may have two: the first by name counts.
    pub(super) fn resolve(self, operator: &Parsed<'_>) -> Result<BTreeMap<String, String>, Error> {
        let mut resolved = BTreeMap::new();
        for (key, mut values) in self.0 {
            values.sort();
            let first = values.first().map(|(_, value)| value.clone());
            let first = first.unwrap_or_default();
            let agree = values.iter().all(|(_, value)| *value == first);
            if !agree && key != "machine-os" {
                let values: Vec<_> = values
                    .iter()
                    .map(|(tag, value)| format!("{tag} has {value}"))
                    .collect();
                return Err(Error::VersionConflict {
                    component: operator.name().to_owned(),
                    key,
                    values: values.join(", "),
                });
            }
            resolved.insert(key, first);
        }
        Ok(resolved)
    }
}
