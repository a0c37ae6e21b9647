//! Deletes release images from mirror repositories once no stream has them any more.
//!
//! Stable streams name a repository to which their releases are copied. A tag there is deleted if no Stable
//! stream has a tag of that name and its image is older than a minimum age. A pass looks at a bounded number of
//! images and tries a bounded number of deletions; the next one goes on behind them. A registry that fails is left
//! alone for the rest of the pass, and by later passes for a time that doubles.

mod scope;
pub mod sources;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use neap_kit::why;

pub use self::scope::{Scope, is_expired, scope};
use self::{
    scope::{pass_at, rotated},
    sources::CleanupSources,
};
use crate::{
    oci::{
        client::{Error, RegistryClient},
        platform::PlatformFilter,
        reference::ImageRef,
        registry_backoff::RegistryBackoff,
    },
    payload_image::image::ImageConfig,
};

/// The longest time for which a registry that keeps failing is left alone.
const MAX_DELAY: Duration = Duration::from_hours(168);

/// The settings of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanupOptions {
    /// Images that are younger are kept.
    pub minimum_age: Duration,
    /// The time between two passes.
    pub interval: Duration,
    /// Deletions that one pass tries.
    pub per_pass: usize,
    /// Images that one pass looks at.
    pub looked_at: usize,
    /// Nothing is deleted.
    pub dry_run: bool,
}

impl Default for CleanupOptions {
    fn default() -> Self {
        Self {
            minimum_age: Duration::from_hours(720),
            interval: Duration::from_hours(24),
            per_pass: 200,
            looked_at: 2000,
            dry_run: false,
        }
    }
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
    /// Registries that failed before, and were not asked.
    pub left_alone: BTreeSet<String>,
    /// Whether a limit of the pass was reached.
    pub limited: bool,
    /// Images that were looked at.
    looked_at: usize,
    /// Deletions that were tried.
    tried: usize,
}

/// Cleans up mirrors, pass by pass.
#[derive(Debug)]
pub struct MirrorCleaner {
    registries: RegistryBackoff,
    options: CleanupOptions,
}

impl MirrorCleaner {
    /// With these settings.
    pub fn new(options: CleanupOptions) -> Self {
        Self {
            registries: RegistryBackoff::new(options.interval, MAX_DELAY),
            options,
        }
    }

    /// One pass over all repositories. The streams and the credentials are read for each pass; `registry` is used
    /// with these credentials.
    pub async fn pass(
        &mut self,
        cluster: &kube::Client,
        sources: &CleanupSources,
        registry: &RegistryClient,
    ) -> Result<CleanupReport, sources::Error> {
        let streams = sources::streams(cluster, &sources.namespaces).await?;
        let scope = scope(&streams);
        if scope.repositories.is_empty() {
            // There is no registry to log in to.
            return Ok(self.clean_up(registry, &scope).await);
        }
        let (namespace, name) = (&sources.credentials_namespace, &sources.credentials_secret);
        let credentials = sources::credentials(cluster, namespace, name).await?;
        let registry = registry.with_credentials(credentials);
        Ok(self.clean_up(&registry, &scope).await)
    }

    /// One pass over the repositories of a scope.
    pub async fn clean_up(&mut self, client: &RegistryClient, scope: &Scope) -> CleanupReport {
        let mut report = CleanupReport::default();
        if !scope.unreadable.is_empty() {
            let unreadable = scope
                .unreadable
                .iter()
                .map(|it| format!("nothing is deleted: the configuration of {it}"));
            report.problems.extend(unreadable);
            return report;
        }
        let pass = pass_at(client.clock().now(), self.options.interval);
        // Each repository is the first of a pass from time to time, and then its tags go on.
        let count = scope.repositories.len().max(1) as u64;
        let repositories: Vec<_> = scope.repositories.iter().collect();
        for repository in rotated(repositories, pass, 1) {
            match repository.parse::<ImageRef>() {
                Ok(image) => {
                    let image = image.bare();
                    self.repository(client, &image, scope, pass / count, &mut report)
                        .await;
                }
                Err(error) => report.problems.push(why::chain(&error)),
            }
            if report.limited {
                break;
            }
        }
        report
    }

    /// Cleans up one repository, unless its registry is left alone.
    async fn repository(
        &mut self,
        client: &RegistryClient,
        repository: &ImageRef,
        scope: &Scope,
        turn: u64,
        report: &mut CleanupReport,
    ) {
        let host = repository.endpoint().host;
        let now = client.clock().uptime();
        if !self.registries.wait(&host, now).is_zero() {
            report.left_alone.insert(host);
            return;
        }
        let problems = report.problems.len();
        let cleaned = self.clean(client, repository, scope, turn, report).await;
        match cleaned {
            // What is wrong with an image says nothing of the registry: neither that it fails, nor that it works again.
            Ok(()) if report.problems.len() == problems => {
                self.registries.succeeded(&host);
            }
            Ok(()) => {}
            Err(error) => {
                report.problems.push(why::chain(&error));
                if error.is_of_the_registry() {
                    let now = client.clock().uptime();
                    self.registries.failed(&host, error.retry_after(), now);
                }
            }
        }
    }

    /// Cleans up one repository, until the registry fails or a limit of the pass is reached.
    async fn clean(
        &self,
        client: &RegistryClient,
        repository: &ImageRef,
        scope: &Scope,
        turn: u64,
        report: &mut CleanupReport,
    ) -> Result<(), Error> {
        let mut tags = client.tags(repository).await?;
        tags.retain(|tag| !scope.valid.contains(tag));
        let at_once = self.options.looked_at.min(self.options.per_pass);
        for tag in rotated(tags, turn, at_once) {
            let Ok(image) = repository.with_tag(&tag) else {
                continue;
            };
            if report.looked_at >= self.options.looked_at || report.tried >= self.options.per_pass {
                report.limited = true;
                return Ok(());
            }
            report.looked_at += 1;
            match self.clean_tag(client, &image, &tag, scope, report).await {
                Err(error) if error.is_of_the_registry() => return Err(error),
                // A damaged image is its own problem.
                Err(error) => report.problems.push(why::chain(&error)),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Deletes a tag if it expired.
    async fn clean_tag(
        &self,
        client: &RegistryClient,
        image: &ImageRef,
        tag: &str,
        scope: &Scope,
        report: &mut CleanupReport,
    ) -> Result<(), Error> {
        let created = created(client, image).await?;
        let (now, minimum_age) = (client.clock().now(), self.options.minimum_age);
        if !is_expired(tag, created, &scope.valid, minimum_age, now) {
            report.kept += 1;
            return Ok(());
        }
        report.tried += 1;
        if !self.options.dry_run {
            // The tag, and not the digest: other tags may stand for the same image.
            client.delete(image).await?;
        }
        report.deleted.push(image.to_string());
        Ok(())
    }
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
