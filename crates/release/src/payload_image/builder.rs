//! Assembles payloads from images in registries, and pushes them.

#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, future::try_join_all, stream};
use jiff::Timestamp;

use super::{
    assemble::{self, Assembled, Component, Release},
    contents::{self, Contents},
    image::{self, Base, BuiltImage, ImageConfig},
    labels, layer_files,
    manifest_file::{FOLDER, ManifestFile},
};
use crate::oci::{
    client::{Error as RegistryError, RegistryClient},
    layer::{EntryHead, EntryKind, LayerBlob, Limits},
    manifest::{Descriptor, Manifest},
    platform::{self, PlatformFilter},
    reference::{ImageRef, InvalidRef},
    transfer::{self, Progress},
};

/// Why a payload was not made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A layer of a component.
    #[error("component {component}")]
    Layer {
        /// The component.
        component: String,
        /// Why.
        source: layer_files::Error,
    },
    /// A component's image.
    #[error("component {component}")]
    Component {
        /// The component.
        component: String,
        /// Why.
        source: Box<RegistryError>,
    },
    /// A component's pull spec.
    #[error("component {component}")]
    Reference {
        /// The component.
        component: String,
        /// Why.
        source: InvalidRef,
    },
    /// A configuration.
    #[error("{what}")]
    Config {
        /// The image.
        what: String,
        /// Why.
        source: image::Error,
    },
    /// The contents.
    #[error("the payload cannot be assembled")]
    Assemble(#[from] assemble::Error),
    /// The layer.
    #[error("the payload cannot be packed")]
    Contents(#[from] contents::Error),
    /// The image.
    #[error("the image of the payload cannot be made")]
    Image(#[from] image::Error),
    /// A target by digest.
    #[error("{0} names a digest; a payload is pushed to a tag")]
    TargetDigest(String),
    /// A list without images.
    #[error("the base image {0} is a list without images")]
    EmptyList(String),
}

/// What a payload is based on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseChoice {
    /// The image of a component.
    Component(String),
    /// Another image.
    Image(ImageRef),
    /// Nothing: the image has only the layer of the payload.
    Scratch,
}

/// What is to be made.
#[derive(Debug, Clone)]
pub struct Request {
    /// The images.
    pub components: Vec<Component>,
    /// The release. A name that is empty, and a time that is not given, are derived from the images.
    pub release: Release,
    /// When it was created, if it is not to be derived.
    pub created: Option<Timestamp>,
    /// What it is based on.
    pub base: BaseChoice,
    /// A list of manifests stays one.
    pub keep_manifest_list: bool,
    /// Labels and manifests of the components are given; only images that the user put in place of others are
    /// read.
    pub given: bool,
}

/// A payload that is ready to be pushed.
#[derive(Debug, Clone)]
pub struct Built {
    /// Its contents.
    pub contents: Contents,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// The layer.
    pub layer: LayerBlob,
    /// The images: one, or one for each platform.
    pub images: Vec<BuiltImage>,
    /// The list of the images, if there is one.
    pub list: Option<Manifest>,
    /// Where the layers of the base are.
    pub base: Option<ImageRef>,
    /// The name of the release.
    pub name: String,
    /// When it was created.
    pub created: Timestamp,
}

impl Built {
    /// The manifest that is found under the tag.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.list
            .as_ref()
            .or_else(|| self.images.first().map(|image| &image.manifest))
    }
}

/// Reads the images and makes the payload. Nothing is pushed.
pub async fn build(client: &RegistryClient, request: Request) -> Result<Built, Error> {
    let exclude = request.release.exclude.clone();
    let components = request.components.into_iter();
    let wanted = components
        .filter(|it| !exclude.contains(&it.name))
        .collect();
    let read = read_components(client, wanted, request.given).await?;
    let base = read_base(client, &request.base, &read, request.keep_manifest_list).await?;
    let times = read.iter().filter_map(|it| it.created);
    let times = times.chain(base.images.iter().filter_map(|it| it.config.created));
    // The newest image, and not the clock: the same images give the same payload.
    let created = request
        .created
        .or_else(|| times.max())
        .unwrap_or(Timestamp::UNIX_EPOCH);
    let mut release = request.release;
    release.created = created;
    if release.name.is_empty() {
        release.name = default_name(created);
    }
    if let BaseChoice::Component(name) = &request.base {
        release.base = Some(name.clone());
    }
    let components = read.into_iter().map(|it| it.component).collect();
    let Assembled { contents, warnings } = assemble::assemble(components, &release)?;
    let layer = contents.to_layer()?;
    let mut images = Vec::new();
    for found in &base.images {
        images.push(image::build(Some(found), &layer, &release.name, created)?);
    }
    if base.images.is_empty() {
        images.push(image::build(None, &layer, &release.name, created)?);
    }
    let list = match &base.list {
        Some((list, children)) => {
            let children: Vec<_> = children
                .iter()
                .cloned()
                .zip(images.iter().cloned())
                .collect();
            Some(image::rebuild_list(list, &children)?)
        }
        None => None,
    };
    Ok(Built {
        contents,
        warnings,
        layer,
        images,
        list,
        base: base.reference,
        name: release.name,
        created,
    })
}

