//! Gathers the facts about a stream.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use neap_kit::{apply::Error, builder::Tools, key::Key};

use super::{Sources, recorded_state};
use crate::{
    api::{ProwJobState, annotations},
    config::{ANNOTATION_LIMIT, CONFIG_MAP_LIMIT, ConfigError, ReleaseConfig, parse},
    image_stream::api::{DOCKER_IMAGE, ImageStream, TagReference},
    names,
    payload::Phase,
    stream::decide::conflict::is_settled,
    stream::facts::{
        AcceptedRelease, Facts, PeriodicRun, Release, annotation, created, public_repository,
    },
    version,
};

/// The key of the configuration in a ConfigMap.
const CONFIG_KEY: &str = "config.json";

/// How many images of a stream are read at the same time.
const READ_AT_ONCE: usize = 16;

type LoadedConfig = Result<Arc<ReleaseConfig>, ConfigError>;

impl Sources {
    /// The facts about the stream of `source`; none while there is no key for the tokens of its runs.
    pub(in crate::stream) async fn gather(
        &self,
        tools: &Tools,
        source: Arc<ImageStream>,
    ) -> Result<Option<Facts>, Error> {
        let Some(run_key) = self.services.run_keys.newest().await? else {
            return Ok(None);
        };
        let loaded = load(tools, &source).await?;
        let mut facts = Facts {
            options: self.services.options.clone(),
            target: None,
            payloads: BTreeMap::new(),
            proved: BTreeSet::new(),
            mirrors: BTreeMap::new(),
            jobs: BTreeMap::new(),
            runs: BTreeMap::new(),
            periodic_runs: BTreeMap::new(),
            prow: self.services.prow.get(),
            accepted: Arc::default(),
            previous: BTreeMap::new(),
            destinations: BTreeMap::new(),
            informing: BTreeMap::new(),
            release_names: BTreeMap::new(),
            cli_override: None,
            cli_images: BTreeMap::new(),
            unread: BTreeMap::new(),
            run_key,
            now: tools.clock.now(),
            config: loaded.clone(),
            source,
        };
        let Ok(config) = loaded else {
            return Ok(Some(facts));
        };
        facts.target = if config.is_stable() {
            Some(facts.source.clone())
        } else {
            self.streams.get(&Key::new(facts.namespace(), &config.to))
        };
        if config.end_of_life || facts.target.is_none() {
            return Ok(Some(facts));
        }
        self.releases(&mut facts, &config);
        facts.cli_override = self.cli_override(&facts.source, &config.override_cli_image);
        self.prove_payloads(&mut facts).await?;
        self.runs_of_periodics(&mut facts);
        self.destinations(&mut facts, &config);
        if starts_upgrades(&config) {
            facts.accepted = Arc::new(self.accepted_releases());
        }
        if config.is_stable() {
            self.informing(tools, &mut facts).await?;
            self.images(tools, &mut facts, &config).await;
        }
        Ok(Some(facts))
    }

    /// The objects of each release.
    fn releases(&self, facts: &mut Facts, config: &ReleaseConfig) {
        let namespace = facts.namespace().to_owned();
        let options = self.services.options.clone();
        let Some(target) = facts.target.clone() else {
            return;
        };
        // A payload under the name of the release that may be cut now.
        let next = names::release_tag(&config.name, facts.now);
        if let Some(payload) = self.payloads.get(&Key::new(&namespace, &next)) {
            facts.payloads.insert(next, payload);
        }
        for tag in target
            .spec
            .tags
            .iter()
            .filter(|tag| is_of_stream(tag, config))
        {
            let name = &tag.name;
            if let Some(payload) = self.payloads.get(&Key::new(&namespace, name)) {
                facts.payloads.insert(name.clone(), payload);
            }
            let mirror = facts.mirror_name(config, name);
            if let Some(mirrored) = self.streams.get(&Key::new(&namespace, &mirror)) {
                facts.mirrors.insert(mirror, mirrored);
            }
            for job in [
                name.clone(),
                names::alternate_mirror_job(name),
                names::removal_job(name),
            ] {
                if let Some(found) = self.jobs.get(&Key::new(&options.job_namespace, &job)) {
                    facts.jobs.insert(job, found);
                }
            }
            let runs = self.runs.get(name);
            let runs = runs
                .iter()
                .filter(|run| run.namespace() == options.prow_namespace);
            let runs: BTreeSet<_> = runs.map(|run| run.name().to_owned()).collect();
            if !runs.is_empty() {
                facts.runs.insert(name.clone(), runs);
            }
        }
    }

