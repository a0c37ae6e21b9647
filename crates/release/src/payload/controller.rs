//! The controller of ReleasePayloads: gathers the facts, decides, writes the status.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ContainerStatus, Pod},
};
use kube::{Api, Client, api::ListParams};
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::{Enqueuer, Outcome},
    key::Key,
    manager::Component,
    watch::{Cache, Change, Index, Selection, WatchesStopped},
};
use tracing::{Instrument, info_span};

use super::{
    decide::{Decision, decide},
    facts::{Claim, Facts, JobFacts, LegacyFacts, RunFacts, Timeouts, claim},
    metrics::{PayloadMeter, Verdict},
    run_keys::{REREAD, RunKeys},
    run_token::RunKey,
};
use crate::{
    api::{
        CreationJobStatus, ProwJob, ProwJobRun, ReleaseJobResult, ReleasePayload,
        VerificationDataSource, annotations, labels,
    },
    config::{ReleaseQualifiers, Reloaded},
    image_stream::api::ImageStream,
};

/// The name of the controller and of its field manager.
pub const NAME: &str = "release-payloads";
/// The source of its Events.
const EVENT_SOURCE: &str = "release-payload-controller";
/// How many failed pods of a Job are looked at.
const FAILED_PODS: u32 = 50;
/// The most characters of a termination message that are kept.
const MAX_MESSAGE: usize = 4096;

/// The global qualifiers as they were last loaded.
pub type SharedQualifiers = Reloaded<ReleaseQualifiers>;

/// What the controller needs besides the context.
#[derive(Debug, Clone)]
pub struct PayloadOptions {
    /// How long things may take.
    pub timeouts: Timeouts,
    /// The keys of run tokens.
    pub run_keys: RunKeys,
    /// The global qualifiers.
    pub qualifiers: SharedQualifiers,
    /// The namespace of the Jobs that create releases: no Job of another one counts. None if it is not known; the
    /// namespace is then the one that the payload names.
    pub job_namespace: Option<String>,
}

/// The controller of all ReleasePayloads, and what wakes it when the qualifiers have changed.
pub fn components(
    context: &Context,
    options: PayloadOptions,
) -> Result<Vec<Component>, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, NAME);
    let tools = builder.tools().with_event_source(context, EVENT_SOURCE);
    let sources = PayloadSources::watch(&mut builder, context, tools, options)?;
    let qualifiers = qualifiers(&sources, builder.enqueuer());
    let controller = PayloadController {
        meter: PayloadMeter::register(context, sources.payloads.clone()),
        sources,
    };
    Ok(vec![
        builder.build(controller, PayloadController::reconcile),
        qualifiers,
    ])
}

/// The component that enqueues all payloads when the qualifiers have changed: their summary depends on them.
fn qualifiers(sources: &PayloadSources, enqueuer: Enqueuer<Key>) -> Component {
    let payloads = sources.payloads.clone();
    let qualifiers = sources.options.qualifiers.clone();
    Component::new("release-qualifiers", move |stop| async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = qualifiers.changed() => {}
            }
            for payload in payloads.list("") {
                enqueuer.enqueue(Key::of(&*payload));
            }
        }
    })
}

/// Where facts about payloads come from.
pub(crate) struct PayloadSources {
    pub(crate) payloads: Cache<ReleasePayload>,
    all_runs: Cache<ProwJobRun>,
    runs: Index<ProwJobRun>,
    jobs: Cache<Job>,
    tools: Tools,
    client: Client,
    options: PayloadOptions,
}

