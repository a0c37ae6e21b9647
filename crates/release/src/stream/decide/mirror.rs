//! The mirror of a release: an ImageStream with its images, pinned to digests.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;

use crate::{
    api::annotations,
    config::ReleaseConfig,
    image_stream::api::{
        DOCKER_IMAGE, ImageSource, ImageStream, ImageStreamSpec, ImportMode, NamedTagEventList,
        TagReference,
    },
    stream::facts::{Facts, annotation, public_repository},
};

/// Annotations that a mirror has from its source.
const CARRIED: [&str; 3] = [
    annotations::INCONSISTENCY,
    annotations::BUILD_URL,
    annotations::RUNTIME_BREW_EVENT,
];

/// The images of a source cannot be pinned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum MirrorProblem {
    /// An image is not imported yet.
    #[error("{0}")]
    NotImported(String),
    /// It cannot be told where an image is.
    #[error("the tag {tag} of {stream} names no image that can be reached from outside")]
    Unreachable {
        /// The source.
        stream: String,
        /// The tag.
        tag: String,
    },
}

/// The mirror of the release `tag`, whose inputs have this hash.
pub(super) fn mirror(
    facts: &Facts,
    config: &ReleaseConfig,
    tag: &str,
    hash: &str,
) -> Result<ImageStream, MirrorProblem> {
    let source = &facts.source;
    let tags = if config.is_stable() {
        Vec::new()
    } else if source.spec.tags.iter().any(|tag| tag.reference) {
        source
            .spec
            .tags
            .iter()
            .filter(|tag| tag.from.is_some())
            .map(unscheduled)
            .collect()
    } else {
        pinned_tags(facts, config)?
    };
    let mut annotations: BTreeMap<String, String> = [
        (annotations::SOURCE, facts.source_name()),
        (
            annotations::TARGET,
            format!("{}/{}", facts.namespace(), facts.target_name()),
        ),
        (annotations::RELEASE_TAG, tag.to_owned()),
        (annotations::HASH, hash.to_owned()),
        (
            annotations::GENERATION,
            facts.target_generation().to_string(),
        ),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    for name in CARRIED {
        if let Some(value) = annotation(source, name) {
            annotations.insert(name.to_owned(), value.to_owned());
        }
    }
    Ok(ImageStream {
        metadata: ObjectMeta {
            name: Some(facts.mirror_name(config, tag)),
            namespace: Some(facts.namespace().to_owned()),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: ImageStreamSpec {
            lookup_policy: source.spec.lookup_policy,
            tags,
        },
        status: None,
    })
}

fn unscheduled(tag: &TagReference) -> TagReference {
    let mut tag = tag.clone();
    tag.import_policy.scheduled = false;
    tag.generation = None;
    tag
}

fn pinned_tags(facts: &Facts, config: &ReleaseConfig) -> Result<Vec<TagReference>, MirrorProblem> {
    let status = facts.source.status.iter();
    let imported = status
        .flat_map(|status| &status.tags)
        .filter(|tag| tag.items.first().is_some_and(|item| !item.image.is_empty()));
    let wanted: BTreeMap<&str, &TagReference> = facts
        .source
        .spec
        .tags
        .iter()
        .map(|tag| (tag.name.as_str(), tag))
        .collect();
    imported
        .map(|tag| pinned(facts, config, tag, wanted.get(tag.tag.as_str()).copied()))
        .collect()
}

fn pinned(
    facts: &Facts,
    config: &ReleaseConfig,
    imported: &NamedTagEventList,
    spec: Option<&TagReference>,
) -> Result<TagReference, MirrorProblem> {
    let source = &facts.source;
    // Without a registry in the cluster, images stay where they come from.
    let public = has_registry(source).then(|| public_repository(source, &facts.options));
    let public = public.flatten();
    let inside = source
        .status
        .as_ref()
        .map(|it| it.docker_image_repository.as_str());
    let inside = inside.filter(|it| !it.is_empty());
    let internal_host = inside.and_then(|it| it.split('/').next());
    let item = imported.items.first();
    let (reference, digest, generation) = item.map_or(("", "", 0), |item| {
        (
            item.docker_image_reference.as_str(),
            item.image.as_str(),
            item.generation,
        )
    });
    if let Some(wanted) = spec.and_then(|spec| spec.generation)
        && wanted > generation
    {
        let tag = &imported.tag;
        let message = format!(
            "the tag {tag} of {} has not been imported yet",
            facts.source_name()
        );
        return Err(MirrorProblem::NotImported(message));
    }
    // Where the image is, unless it is inside the cluster.
    let mut repository = inside
        .is_none_or(|inside| repository_of(reference) != inside)
        .then(|| repository_of(reference))
        .filter(|it| !it.is_empty());
    let from = spec
        .and_then(|spec| spec.from.as_ref())
        .filter(|from| from.kind == DOCKER_IMAGE);
    if let Some(from) = from {
        let outside = repository_of(&from.name);
        let is_internal = internal_host.is_some_and(|host| outside.split('/').next() == Some(host));
        if !is_internal {
            repository = Some(outside);
        }
    }
    let keeps_location = config.reference_mode == "source" && repository.is_some();
    if !keeps_location && let Some(public) = &public {
        repository = Some(public);
    }
    let unreachable = || MirrorProblem::Unreachable {
        stream: facts.source_name(),
        tag: imported.tag.clone(),
    };
    let repository = repository.ok_or_else(unreachable)?;
    let is_public = public.as_deref() == Some(repository);
    let mut tag = spec.map(unscheduled).unwrap_or_default();
    tag.name.clone_from(&imported.tag);
    tag.from = Some(pinned_source(facts, repository, is_public, digest));
    tag.import_policy.import_mode = Some(ImportMode::PreserveOriginal);
    Ok(tag)
}

/// The image `digest` of a repository, which may be the public one of the source.
fn pinned_source(facts: &Facts, repository: &str, is_public: bool, digest: &str) -> ImageSource {
    if is_public {
        let name = facts.source.metadata.name.as_deref().unwrap_or_default();
        ImageSource {
            kind: "ImageStreamImage".to_owned(),
            name: format!("{name}@{digest}"),
            namespace: Some(facts.namespace().to_owned()),
        }
    } else {
        ImageSource::image(format!("{repository}@{digest}"))
    }
}

/// Whether the cluster has a registry for a source. Without one, its images are where they come from.
pub(super) fn has_registry(source: &ImageStream) -> bool {
    let status = source.status.as_ref();
    status.is_some_and(|status| !status.public_docker_image_repository.is_empty())
}

/// The repository of a pull spec: without digest and tag. A port is no tag.
pub(super) fn repository_of(pull_spec: &str) -> &str {
    let name = pull_spec
        .split_once('@')
        .map_or(pull_spec, |(name, _)| name);
    let last_part = name.rfind('/').map_or(0, |at| at + 1);
    match name[last_part..].find(':') {
        Some(at) => &name[..last_part + at],
        None => name,
    }
}