    /// Which payloads the controller created, of those that something is still decided about.
    async fn prove_payloads(&self, facts: &mut Facts) -> Result<(), Error> {
        let Some(target) = facts.target.clone() else {
            return Ok(());
        };
        for tag in &target.spec.tags {
            let payload = facts.payloads.get(&tag.name);
            let Some(payload) = payload.filter(|payload| !is_settled(tag, payload)) else {
                continue;
            };
            if self.services.run_keys.prove(payload).await? {
                facts.proved.insert(tag.name.clone());
            }
        }
        Ok(())
    }

    /// Where an image is that the configuration names in the cluster's own registry: nodes may not reach that, so
    /// the image is taken from where its tag points. None for all others.
    fn cli_override(&self, source: &ImageStream, image: &str) -> Option<String> {
        let inside = &source.status.as_ref()?.docker_image_repository;
        let registry = inside.split('/').next().filter(|host| !host.is_empty())?;
        let name = image.strip_prefix(registry)?.strip_prefix('/')?;
        let (namespace, name) = name.split_once('/')?;
        let (name, tag) = name.split_once(':')?;
        let stream = self.streams.get(&Key::new(namespace, name))?;
        let wanted = stream.spec.tag(tag)?;
        if wanted.reference {
            let mut imported = stream.status.iter().flat_map(|status| &status.tags);
            let item = imported.find(|it| it.tag == tag)?.items.first()?;
            return Some(item.docker_image_reference.clone());
        }
        let from = wanted.from.as_ref();
        from.filter(|from| from.kind == DOCKER_IMAGE)
            .map(|from| from.name.clone())
    }

    fn runs_of_periodics(&self, facts: &mut Facts) {
        for run in self.periodics_by_source.get(&facts.source_name()) {
            let Some(created) = run.created() else {
                continue;
            };
            let state = run.state();
            let ended = run.completion_time().is_some()
                || matches!(
                    state,
                    ProwJobState::Success
                        | ProwJobState::Failure
                        | ProwJobState::Aborted
                        | ProwJobState::Error
                );
            let found = PeriodicRun {
                created: created.0,
                ended,
            };
            let job = run
                .annotation(annotations::PROW_JOB)
                .unwrap_or(run.job())
                .to_owned();
            let last = facts
                .periodic_runs
                .entry(job)
                .or_insert_with(|| found.clone());
            if found.created > last.created {
                *last = found;
            }
        }
    }

    fn destinations(&self, facts: &mut Facts, config: &ReleaseConfig) {
        for to in config
            .publish
            .values()
            .filter_map(|publish| publish.image_stream_ref.as_ref())
        {
            let namespace = if to.namespace.is_empty() {
                facts.namespace()
            } else {
                &to.namespace
            };
            let key = Key::new(namespace, &to.name);
            if let Some(found) = self.streams.get(&key) {
                facts.destinations.insert(key, found);
            }
        }
    }

    /// The accepted releases of all streams of the release namespaces.
    fn accepted_releases(&self) -> Vec<AcceptedRelease> {
        let options = &self.services.options;
        let mut accepted = Vec::new();
        for target in options
            .release_namespaces
            .iter()
            .flat_map(|it| self.streams.list(it))
        {
            let stable = stable_name(&target);
            let has_releases = annotation(&target, annotations::HAS_RELEASES) == Some("true");
            let repository = public_repository(&target, options);
            if !has_releases && stable.is_none() {
                continue;
            }
            let namespace = target.metadata.namespace.as_deref().unwrap_or_default();
            for tag in &target.spec.tags {
                let Some(stream) = tag.annotations.get(annotations::NAME) else {
                    continue;
                };
                let payload = self.payloads.get(&Key::new(namespace, &tag.name));
                let payloads = payload
                    .map(|it| (tag.name.clone(), it))
                    .into_iter()
                    .collect();
                // Its tag says so too: the controller of its stream has looked at its payload.
                let written = tag.annotations.get(annotations::PHASE);
                if Release::of(tag, &payloads).phase != Some(Phase::Accepted)
                    || written.is_none_or(|written| written != Phase::Accepted.as_str())
                {
                    continue;
                }
                let repository = repository.as_deref();
                accepted.push(AcceptedRelease {
                    stream: stream.clone(),
                    is_stable: stable.as_ref() == Some(stream),
                    tag: tag.name.clone(),
                    created: created(tag),
                    pull_spec: repository
                        .map(|it| format!("{it}:{}", tag.name))
                        .unwrap_or_default(),
                });
            }
        }
        accepted
    }