impl PayloadSources {
    /// Watches payloads and what their verdicts depend on; a change enqueues the payloads that it concerns.
    pub(crate) fn watch(
        builder: &mut ControllerBuilder,
        context: &Context,
        tools: Tools,
        options: PayloadOptions,
    ) -> Result<Self, WatchesStopped> {
        let payloads: Cache<ReleasePayload> = builder.primary()?;
        let runs = watch_runs(builder, context)?;
        builder.on_change(&runs, |change: &Change<ProwJobRun>, enqueuer| {
            let (Change::Added(run) | Change::Modified { new: run, .. } | Change::Deleted(run)) =
                change;
            if let Some(key) = payload_of_run(run) {
                enqueuer.enqueue(key);
            }
        });
        let jobs: Cache<Job> = builder.cache()?;
        builder.on_change(&jobs, |change: &Change<Job>, enqueuer| {
            let (Change::Added(job) | Change::Modified { new: job, .. } | Change::Deleted(job)) =
                change;
            if let Some(key) = payload_of_job(job) {
                enqueuer.enqueue(key);
            }
        });
        Ok(Self {
            payloads,
            runs: runs_by_payload(&runs),
            all_runs: runs,
            jobs,
            tools,
            client: context.client.clone(),
            options,
        })
    }

    /// Resolves once all caches are filled.
    pub(crate) async fn synced(&self) {
        self.payloads.synced().await;
        self.all_runs.synced().await;
        self.jobs.synced().await;
    }

    /// The key of the payload's runs, if it needs one. An error says that the key is missing.
    async fn run_key(
        &self,
        payload: &ReleasePayload,
    ) -> Result<Result<Option<RunKey>, String>, Error> {
        let all = payload.metadata.annotations.as_ref();
        let Some(id) = all.and_then(|all| all.get(annotations::RUN_KEY)) else {
            return Ok(Ok(None));
        };
        let keys = &self.options.run_keys;
        Ok(match keys.find(id).await? {
            Some(key) => Ok(Some(key)),
            None => Err(format!(
                "nothing new is known of its runs: the Secret {} lacks the key {id} that proves them; restore the \
                 Secret, or decide with neap release accept or reject",
                keys.secret()
            )),
        })
    }

    /// The runs of a payload that count, and the names of ProwJobs that only claim to be.
    fn runs_of(
        &self,
        payload: &ReleasePayload,
        run_key: Option<&RunKey>,
    ) -> (Vec<RunFacts>, Vec<String>) {
        let prow = &payload.spec.payload_creation_config.prow_coordinates;
        let tag = payload.metadata.name.as_deref().unwrap_or_default();
        let (mut runs, mut forged) = (Vec::new(), Vec::new());
        for run in self.runs.get(tag) {
            // A release of another namespace may have the same name; its runs claim nothing here.
            let source = run.annotation(annotations::SOURCE);
            let source = source.and_then(|source| source.split_once('/'));
            let is_elsewhere =
                source.is_some_and(|(it, _)| payload.metadata.namespace.as_deref() != Some(it));
            if is_elsewhere || run.namespace() != prow.namespace {
                continue;
            }
            match claim(payload, &run, run_key) {
                Claim::Genuine(run) => runs.push(*run),
                Claim::Forged => forged.push(run.name().to_owned()),
                Claim::Ignored => {}
            }
        }
        (runs, forged)
    }

    /// The facts about a payload. Without the key that proves its runs, everything else is still decided.
    pub(crate) async fn facts(&self, payload: Arc<ReleasePayload>) -> Result<Facts, Error> {
        let (runs, forged, unproved) = match self.run_key(&payload).await? {
            Ok(key) => {
                let (runs, forged) = self.runs_of(&payload, key.as_ref());
                (runs, forged, None)
            }
            Err(why) => (Vec::new(), Vec::new(), Some(why)),
        };
        let status = payload.status.clone().unwrap_or_default();
        let config = &payload.spec.payload_creation_config;
        let creation = &config.release_creation_coordinates;
        let creation = Key::new(&creation.namespace, &creation.release_creation_job_name);
        let mirror = &config.release_mirror_coordinates;
        let mirror = Key::new(&mirror.namespace, &mirror.release_mirror_job_name);
        let creation_job = self
            .job(
                &payload,
                &recorded_or(&status.release_creation_job_result, creation),
                &status.release_creation_job_result,
            )
            .await?;
        let mirror_job = self
            .job(
                &payload,
                &recorded_or(&status.release_mirror_job_result, mirror),
                &status.release_mirror_job_result,
            )
            .await?;
        Ok(Facts {
            creation_job,
            mirror_job,
            runs,
            forged,
            unproved,
            legacy: self.legacy(&payload).await?,
            qualifiers: self.options.qualifiers.get(),
            now: self.tools.clock.now(),
            timeouts: self.options.timeouts,
            payload,
        })
    }

