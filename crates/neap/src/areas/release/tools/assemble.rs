//! `assemble`: from flags to a payload.

use std::{io::Write, path::Path};

use kube::Api;
use neap_release::{
    image_stream::api::ImageStream,
    oci::{
        client::RegistryClient, content_cache::ContentCache, platform::PlatformFilter,
        transfer::Progress,
    },
    payload_image::{
        assemble::{Component, Release},
        builder::{self, BaseChoice, Built, Request},
        extract,
        image::BASE_DIGEST,
        image_references::{FROM_IMAGE_STREAM, FROM_RELEASE},
        input::{self, Folder, ReferenceMode},
        reader::{self, Payload},
    },
};
use serde_json::{Map, Value};

use super::{
    AssembleOptions, Mode,
    failure::{failed, file, not_pushed, usage},
    output, progress,
    registry::{image, platforms},
};
use crate::{
    exit::{Exit, Failure, chain},
    inspect::{cluster::Cluster, print},
};

/// The largest file that is read as an ImageStream or as mappings.
const MAX_INPUT: u64 = 64 << 20;

pub(super) async fn run(options: &AssembleOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let mut client = options.registry.client()?;
    if let Some(folder) = &options.cache {
        client = client.with_cache(ContentCache::new(folder));
    }
    let source = match &options.from_release {
        Some(text) => Some(read_source(&client, text).await?),
        None => None,
    };
    let request = request(options, source.as_ref()).await?;
    let progress = Progress::default();
    let quiet = options.registry.quiet;
    let building = Box::pin(builder::build(&client, request));
    let built = progress::show("read", quiet, &progress, building).await;
    let built = built.map_err(|error| not_pushed("cannot assemble the payload", &error))?;
    for warning in &built.warnings {
        tracing::warn!("{warning}");
    }
    write_files(options, &built)?;
    if let Some(target) = options.to_image.as_ref().filter(|_| !options.dry_run) {
        let target = image(target)?;
        let pushing = builder::push(&client, &built, &target, &progress);
        let pushed = progress::show("push", quiet, &progress, pushing).await;
        pushed.map_err(|error| not_pushed("cannot push the payload", &error))?;
    }
    let digest = built
        .manifest()
        .map(|manifest| manifest.digest.to_string())
        .unwrap_or_default();
    print::text(out, &format!("{digest} {} {}", built.name, built.created))?;
    match source {
        Some(source) if is_reproduction(options) => compare(&source, &built),
        _ => Ok(()),
    }
}

/// Everything that is to be made, from the flags and the payload that they name.
async fn request(options: &AssembleOptions, source: Option<&Payload>) -> Result<Request, Failure> {
    let mut release = release(options, source)?;
    let folder = match &options.from_dir {
        Some(path) => Some(from_folder(path, &mut release)?),
        None => None,
    };
    let mut components = match (source, &folder) {
        (Some(source), _) => {
            input::from_payload(&source.contents.references).map_err(|error| bad_input(&error))?
        }
        (None, Some(folder)) => folder.components.clone(),
        (None, None) => from_stream(options, &mut release).await?,
    };
    let mut mappings = Vec::new();
    for path in &options.mapping_file {
        let text = read_file(path)?;
        mappings.extend(input::mappings(&text).map_err(|error| bad_input(&error))?);
    }
    for text in &options.mappings {
        mappings.push(input::mapping(text).map_err(|error| bad_input(&error))?);
    }
    let overridden = !mappings.is_empty();
    if let (Some(folder), Some(path)) = (&folder, &options.from_dir) {
        let mapped = |name: &str| {
            mappings.iter().any(|(mapped, _)| mapped == name) || release.exclude.contains(name)
        };
        folder
            .check(path, mapped)
            .map_err(|error| bad_input(&error))?;
    }
    input::override_with(&mut components, mappings).map_err(|error| bad_input(&error))?;
    if components.is_empty() {
        let remedy = "name an ImageStream with --from-image-stream, a payload with --from-release, a folder with --from-dir, or images as COMPONENT=PULLSPEC";
        return Err(usage(
            "cannot assemble the payload",
            "there are no images",
            remedy,
        ));
    }
    if let (Some(text), true) = (
        &options.from_release,
        overridden || !is_reproduction(options),
    ) {
        release
            .annotations
            .insert(FROM_RELEASE.to_owned(), text.clone());
    }
    let reproduced = source.filter(|_| is_reproduction(options));
    let created =
        reproduced.and_then(|source| source.contents.references.metadata.creation_timestamp);
    let created = created.or(folder.as_ref().and_then(|folder| folder.created));
    Ok(Request {
        base: base(options, source, &components)?,
        created: options.created.or(created),
        given: folder.is_some(),
        keep_manifest_list: options.keep_manifest_list,
        components,
        release,
    })
}

