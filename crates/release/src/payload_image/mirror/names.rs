//! What is copied where: pure.

use std::collections::BTreeSet;

use crate::{
    oci::reference::{ImageRef, InvalidRef},
    payload_image::{image_references::Tag, reader::Payload},
};

/// The component under which the payload itself is named in templates.
const PAYLOAD: &str = "release";

/// Why a payload cannot be mirrored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The target has a tag.
    #[error("{0} must be a repository without a tag, or a template with ${{component}} in its tag")]
    NotARepository(String),
    /// A template that would give several images one name.
    #[error("{0} must have ${{component}} exactly once, in its tag")]
    Template(String),
    /// A name that is not one.
    #[error("component {component}")]
    Name {
        /// The component.
        component: String,
        /// Why.
        source: InvalidRef,
    },
    /// An image by tag.
    #[error(
        "component {component} is {image}, which is not by digest: the copy could be another image"
    )]
    NoDigest {
        /// The component.
        component: String,
        /// The image.
        image: String,
    },
    /// Contradicting options.
    #[error("--to-release-image and --skip-release-image contradict each other")]
    Contradiction,
}

/// Where images go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A repository; components are in the tag.
    Repository(ImageRef),
    /// A text with `${component}` and `${version}`.
    Template(String),
}

impl Target {
    /// Parses a repository or a template.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if !text.contains("${") {
            let target: ImageRef = text
                .parse()
                .map_err(|_| Error::NotARepository(text.to_owned()))?;
            if !target.is_bare() {
                return Err(Error::NotARepository(text.to_owned()));
            }
            return Ok(Self::Repository(target));
        }
        let tag = text.rsplit_once(':').map_or("", |(_, tag)| tag);
        if text.matches("${component}").count() != 1
            || !tag.contains("${component}")
            || tag.contains('/')
        {
            return Err(Error::Template(text.to_owned()));
        }
        Ok(Self::Template(text.to_owned()))
    }

    fn image(
        &self,
        version: &str,
        suffix: &str,
        component: Option<&str>,
    ) -> Result<ImageRef, Error> {
        let failed = |source| Error::Name {
            component: component.unwrap_or(PAYLOAD).to_owned(),
            source,
        };
        match self {
            Self::Repository(repository) => {
                let tag = match component {
                    Some(component) => format!("{version}{suffix}-{component}"),
                    None => format!("{version}{suffix}"),
                };
                repository.with_tag(&tag).map_err(failed)
            }
            Self::Template(template) => {
                let text = template.replace("${version}", version);
                let text = text.replace("${component}", component.unwrap_or(PAYLOAD));
                format!("{text}{suffix}").parse().map_err(failed)
            }
        }
    }
}

/// What else the user wants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MirrorOptions {
    /// Where the payload itself goes, if not beside its images.
    pub release_image: Option<ImageRef>,
    /// The payload itself is not copied.
    pub skip_release_image: bool,
    /// Lists stay lists, and the names say so.
    pub keep_manifest_list: bool,
}

/// An image to be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageCopy {
    /// The component.
    pub component: String,
    /// From where.
    pub source: ImageRef,
    /// To where.
    pub target: ImageRef,
}

/// All that is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// The images.
    pub images: Vec<ImageCopy>,
    /// The payload itself, copied last.
    pub payload: Option<ImageCopy>,
}

impl Mirror {
    /// The repositories that the images come from, and where each is mirrored. A source without a registry is a
    /// folder: no cluster asks for images there.
    pub fn repositories(&self) -> BTreeSet<(String, String)> {
        let all = self.images.iter().chain(&self.payload);
        let all = all.filter(|it| !it.source.registry().is_empty());
        all.map(|it| (it.source.name(), it.target.name())).collect()
    }
}

/// What is copied where.
pub fn plan(payload: &Payload, target: &Target, options: &MirrorOptions) -> Result<Mirror, Error> {
    if options.release_image.is_some() && options.skip_release_image {
        return Err(Error::Contradiction);
    }
    let version = payload.contents.name();
    let suffix = match (&payload.list, payload.config.architecture.as_str()) {
        (Some(_), _) if options.keep_manifest_list => "-multi".to_owned(),
        (_, "amd64") => "-x86_64".to_owned(),
        (_, "arm64") => "-aarch64".to_owned(),
        (_, other) => format!("-{other}"),
    };
    // A plus is part of versions and not of tags.
    let version = version.replace('+', "_");
    let tags = &payload.contents.references.spec.tags;
    let images = tags.iter().map(|tag| {
        Ok(ImageCopy {
            component: tag.name.clone(),
            source: source(tag)?,
            target: target.image(&version, &suffix, Some(&tag.name))?,
        })
    });
    let images = images.collect::<Result<Vec<_>, _>>()?;
    let payload = match (&options.release_image, options.skip_release_image) {
        (_, true) => None,
        (Some(image), false) => Some(image.clone()),
        (None, false) => Some(target.image(&version, &suffix, None)?),
    }
    .map(|target| ImageCopy {
        component: PAYLOAD.to_owned(),
        source: payload.by_digest(),
        target,
    });
    Ok(Mirror { images, payload })
}

pub(super) fn source(tag: &Tag) -> Result<ImageRef, Error> {
    let text = tag.pull_spec().unwrap_or_default();
    let image: ImageRef = text.parse().map_err(|source| Error::Name {
        component: tag.name.clone(),
        source,
    })?;
    if image.digest_text().is_none() {
        return Err(Error::NoDigest {
            component: tag.name.clone(),
            image: text.to_owned(),
        });
    }
    Ok(image)
}