    async fn job(
        &self,
        payload: &ReleasePayload,
        key: &Key,
        recorded: &ReleaseJobResult,
    ) -> Result<Option<JobFacts>, Error> {
        let job_namespace = self.options.job_namespace.as_deref();
        let job = self.jobs.get(key);
        let Some(job) = job.filter(|job| is_job_of(payload, job, job_namespace)) else {
            return Ok(None);
        };
        // A payload of another controller has Jobs without a token.
        let all = payload.metadata.annotations.as_ref();
        let is_own = all.is_some_and(|all| all.contains_key(annotations::RUN_KEY));
        if is_own && !self.options.run_keys.prove_job(&job).await? {
            return Ok(None);
        }
        let facts = JobFacts::of(&job, None);
        if facts.failed.is_none() {
            return Ok(Some(facts));
        }
        // What the pods said is read once; they are gone later.
        let pod_message = if recorded.status == CreationJobStatus::Failed {
            Some(recorded.message.clone()).filter(|message| !message.is_empty())
        } else {
            self.pod_message(&job).await?
        };
        Ok(Some(JobFacts {
            pod_message,
            ..facts
        }))
    }

    /// The termination message of the pod of `job` that failed last.
    async fn pod_message(&self, job: &Job) -> Result<Option<String>, Error> {
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
        let parameters = ListParams::default()
            .labels(&format!("controller-uid={uid}"))
            .limit(FAILED_PODS);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let pods = pods
            .list(&parameters)
            .await
            .map_err(|source| Error::Refused {
                key: Key::of(job),
                source: Box::new(source),
            })?;
        Ok(last_message(&pods.items))
    }

    async fn legacy(&self, payload: &ReleasePayload) -> Result<LegacyFacts, Error> {
        let config = &payload.spec.payload_verification_config;
        let legacy = VerificationDataSource::ImageStreamTagAnnotation;
        if config.payload_verification_data_source != Some(legacy) {
            return Ok(LegacyFacts::NotUsed);
        }
        let at = &payload.spec.payload_coordinates;
        let key = Key::new(&at.namespace, &at.imagestream_name);
        let Some(target) = self.tools.writer.find::<ImageStream>(&key).await? else {
            return Ok(LegacyFacts::NoTarget);
        };
        let Some(tag) = target.spec.tag(&at.imagestream_tag_name) else {
            return Ok(LegacyFacts::NoTag);
        };
        let text = tag.annotations.get(annotations::VERIFY).cloned();
        Ok(LegacyFacts::Annotation(text.unwrap_or_default()))
    }
}

/// The cache of all ProwJobs that name a payload.
pub fn watch_runs(
    builder: &mut ControllerBuilder,
    context: &Context,
) -> Result<Cache<ProwJobRun>, WatchesStopped> {
    let selection = Selection {
        labels: Some(labels::PAYLOAD.to_owned()),
        fields: None,
    };
    let api: Api<ProwJob> = Api::all(context.client.clone());
    builder.compact(api, selection)
}

/// The ProwJobs by the tag of their payload.
pub fn runs_by_payload(runs: &Cache<ProwJobRun>) -> Index<ProwJobRun> {
    Index::new(runs, |run| {
        run.label(labels::PAYLOAD)
            .map(str::to_owned)
            .into_iter()
            .collect()
    })
}

/// The payload that a ProwJob names: its tag, in the namespace of the source.
fn payload_of_run(run: &ProwJobRun) -> Option<Key> {
    let (namespace, _) = run.annotation(annotations::SOURCE)?.split_once('/')?;
    Some(Key::new(namespace, run.label(labels::PAYLOAD)?))
}

fn payload_of_job(job: &Job) -> Option<Key> {
    let all = job.metadata.annotations.as_ref()?;
    let (namespace, _) = all.get(annotations::TARGET)?.split_once('/')?;
    Some(Key::new(namespace, all.get(annotations::RELEASE_TAG)?))
}