/// Pushes a payload. The tag is written when everything that it names is there; until then, and after a
/// failure, it still points to the previous image.
pub async fn push(
    client: &RegistryClient,
    built: &Built,
    target: &ImageRef,
    progress: &Progress,
) -> Result<ImageRef, Error> {
    if target.digest_text().is_some() {
        return Err(Error::TargetDigest(target.to_string()));
    }
    let repository = target.bare();
    let mut base_layers: BTreeMap<String, Descriptor> = BTreeMap::new();
    for layer in built.images.iter().flat_map(|image| &image.base_layers) {
        base_layers.insert(layer.digest().to_string(), layer.clone());
    }
    let base_layers: Vec<_> = base_layers.into_values().collect();
    let of_base = async {
        match &built.base {
            Some(base) => {
                transfer::copy_blobs(client, base, &repository, &base_layers, progress).await
            }
            None => Ok(()),
        }
    };
    let layer = client.push_bytes(&repository, &built.layer.digest, &built.layer.bytes);
    let configs = built
        .images
        .iter()
        .map(|image| client.push_bytes(&repository, &image.config_digest, &image.config));
    // Each is a few requests that wait for the registry.
    futures::try_join!(of_base, layer, try_join_all(configs))?;
    if built.list.is_some() {
        for image in &built.images {
            let by_digest = repository.at_digest(&image.manifest.digest);
            client.push_manifest(&by_digest, &image.manifest).await?;
        }
    }
    let tagged = match target.tag() {
        Some(_) => target.clone(),
        None => target
            .with_tag(&built.name)
            .map_err(|source| Error::Reference {
                component: built.name.clone(),
                source,
            })?,
    };
    if let Some(manifest) = built.manifest() {
        client.push_manifest(&tagged, manifest).await?;
    }
    Ok(tagged)
}

/// The name of a release that was given none.
fn default_name(created: Timestamp) -> String {
    let text = created.strftime("%Y-%m-%d-%H%M%S");
    format!("0.0.1-{text}")
}

struct ReadComponent {
    component: Component,
    created: Option<Timestamp>,
    /// The manifest that its reference names, and the image; none of a component that was given.
    image: Option<(Manifest, Base)>,
}

/// The components, read from their images; as they are, if they are `given` and no image was put in the place of
/// theirs.
async fn read_components(
    client: &RegistryClient,
    components: Vec<Component>,
    given: bool,
) -> Result<Vec<ReadComponent>, Error> {
    let read = stream::iter(components).map(|component| async move {
        if given && !component.replaced {
            return Ok(ReadComponent {
                component,
                created: None,
                image: None,
            });
        }
        read_component(client, component).await
    });
    read.buffered(client.parallelism()).try_collect().await
}

/// Reads the labels of a component, and the manifests of one that has some.
async fn read_component(
    client: &RegistryClient,
    mut component: Component,
) -> Result<ReadComponent, Error> {
    let name = component.name.clone();
    let failed = |source| Error::Component {
        component: name.clone(),
        source: Box::new(source),
    };
    let image: ImageRef = component
        .pull_spec
        .parse()
        .map_err(|source| Error::Reference {
            component: name.clone(),
            source,
        })?;
    let outer = client.manifest(&image).await.map_err(failed)?;
    // A tag may stand for another image tomorrow; the payload names the image that was read.
    component.pull_spec = image.at_digest(&outer.digest).to_string();
    let found = one_image(client, &image, &outer).await.map_err(failed)?;
    let config = client.config(&image, &found).await.map_err(failed)?;
    let config = ImageConfig::read(&config).map_err(|source| Error::Config {
        what: format!("component {name} ({image})"),
        source,
    })?;
    component.labels = config.labels();
    if labels::is_operator(&component.labels) {
        component.manifests = read_manifests(client, &image, &component, &found).await?;
    }
    Ok(ReadComponent {
        component,
        created: config.created,
        image: Some((
            outer,
            Base {
                manifest: found,
                config,
            },
        )),
    })
}

/// The only image of a list, or that for linux/amd64.
async fn one_image(
    client: &RegistryClient,
    image: &ImageRef,
    outer: &Manifest,
) -> Result<Manifest, RegistryError> {
    match client.image_of(image, outer, &PlatformFilter::Any).await {
        Err(RegistryError::Platform {
            source: platform::Error::Several(_),
            ..
        }) => {
            client
                .image_of(image, outer, &PlatformFilter::linux_amd64())
                .await
        }
        result => result,
    }
}