fn release(options: &AssembleOptions, source: Option<&Payload>) -> Result<Release, Failure> {
    let before = source.and_then(|source| source.contents.metadata.clone());
    let annotations = source.map(|source| source.contents.references.metadata.annotations.clone());
    let metadata = match &options.metadata {
        Some(text) => metadata(text)?,
        None => before
            .as_ref()
            .map(|it| it.metadata.clone())
            .unwrap_or_default(),
    };
    let inherited = |given: &Option<Vec<String>>, before: Option<Vec<String>>| {
        given.clone().or(before).unwrap_or_default()
    };
    let name = options
        .name
        .clone()
        .or(source.map(|source| source.contents.name().to_owned()));
    Ok(Release {
        name: name.unwrap_or_default(),
        previous: inherited(
            &options.previous,
            before.as_ref().map(|it| it.previous.clone()),
        ),
        next: inherited(&options.next, before.as_ref().map(|it| it.next.clone())),
        metadata,
        annotations: annotations.unwrap_or_default(),
        include: options.include.iter().cloned().collect(),
        exclude: options.exclude.iter().cloned().collect(),
        allow_missing_images: options.allow_missing_images,
        skip_manifest_check: options.skip_manifest_check,
        ..Release::default()
    })
}

fn metadata(text: &str) -> Result<Map<String, Value>, Failure> {
    serde_json::from_str(text).map_err(|error| {
        let remedy = r#"write a JSON object such as {"url": "https://example.com"}"#;
        usage("cannot read --metadata", &error.to_string(), remedy)
    })
}

/// The image that the payload is based on. With another payload, its base if that is still among the images.
fn base(
    options: &AssembleOptions,
    source: Option<&Payload>,
    components: &[Component],
) -> Result<BaseChoice, Failure> {
    if let Some(text) = &options.to_image_base {
        let base = image(text)?;
        if base.is_bare() {
            return Err(usage(
                "cannot use --to-image-base",
                "it has no tag and no digest",
                "add the tag or the digest of the image",
            ));
        }
        return Ok(BaseChoice::Image(base));
    }
    let label = source.and_then(|source| source.config.label(BASE_DIGEST));
    if let (Some(digest), Some(source)) = (label, source) {
        let mut tags = source.contents.references.spec.tags.iter();
        let same = tags.find(|tag| {
            tag.pull_spec()
                .is_some_and(|spec| spec.ends_with(&format!("@{digest}")))
        });
        if let Some(tag) = same {
            return Ok(BaseChoice::Component(tag.name.clone()));
        }
    }
    // Without an image, files from a folder need no base.
    let files_only = options.from_dir.is_some() && options.to_image.is_none();
    let is_there = components
        .iter()
        .any(|it| it.name == options.to_image_base_tag);
    if options.to_image_base_tag.is_empty() || (files_only && !is_there) {
        return Ok(BaseChoice::Scratch);
    }
    Ok(BaseChoice::Component(options.to_image_base_tag.clone()))
}

/// The components of a folder. Its list of images names the release, unless the user does.
fn from_folder(path: &Path, release: &mut Release) -> Result<Folder, Failure> {
    let folder = input::from_folder(path).map_err(|error| bad_input(&error))?;
    for skipped in &folder.skipped {
        tracing::warn!("left out: {skipped} is no regular file of a component");
    }
    if release.name.is_empty() {
        release.name = folder.name.clone().unwrap_or_default();
    }
    Ok(folder)
}

