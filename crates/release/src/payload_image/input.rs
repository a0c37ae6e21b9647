//! Where the images of a payload come from: an ImageStream, another payload, and what the user names.

mod folder;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use self::{
    folder::{Folder, FolderError, from_folder},
    stream::{ReferenceMode, Resolved, from_stream},
};
use super::{assemble::Component, image_references::ImageReferences};
use crate::oci::reference::{ImageRef, InvalidRef, is_tag};

/// Why inputs cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No repository that is reachable from outside.
    #[error(
        "image stream {0} has no public repository; use --reference-mode=source to keep the locations of its images"
    )]
    NoPublicRepository(String),
    /// A tag is newer than its image.
    #[error(
        "tag {tag} of image stream {stream} was changed and not imported yet (generation {spec}, imported {status})"
    )]
    NotImported {
        /// The stream.
        stream: String,
        /// The tag.
        tag: String,
        /// The generation of the tag.
        spec: i64,
        /// The generation of the newest image.
        status: i64,
    },
    /// The import of a tag failed.
    #[error("tag {tag} of image stream {stream} could not be imported: {message}")]
    ImportFailed {
        /// The stream.
        stream: String,
        /// The tag.
        tag: String,
        /// Why.
        message: String,
    },
    /// A pull spec.
    #[error("component {component}")]
    Reference {
        /// The component.
        component: String,
        /// Why.
        source: InvalidRef,
    },
    /// A mapping.
    #[error("{0:?} is not COMPONENT=PULLSPEC")]
    Mapping(String),
    /// A name that no tag may have.
    #[error(
        "{field}: {name:?} is no name of a component; it may have up to 128 letters, digits, _, . and -"
    )]
    Name {
        /// Where the name is.
        field: String,
        /// The name.
        name: String,
    },
    /// A component is mapped twice.
    #[error("component {0} is mapped twice")]
    MappedTwice(String),
    /// The list of a payload has an image without a location.
    #[error("component {0} of the source payload has no image")]
    NoImage(String),
}

/// The components of another payload, by the images in its list.
pub fn from_payload(references: &ImageReferences) -> Result<Vec<Component>, Error> {
    let tags = references.spec.tags.iter().enumerate().map(|(at, tag)| {
        named(&tag.name, || format!("spec.tags[{at}].name"))?;
        let pull_spec = tag
            .pull_spec()
            .ok_or_else(|| Error::NoImage(tag.name.clone()))?;
        Ok(Component {
            name: tag.name.clone(),
            pull_spec: pull_spec.to_owned(),
            annotations: tag.annotations.clone(),
            reference: tag.reference,
            generation: tag.generation,
            import_policy: tag.import_policy,
            reference_policy: tag.reference_policy.clone(),
            ..Component::default()
        })
    });
    tags.collect()
}

/// Refuses a name that would be no tag, or would lead out of a folder.
fn named(name: &str, field: impl FnOnce() -> String) -> Result<(), Error> {
    if is_tag(name) {
        return Ok(());
    }
    Err(Error::Name {
        field: field(),
        name: name.to_owned(),
    })
}

/// Parses `COMPONENT=PULLSPEC`.
pub fn mapping(text: &str) -> Result<(String, ImageRef), Error> {
    let (name, image) = text
        .split_once('=')
        .filter(|(name, image)| !name.is_empty() && !image.is_empty())
        .ok_or_else(|| Error::Mapping(text.to_owned()))?;
    named(name, || "COMPONENT".to_owned())?;
    let image = image.parse().map_err(|source| Error::Reference {
        component: name.to_owned(),
        source,
    })?;
    Ok((name.to_owned(), image))
}

/// The mappings of a file: pairs per line, `#` starts a comment.
pub fn mappings(text: &str) -> Result<Vec<(String, ImageRef)>, Error> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    lines.flat_map(str::split_whitespace).map(mapping).collect()
}

/// Puts the images that the user names in place of others, or adds them. Each replaces the whole tag: nothing
/// that was known of the image before is kept, and the component is not there twice.
pub fn override_with(
    components: &mut Vec<Component>,
    mappings: Vec<(String, ImageRef)>,
) -> Result<(), Error> {
    let mut given = BTreeMap::new();
    for (name, image) in mappings {
        if given.insert(name.clone(), image).is_some() {
            return Err(Error::MappedTwice(name));
        }
    }
    components.retain(|it| !given.contains_key(&it.name));
    components.extend(given.into_iter().map(|(name, image)| Component {
        name,
        pull_spec: image.to_string(),
        replaced: true,
        ..Component::default()
    }));
    Ok(())
}