/// The regular files of an operator's folder of manifests. Only its last layer is read, so that it does not
/// bring the manifests of an operator that it is built on; of an image that the user put in place of another,
/// all layers.
async fn read_manifests(
    client: &RegistryClient,
    image: &ImageRef,
    component: &Component,
    found: &Manifest,
) -> Result<Vec<ManifestFile>, Error> {
    let layers = found
        .image()
        .map(|it| it.layers().clone())
        .unwrap_or_default();
    let first = if component.replaced {
        0
    } else {
        layers.len().saturating_sub(1)
    };
    let mut files: BTreeMap<String, ManifestFile> = BTreeMap::new();
    for descriptor in &layers[first..] {
        let limits = Limits::for_manifests(descriptor.size());
        let entries = layer_files::read(client, image, descriptor, limits, is_manifest_entry).await;
        let entries = entries.map_err(|source| Error::Layer {
            component: component.name.clone(),
            source,
        })?;
        for entry in entries {
            let Some(name) = entry.head.name.strip_prefix(FOLDER) else {
                continue;
            };
            if entry.head.kind != EntryKind::Whiteout {
                let file = ManifestFile {
                    name: name.to_owned(),
                    mtime: entry.head.mtime,
                    content: entry.content,
                };
                files.insert(name.to_owned(), file);
            } else if name == ".wh..wh..opq" {
                files.clear();
            } else {
                files.remove(name.trim_start_matches(".wh."));
            }
        }
    }
    Ok(files.into_values().collect())
}

fn is_manifest_entry(head: &EntryHead) -> bool {
    let name = head.name.strip_prefix(FOLDER);
    let direct = name.is_some_and(|name| !name.is_empty() && !name.contains('/'));
    direct && matches!(head.kind, EntryKind::File | EntryKind::Whiteout)
}

#[derive(Default)]
struct ReadBase {
    reference: Option<ImageRef>,
    images: Vec<Base>,
    list: Option<(Manifest, Vec<Descriptor>)>,
}

async fn read_base(
    client: &RegistryClient,
    choice: &BaseChoice,
    read: &[ReadComponent],
    keep_list: bool,
) -> Result<ReadBase, Error> {
    let mut known = None;
    let reference: ImageRef = match choice {
        BaseChoice::Scratch => return Ok(ReadBase::default()),
        BaseChoice::Image(image) => image.clone(),
        BaseChoice::Component(name) => {
            let found = read.iter().find(|it| it.component.name == *name);
            let found = found.ok_or_else(|| assemble::Error::NoBase(name.clone()))?;
            known.clone_from(&found.image);
            found
                .component
                .pull_spec
                .parse()
                .map_err(|source| Error::Reference {
                    component: name.clone(),
                    source,
                })?
        }
    };
    let outer = match known {
        // The component was read before.
        Some((outer, base)) if !keep_list || outer.list().is_none() => {
            return Ok(ReadBase {
                reference: Some(reference),
                images: vec![base],
                list: None,
            });
        }
        Some((outer, _)) => outer,
        None => client.manifest(&reference).await?,
    };
    let (images, children) = base_images(client, &reference, &outer, keep_list).await?;
    let mut bases = Vec::new();
    for manifest in images {
        let config = client.config(&reference, &manifest).await?;
        let config = ImageConfig::read(&config).map_err(|source| Error::Config {
            what: format!("the base image {reference}"),
            source,
        })?;
        bases.push(Base { manifest, config });
    }
    Ok(ReadBase {
        reference: Some(reference),
        images: bases,
        list: (!children.is_empty()).then_some((outer, children)),
    })
}

/// The images of a base: those of its list if the list is kept, with their descriptors, and otherwise one.
async fn base_images(
    client: &RegistryClient,
    reference: &ImageRef,
    outer: &Manifest,
    keep_list: bool,
) -> Result<(Vec<Manifest>, Vec<Descriptor>), Error> {
    let Some(list) = outer.list().filter(|_| keep_list) else {
        let image = one_image(client, reference, outer).await?;
        return Ok((vec![image], Vec::new()));
    };
    let children = list.manifests().iter().filter(|it| is_image(it));
    let children: Vec<_> = children.cloned().collect();
    if children.is_empty() {
        return Err(Error::EmptyList(reference.to_string()));
    }
    let mut images = Vec::new();
    for child in &children {
        let child = reference.at_digest(child.digest());
        images.push(client.manifest(&child).await?);
    }
    Ok((images, children))
}

/// Attestations are in lists, too, under a platform that is unknown.
fn is_image(descriptor: &Descriptor) -> bool {
    platform::platform(descriptor) != "unknown/unknown" || descriptor.annotations().is_none()
}
