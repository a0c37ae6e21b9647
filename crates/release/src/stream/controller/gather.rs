//! Gathers the facts about a stream.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::{batch::v1::Job, core::v1::ConfigMap};
use neap_kit::{apply::Error, builder::Tools, key::Key};

use super::Sources;
use crate::{
    api::{ProwJobState, annotations},
    config::{ANNOTATION_LIMIT, CONFIG_MAP_LIMIT, ConfigError, ReleaseConfig, parse},
    image_stream::api::{DOCKER_IMAGE, ImageStream, TagReference},
    names,
    payload::run_token::RunKey,
    stream::decide::conflict::is_settled,
    stream::facts::{Facts, NameHolder, PeriodicRun, annotation},
    version,
};

/// The key of the configuration in a ConfigMap.
const CONFIG_KEY: &str = "config.json";

type LoadedConfig = Result<Arc<ReleaseConfig>, ConfigError>;

impl Sources {
    /// The facts about the stream of `source`.
    pub(in crate::stream) async fn gather(
        &self,
        tools: &Tools,
        source: Arc<ImageStream>,
    ) -> Result<Facts, Error> {
        let run_key = self.services.run_keys.newest().await?;
        let run_key = run_key.unwrap_or_else(RunKey::missing);
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
            reading: BTreeSet::new(),
            taken: BTreeMap::new(),
            run_key,
            now: tools.clock.now(),
            config: loaded.clone(),
            source,
        };
        let Ok(config) = loaded else {
            return Ok(facts);
        };
        facts.target = if config.is_stable() {
            Some(facts.source.clone())
        } else {
            self.streams.get(&Key::new(facts.namespace(), &config.to))
        };
        if config.end_of_life || facts.target.is_none() || facts.run_key.is_missing() {
            return Ok(facts);
        }
        self.releases(&mut facts, &config);
        facts.cli_override = self.cli_override(&facts.source, &config.override_cli_image);
        self.prove_payloads(&mut facts).await?;
        self.prove_jobs(&mut facts).await?;
        self.runs_of_periodics(&mut facts);
        self.destinations(&mut facts, &config);
        if starts_upgrades(&config) {
            facts.accepted = Arc::new(self.accepted.list(&self.payloads));
        }
        if config.is_stable() {
            self.informing(tools, &mut facts).await?;
            self.images(tools, &mut facts, &config).await;
        }
        Ok(facts)
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
            facts.payloads.insert(next.clone(), payload);
        }
        // A Job that is there before its release is of no controller. Of two releases of one name in two namespaces,
        // the second is cut and says what it lacks.
        let job = self.jobs.get(&Key::new(&options.job_namespace, &next));
        let holder_of_next = job.map(|job| holder(&job, &namespace));
        let is_foreign = |holder: &NameHolder| !matches!(holder, NameHolder::JobOf(_));
        if let Some(holder) = holder_of_next.filter(is_foreign)
            && target.spec.tag(&next).is_none()
        {
            facts.taken.insert(next, holder);
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
            for job in names_of_jobs(name) {
                let Some(found) = self.jobs.get(&Key::new(&options.job_namespace, &job)) else {
                    continue;
                };
                match holder(&found, &namespace) {
                    NameHolder::Unproved => facts.jobs.insert(job, found).is_some(),
                    other => facts.taken.insert(job, other).is_some(),
                };
            }
            self.runs_of_release(facts, name);
        }
    }

    /// The ProwJobs of a release. Those of a release of the same name in another namespace only have their names.
    fn runs_of_release(&self, facts: &mut Facts, tag: &str) {
        let namespace = facts.namespace().to_owned();
        let prow = &self.services.options.prow_namespace;
        for run in self.runs.get(tag) {
            if run.namespace() != *prow {
                continue;
            }
            let name = run.name().to_owned();
            let source = run.annotation(annotations::SOURCE);
            match source.filter(|source| !is_in(source, &namespace)) {
                Some(source) => {
                    let holder = NameHolder::RunOf(source.to_owned());
                    facts.taken.insert(name, holder);
                }
                None => {
                    facts.runs.entry(tag.to_owned()).or_default().insert(name);
                }
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

    /// Tells the Jobs that a release controller created from those that only have the name and say so. Releases that
    /// another controller began have Jobs without a token.
    async fn prove_jobs(&self, facts: &mut Facts) -> Result<(), Error> {
        let Some(target) = facts.target.clone() else {
            return Ok(());
        };
        let tags = target.spec.tags.iter();
        for tag in tags.filter(|tag| tag.annotations.contains_key(annotations::RUN_KEY)) {
            for name in names_of_jobs(&tag.name) {
                let Some(job) = facts.jobs.get(&name) else {
                    continue;
                };
                // The token is for one name and one release, of which the Job may name another than this.
                let release = job.metadata.annotations.as_ref();
                let release = release.and_then(|all| all.get(annotations::RELEASE_TAG));
                let is_proved =
                    release == Some(&tag.name) && self.services.run_keys.prove_job(job).await?;
                if !is_proved {
                    facts.jobs.remove(&name);
                    facts.taken.insert(name, NameHolder::Unproved);
                }
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
}

/// The target whose release a Job belongs to, if it says so.
/// The Jobs that a release may have.
fn names_of_jobs(tag: &str) -> [String; 3] {
    [
        tag.to_owned(),
        names::alternate_mirror_job(tag),
        names::removal_job(tag),
    ]
}

/// What a Job says that it belongs to. One of a release of this namespace is yet to be proved.
fn holder(job: &Job, namespace: &str) -> NameHolder {
    let all = job.metadata.annotations.as_ref();
    match all.and_then(|all| all.get(annotations::TARGET)) {
        None => NameHolder::NoRelease,
        Some(target) if is_in(target, namespace) => NameHolder::Unproved,
        Some(target) => NameHolder::JobOf(target.clone()),
    }
}

/// Whether an object, named with its namespace, is in this one.
fn is_in(object: &str, namespace: &str) -> bool {
    object
        .split_once('/')
        .is_some_and(|(it, _)| it == namespace)
}

/// Whether a tag of a target belongs to a stream, or may.
fn is_of_stream(tag: &TagReference, config: &ReleaseConfig) -> bool {
    let name = tag.annotations.get(annotations::NAME);
    name.map_or(config.is_stable(), |name| *name == config.name)
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
