//! Deletes release images from mirror repositories once no stream has them any more.
//!
//! Stable streams name a repository to which their releases are copied. A tag there is deleted if no Stable
//! stream has a tag of that name and its image is older than a minimum age. A pass deletes a bounded number
//! of tags, and a registry that fails is left alone for the rest of the pass.

pub mod sources;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, time::Duration};

use jiff::{SignedDuration, Timestamp};
use neap_kit::why;

use crate::{
    api::annotations::CONFIG,
    config,
    image_stream::api::ImageStream,
    oci::{
        client::{Error, RegistryClient},
        platform::PlatformFilter,
        reference::ImageRef,
    },
    payload_image::image::ImageConfig,
};

/// The longest configuration of a stream.
const MAX_CONFIG: usize = 1 << 20;

/// The settings of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanupOptions {
    /// Images that are younger are kept.
    pub minimum_age: Duration,
    /// Deletions in one pass.
    pub per_pass: usize,
    /// Nothing is deleted.
    pub dry_run: bool,
}

impl Default for CleanupOptions {
    fn default() -> Self {
        Self {
            minimum_age: Duration::from_hours(720),
            per_pass: 200,
            dry_run: false,
        }
    }
}

/// The repositories to clean up, and the tags that are kept there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Tags of Stable streams.
    pub valid: BTreeSet<String>,
    /// Repositories.
    pub repositories: BTreeSet<String>,
    /// Streams whose configuration cannot be read. While there are some, nothing is deleted: their tags are
    /// not known.
    pub unreadable: Vec<String>,
}

/// What is cleaned up for these streams.
pub fn scope(streams: &[ImageStream]) -> Scope {
    let mut scope = Scope::default();
    for stream in streams {
        let annotations = stream.metadata.annotations.as_ref();
        let Some(text) = annotations.and_then(|it| it.get(CONFIG)) else {
            continue;
        };
        let parsed = match config::parse(text, MAX_CONFIG) {
            Ok(parsed) => parsed,
            Err(error) => {
                let name = stream.metadata.name.clone().unwrap_or_default();
                scope
                    .unreadable
                    .push(format!("{name}: {}", why::chain(&error)));
                continue;
            }
        };
        if !parsed.alternate_image_repository.is_empty() {
            scope
                .repositories
                .insert(parsed.alternate_image_repository.clone());
        }
        if parsed.is_stable() {
            let tags = stream.status.iter().flat_map(|status| &status.tags);
            scope.valid.extend(tags.map(|tag| tag.tag.clone()));
            // A tag that was just added has no status yet.
            scope
                .valid
                .extend(stream.spec.tags.iter().map(|tag| tag.name.clone()));
        }
    }
    scope
}

/// Whether a tag is deleted, whose image was created at `created`.
pub fn is_expired(
    tag: &str,
    created: Option<Timestamp>,
    valid: &BTreeSet<String>,
    options: &CleanupOptions,
    now: Timestamp,
) -> bool {
    let age = created.map(|created| now.duration_since(created));
    let minimum = SignedDuration::try_from(options.minimum_age).unwrap_or(SignedDuration::MAX);
    // An image that does not say when it was created is kept: it may be new.
    !valid.contains(tag) && age.is_some_and(|age| age > minimum)
}

/// What a pass did.
#[derive(Debug, Default)]
pub struct CleanupReport {
    /// Images whose tag was deleted, or would have been.
    pub deleted: Vec<String>,
    /// Tags that no stream has and that are kept, because they are young or do not say how old they are.
    pub kept: usize,
    /// Images and repositories that could not be looked at or deleted, and why.
    pub problems: Vec<String>,
    /// Whether the limit of the pass was reached.
    pub limited: bool,
}

/// One pass over all repositories.
pub async fn pass(
    client: &RegistryClient,
    scope: &Scope,
    options: &CleanupOptions,
) -> CleanupReport {
    let mut report = CleanupReport::default();
    if !scope.unreadable.is_empty() {
        let unreadable = scope
            .unreadable
            .iter()
            .map(|it| format!("nothing is deleted: the configuration of {it}"));
        report.problems.extend(unreadable);
        return report;
    }
    let mut failed = BTreeSet::new();
    for repository in &scope.repositories {
        let image: ImageRef = match repository.parse() {
            Ok(image) => image,
            Err(error) => {
                report.problems.push(why::chain(&error));
                continue;
            }
        };
        let host = image.endpoint().host;
        if failed.contains(&host) {
            continue;
        }
        if let Err(error) = clean(client, &image.bare(), scope, options, &mut report).await {
            report.problems.push(why::chain(&error));
            if error.is_transient() {
                failed.insert(host);
            }
        }
        if report.limited {
            break;
        }
    }
    report
}

/// Cleans up one repository, until the registry fails.
async fn clean(
    client: &RegistryClient,
    repository: &ImageRef,
    scope: &Scope,
    options: &CleanupOptions,
    report: &mut CleanupReport,
) -> Result<(), Error> {
    let now = client.clock().now();
    let tags = client.tags(repository).await?;
    for tag in tags.into_iter().filter(|tag| !scope.valid.contains(tag)) {
        let Ok(image) = repository.with_tag(&tag) else {
            continue;
        };
        let created = match created(client, &image).await {
            Ok(created) => created,
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => {
                report.problems.push(why::chain(&error));
                continue;
            }
        };
        if !is_expired(&tag, created, &scope.valid, options, now) {
            report.kept += 1;
            continue;
        }
        if report.deleted.len() >= options.per_pass {
            report.limited = true;
            return Ok(());
        }
        if !options.dry_run {
            // The tag, and not the digest: other tags may stand for the same image.
            match client.delete(&image).await {
                Ok(_) => {}
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => {
                    report.problems.push(why::chain(&error));
                    continue;
                }
            }
        }
        report.deleted.push(image.to_string());
    }
    Ok(())
}

/// When an image was created; of a list, its first image.
async fn created(client: &RegistryClient, image: &ImageRef) -> Result<Option<Timestamp>, Error> {
    let manifest = client.manifest(image).await?;
    let manifest = match manifest.list().and_then(|list| list.manifests().first()) {
        Some(first) => client.manifest(&image.at_digest(first.digest())).await?,
        None => {
            client
                .image_of(image, &manifest, &PlatformFilter::Any)
                .await?
        }
    };
    let config = client.config(image, &manifest).await?;
    Ok(ImageConfig::read(&config)
        .ok()
        .and_then(|config| config.created))
}