/// The images of an ImageStream, of the cluster or of a file.
async fn from_stream(
    options: &AssembleOptions,
    release: &mut Release,
) -> Result<Vec<Component>, Failure> {
    let stream = if let Some(name) = &options.from_image_stream {
        let cluster = Cluster::connect(&options.cluster, None).await?;
        let namespace = options.namespace.as_ref().unwrap_or(&cluster.namespace);
        let api: Api<ImageStream> = Api::namespaced(cluster.client.clone(), namespace);
        let found = api.get(name).await;
        let found = found
            .map_err(|error| cluster.failed(&format!("image stream {namespace}/{name}"), &error))?;
        release
            .annotations
            .insert(FROM_IMAGE_STREAM.to_owned(), format!("{namespace}/{name}"));
        found
    } else if let Some(path) = &options.from_image_stream_file {
        let text = read_file(path)?;
        let found: Result<ImageStream, _> = serde_saphyr::from_str(&text);
        found.map_err(|error| {
            let what = format!("cannot read {}", path.display());
            usage(
                &what,
                &error.to_string(),
                "give it an ImageStream of image.openshift.io/v1",
            )
        })?
    } else {
        return Ok(Vec::new());
    };
    let mode = match options.reference_mode {
        Mode::Public => ReferenceMode::Public,
        Mode::Source => ReferenceMode::Source,
    };
    let resolved =
        input::from_stream(&stream, mode, &release.exclude).map_err(|error| bad_input(&error))?;
    for skipped in &resolved.skipped {
        tracing::warn!("left out: {skipped}");
    }
    Ok(resolved.components)
}

pub(super) fn read_file(path: &Path) -> Result<String, Failure> {
    use std::io::Read;
    let what = format!("cannot read {}", path.display());
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(|error| file(&what, &error))?)
    };
    let mut text = String::new();
    let read = source.take(MAX_INPUT).read_to_string(&mut text);
    read.map_err(|error| file(&what, &error))?;
    Ok(text)
}

fn write_files(options: &AssembleOptions, built: &Built) -> Result<(), Failure> {
    if let Some(folder) = &options.to_dir {
        let found = extract::all(&built.contents)
            .map_err(|error| failed("cannot write the payload", &error))?;
        output::files(folder, &found.files)?;
    }
    match &options.to_file {
        Some(path) => output::whole(path, &built.layer.bytes),
        None => Ok(()),
    }
}

/// Nothing about the source payload is to be changed.
fn is_reproduction(options: &AssembleOptions) -> bool {
    let unchanged = options.name.is_none()
        && options.metadata.is_none()
        && options.previous.is_none()
        && options.next.is_none();
    let same_images = options.mappings.is_empty()
        && options.mapping_file.is_empty()
        && options.exclude.is_empty()
        && options.include.is_empty();
    options.from_release.is_some()
        && unchanged
        && same_images
        && options.to_image_base.is_none()
        && options.created.is_none()
}

/// Whether the payload was reproduced. Its files are compared and not its digest, which also depends on the
/// program that compressed them.
fn compare(source: &Payload, built: &Built) -> Result<(), Failure> {
    let same = |one: &[u8], other: &[u8]| one == other;
    let references = source
        .contents
        .references_bytes()
        .ok()
        .zip(built.contents.references_bytes().ok());
    let references = references.is_some_and(|(one, other)| same(&one, &other));
    let mut changed: Vec<_> = Vec::new();
    let (before, after) = (source.contents.manifests(), built.contents.manifests());
    for name in before.keys().chain(after.keys()) {
        let content = |files: &std::collections::BTreeMap<
            &str,
            &neap_release::payload_image::manifest_file::ManifestFile,
        >| files.get(name).map(|file| file.content.clone());
        if content(&before) != content(&after) && !changed.contains(name) {
            changed.push(name);
        }
    }
    if references && changed.is_empty() {
        return Ok(());
    }
    let why = if changed.is_empty() {
        "image-references is different".to_owned()
    } else {
        format!("these files are different: {}", changed.join(", "))
    };
    Err(Failure::new(
        "NT-RELEASE-0106",
        Exit::Refused,
        "the payload was not reproduced",
        &why,
    )
    .remedy("assemble it with the options with which it was made"))
}

async fn read_source(client: &RegistryClient, text: &str) -> Result<Payload, Failure> {
    let platforms: Vec<PlatformFilter> = platforms(None)?;
    let payload = reader::read(client, &image(text)?, &platforms).await;
    payload.map_err(|error| failed("cannot read the source payload", &error))
}

fn bad_input(error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::new(
        "NT-RELEASE-0105",
        Exit::Refused,
        "cannot use the images",
        &chain(error),
    )
    .remedy("correct what the message names; nothing was pushed")
}