    /// The configurations whose jobs also inform about the releases of a Stable stream.
    async fn informing(&self, tools: &Tools, facts: &mut Facts) -> Result<(), Error> {
        let suffix = &self.services.options.art_suffix;
        if suffix.is_empty() {
            return Ok(());
        }
        let tags = facts.source.spec.tags.iter();
        let minors: BTreeSet<_> = tags
            .filter_map(|tag| version::parse(&tag.name))
            .map(|version| format!("{}.{}", version.major, version.minor))
            .collect();
        for minor in minors {
            let key = Key::new(facts.namespace(), &format!("{minor}{suffix}"));
            if let Some(source) = self.streams.get(&key) {
                let config = load(tools, &source).await?;
                let config = config.map_err(|error| format!("{key}: {error}"));
                facts.informing.insert(minor, config);
            }
        }
        Ok(())
    }

    /// What the images of Stable releases say, as far as a decision needs it.
    async fn images(&self, tools: &Tools, facts: &mut Facts, config: &ReleaseConfig) {
        let samples_upgrades = config.upgraded_on().next().is_some();
        let needs_cli = config.override_cli_image.is_empty() && facts.options.tools.image.is_none();
        let source = facts.source.clone();
        let status = source.status.iter().flat_map(|status| &status.tags);
        let imports: BTreeMap<_, _> = status.map(|tag| (tag.tag.as_str(), tag)).collect();
        let mut wanted = Vec::new();
        for tag in &source.spec.tags {
            let release = Release::of(tag, &facts.payloads);
            let needs_name = matches!(release.phase, None | Some(Phase::Pending))
                && release.annotation(annotations::REWRITE).is_none();
            let needs_previous = samples_upgrades && release.phase == Some(Phase::Ready);
            let needs_cli = needs_cli
                && matches!(release.phase, None | Some(Phase::Pending))
                && !facts.jobs.contains_key(&tag.name);
            let imported = imports.get(tag.name.as_str());
            let item = imported.and_then(|imported| imported.items.first());
            if let Some(item) = item.filter(|_| needs_name || needs_previous || needs_cli) {
                wanted.push((tag.name.clone(), item.docker_image_reference.clone()));
            }
        }
        let namespace = facts.namespace().to_owned();
        let reader = &self.services.reader;
        let mut answers = stream::iter(wanted)
            .map(async |(tag, image)| (tag, reader.read(tools.clock, &namespace, &image).await))
            .buffer_unordered(READ_AT_ONCE);
        while let Some((tag, read)) = answers.next().await {
            match read {
                Ok(info) => {
                    facts.release_names.insert(tag.clone(), info.name.clone());
                    if let Some(cli) = &info.cli {
                        facts.cli_images.insert(tag.clone(), cli.clone());
                    }
                    facts.previous.insert(tag, info.previous.clone());
                }
                Err(error) => {
                    tracing::warn!(tag, error, "a release image cannot be read");
                    facts.unread.insert(tag, error);
                }
            }
        }
    }
}

/// Whether a tag of a target belongs to a stream, or may.
fn is_of_stream(tag: &TagReference, config: &ReleaseConfig) -> bool {
    let name = tag.annotations.get(annotations::NAME);
    name.map_or(config.is_stable(), |name| *name == config.name)
}

/// The name of the Stable stream whose source this is.
fn stable_name(source: &ImageStream) -> Option<String> {
    let Some(text) = annotation(source, annotations::CONFIG) else {
        let state = recorded_state(source)?;
        return state.stable.then_some(state.stream);
    };
    let config = parse(text, CONFIG_MAP_LIMIT).ok()?;
    config.is_stable().then_some(config.name)
}

fn starts_upgrades(config: &ReleaseConfig) -> bool {
    config.verify.values().any(|one| one.upgrade) || config.periodic.values().any(|one| one.upgrade)
}

/// Reads the configuration of a source, from its annotation or from the ConfigMap that it names.
async fn load(tools: &Tools, source: &ImageStream) -> Result<LoadedConfig, Error> {
    if let Some(text) = annotation(source, annotations::CONFIG) {
        return Ok(parse(text, ANNOTATION_LIMIT).map(Arc::new));
    }
    let name = annotation(source, annotations::CONFIG_REF).unwrap_or_default();
    let key = Key::new(
        source.metadata.namespace.as_deref().unwrap_or_default(),
        name,
    );
    let Some(map) = tools.writer.find::<ConfigMap>(&key).await? else {
        let message = format!("the ConfigMap {key}, which has the configuration, does not exist");
        return Ok(Err(ConfigError::Missing(message)));
    };
    let text = map.data.as_ref().and_then(|data| data.get(CONFIG_KEY));
    let Some(text) = text else {
        let message = format!("the ConfigMap {key} has no key {CONFIG_KEY}");
        return Ok(Err(ConfigError::Missing(message)));
    };
    Ok(parse(text, CONFIG_MAP_LIMIT).map(Arc::new))
}
