//! The images of an ImageStream.

use std::collections::BTreeSet;

use super::{Error, named};
use crate::{
    image_stream::api::{
        DOCKER_IMAGE, ImageStream, ImageStreamStatus, NamedTagEventList, TagReference,
    },
    oci::{digest, reference::ImageRef},
    payload_image::assemble::Component,
};

/// Which location of an image a payload names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReferenceMode {
    /// The stream's repository, as it is reached from outside.
    #[default]
    Public,
    /// Where the image came from.
    Source,
}

/// The images of a stream.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resolved {
    /// The components.
    pub components: Vec<Component>,
    /// Tags that were left out, and why.
    pub skipped: Vec<String>,
}

/// The images of a stream, those of `exclude` left out.
pub fn from_stream(
    stream: &ImageStream,
    mode: ReferenceMode,
    exclude: &BTreeSet<String>,
) -> Result<Resolved, Error> {
    let none = ImageStreamStatus::default();
    let status = stream.status.as_ref().unwrap_or(&none);
    let metadata = &stream.metadata;
    let name = metadata.name.clone().unwrap_or_default();
    let name = match &metadata.namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name,
    };
    let resolver = Resolver {
        name: &name,
        status,
        mode,
    };
    if mode == ReferenceMode::Public && status.public_docker_image_repository.is_empty() {
        return Err(Error::NoPublicRepository(name));
    }
    let mut resolved = Resolved::default();
    let mut covered = BTreeSet::new();
    for (at, tag) in stream
        .spec
        .tags
        .iter()
        .enumerate()
        .filter(|(_, tag)| !exclude.contains(&tag.name))
    {
        named(&tag.name, || format!("{name}: spec.tags[{at}].name"))?;
        match resolver.in_spec(tag)? {
            Pass::Use(component) => {
                covered.insert(tag.name.clone());
                resolved.components.push(*component);
            }
            Pass::Skip(reason) => {
                covered.insert(tag.name.clone());
                resolved.skipped.push(format!("tag {}: {reason}", tag.name));
            }
            Pass::LeaveToStatus => {}
        }
    }
    let rest = status.tags.iter().enumerate();
    for (at, tag) in
        rest.filter(|(_, tag)| !exclude.contains(&tag.tag) && !covered.contains(&tag.tag))
    {
        named(&tag.tag, || format!("{name}: status.tags[{at}].tag"))?;
        match resolver.in_status(tag)? {
            Pass::Use(component) => resolved.components.push(*component),
            Pass::Skip(reason) => resolved.skipped.push(format!("tag {}: {reason}", tag.tag)),
            Pass::LeaveToStatus => {}
        }
    }
    Ok(resolved)
}

enum Pass {
    Use(Box<Component>),
    Skip(&'static str),
    LeaveToStatus,
}

struct Resolver<'a> {
    name: &'a str,
    status: &'a ImageStreamStatus,
    mode: ReferenceMode,
}

impl Resolver<'_> {
    fn in_spec(&self, tag: &TagReference) -> Result<Pass, Error> {
        let history = self.status.tag(&tag.name);
        let newest = history.and_then(|history| history.items.first());
        if let (Some(spec), Some(newest)) = (tag.generation, newest) {
            if spec > newest.generation {
                return Err(Error::NotImported {
                    stream: self.name.to_owned(),
                    tag: tag.name.clone(),
                    spec,
                    status: newest.generation,
                });
            }
            return Ok(Pass::LeaveToStatus);
        }
        let Some(from) = tag.from.as_ref().filter(|from| from.kind == DOCKER_IMAGE) else {
            return Ok(Pass::LeaveToStatus);
        };
        let source: ImageRef = from.name.parse().map_err(|source| Error::Reference {
            component: tag.name.clone(),
            source,
        })?;
        if let Some(digest) = source.digest() {
            return Ok(self.component(tag, &source, digest.as_ref()));
        }
        let Some(history) = history else {
            return Ok(Pass::Skip("it was not imported yet"));
        };
        let Some(newest) = newest else {
            return self.empty(history);
        };
        if newest.image.is_empty() {
            return Err(Error::ImportFailed {
                stream: self.name.to_owned(),
                tag: tag.name.clone(),
                message: "its newest image has no digest".to_owned(),
            });
        }
        let Ok(location) = newest.docker_image_reference.parse() else {
            return Ok(Pass::Skip("its newest image has no location"));
        };
        Ok(self.component(tag, &location, &newest.image))
    }

    fn in_status(&self, history: &NamedTagEventList) -> Result<Pass, Error> {
        let Some(newest) = history.items.first() else {
            return self.empty(history);
        };
        if newest.image.is_empty() {
            return Ok(Pass::Skip("its newest image has no digest"));
        }
        let Ok(location) = newest.docker_image_reference.parse() else {
            return Ok(Pass::Skip("its newest image has no location"));
        };
        let tag = TagReference {
            name: history.tag.clone(),
            ..TagReference::default()
        };
        Ok(self.component(&tag, &location, &newest.image))
    }

    fn empty(&self, history: &NamedTagEventList) -> Result<Pass, Error> {
        match history.import_condition() {
            Some(condition) if history.import_failed() => Err(Error::ImportFailed {
                stream: self.name.to_owned(),
                tag: history.tag.clone(),
                message: condition.message.clone(),
            }),
            _ => Ok(Pass::Skip("it was not imported yet")),
        }
    }

    fn component(&self, tag: &TagReference, location: &ImageRef, image: &str) -> Pass {
        let Some(pull_spec) = self.location(location, image) else {
            return Pass::Skip(
                "its image is only inside the cluster, and the stream has no public repository",
            );
        };
        Pass::Use(Box::new(Component {
            name: tag.name.clone(),
            pull_spec,
            annotations: tag.annotations.clone(),
            reference: tag.reference,
            generation: tag.generation,
            import_policy: tag.import_policy,
            reference_policy: tag.reference_policy.clone(),
            ..Component::default()
        }))
    }

    /// The location that the payload names. One inside the cluster is of no use to others.
    fn location(&self, location: &ImageRef, image: &str) -> Option<String> {
        let digest = digest::parse(image).ok()?;
        let public = self
            .status
            .public_docker_image_repository
            .parse::<ImageRef>();
        let public = public
            .ok()
            .map(|public| public.at_digest(&digest).to_string());
        let inside = &self.status.docker_image_repository;
        let is_inside = !inside.is_empty() && location.name().starts_with(inside.as_str());
        if self.mode == ReferenceMode::Public || is_inside {
            return public;
        }
        Some(location.at_digest(&digest).to_string())
    }
}