/// Whether a Job is one of the release controller for this payload: it is in the namespace of such Jobs, if that
/// is known, and names the release. Every user may run a Job somewhere, and name it in a payload.
fn is_job_of(payload: &ReleasePayload, job: &Job, job_namespace: Option<&str>) -> bool {
    let at = &payload.spec.payload_coordinates;
    let target = format!("{}/{}", at.namespace, at.imagestream_name);
    let all = job.metadata.annotations.as_ref();
    let says = |name: &str, wanted: &str| {
        all.and_then(|all| all.get(name)).map(String::as_str) == Some(wanted)
    };
    job_namespace.is_none_or(|wanted| job.metadata.namespace.as_deref() == Some(wanted))
        && says(annotations::TARGET, &target)
        && says(annotations::RELEASE_TAG, &at.imagestream_tag_name)
}

struct PayloadController {
    sources: PayloadSources,
    meter: PayloadMeter,
}

impl PayloadController {
    /// One look at a payload; a span of its trace for each part.
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let span = info_span!("release payload", %key);
        self.look(key).instrument(span).await
    }

    async fn look(&self, key: Key) -> Result<Outcome, Error> {
        let sources = &self.sources;
        let Some(payload) = sources.payloads.get(&key) else {
            return Ok(Outcome::Gone);
        };
        if payload.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        let gathering = sources.facts(payload);
        let facts = gathering.instrument(info_span!("facts")).await?;
        let decision = info_span!("decide").in_scope(|| decide(&facts));
        for warning in &decision.warnings {
            tracing::debug!(%key, "{warning}");
        }
        let acting = self.act(&facts, &decision);
        acting.instrument(info_span!("act")).await?;
        let search = facts.unproved.as_ref().map(|_| REREAD);
        let requeue_after = decision.requeue_after.into_iter().chain(search).min();
        Ok(requeue_after.map_or(Outcome::Done, Outcome::RequeueAfter))
    }

    async fn act(&self, facts: &Facts, decision: &Decision) -> Result<(), Error> {
        let before = &*facts.payload;
        let after = ReleasePayload {
            status: Some(decision.status.clone()),
            ..before.clone()
        };
        let tools = &self.sources.tools;
        let reason = decision.override_taken.as_deref();
        let stating = reason.map(|text| tools.with_reason(text));
        let tools = stating.as_ref().unwrap_or(tools);
        tools.update_status(before, &after).await?;
        if before == &after {
            return Ok(());
        }
        self.meter
            .emit(&Verdict::of(before, decision.phase, facts.now));
        for event in &decision.events {
            self.sources.tools.record(before, event).await;
        }
        Ok(())
    }
}

fn recorded_or(recorded: &ReleaseJobResult, spec: Key) -> Key {
    let at = &recorded.coordinates;
    if at.name.is_empty() || at.namespace.is_empty() {
        spec
    } else {
        Key::new(&at.namespace, &at.name)
    }
}

/// The message of the container `build`, or of an init container, that ended last in a failed pod.
fn last_message(pods: &[Pod]) -> Option<String> {
    let failed = pods.iter().filter_map(|pod| {
        let status = pod.status.as_ref()?;
        (status.phase.as_deref() == Some("Failed")).then_some(status)
    });
    let messages = failed.flat_map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        let build = status
            .container_statuses
            .iter()
            .flatten()
            .filter(|it| it.name == "build");
        init.chain(build).filter_map(termination)
    });
    let (_, message) = messages.max_by(|a, b| a.0.cmp(&b.0))?;
    Some(message.chars().take(MAX_MESSAGE).collect())
}

fn termination(container: &ContainerStatus) -> Option<(Option<jiff::Timestamp>, String)> {
    let ended = container.state.as_ref()?.terminated.as_ref()?;
    let message = ended
        .message
        .clone()
        .filter(|message| !message.is_empty())?;
    Some((ended.finished_at.as_ref().map(|time| time.0), message))
}
