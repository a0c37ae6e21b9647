//! What holds for all streams: what was decided is carried out on the facts, and decided again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kube::ResourceExt;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    api::{ReleasePayload, annotations, labels},
    config::{ANNOTATION_LIMIT, parse},
    image_stream::api::{ImageStream, TagReference},
    payload::{Phase, run_token::RunKey},
    stream::{
        decide::{Decision, StreamChange, decide},
        facts::Facts,
        options::StreamOptions,
        prow_config::{Periodic, ProwConfig},
    },
};

const STREAM: &str = "4.21.0-0.nightly";
const NEWEST_PUBLISHED: &str = "latest";
/// Mirror, payload and Job follow each other, and a removal may come first.
const MAX_PASSES: usize = 6;

fn now() -> Timestamp {
    "2026-01-02T04:00:00Z".parse().unwrap()
}

fn stream(value: &Value) -> Arc<ImageStream> {
    let mut value = value.clone();
    value["apiVersion"] = json!("image.openshift.io/v1");
    value["kind"] = json!("ImageStream");
    Arc::new(serde_json::from_value(value).unwrap())
}

/// A release as a generator chooses it.
#[derive(Debug, Clone)]
struct Cut {
    /// Minutes before now; also its place among the others.
    age: u32,
    phase: Phase,
    has_payload: bool,
    has_mirror: bool,
    hash: u8,
}

impl Cut {
    fn name(&self) -> String {
        format!("{STREAM}-2026-01-01-{:06}", 900_000 - self.age)
    }

    fn tag(&self) -> Value {
        let created = now().checked_sub(jiff::SignedDuration::from_mins(self.age.into()));
        json!({"name": self.name(), "annotations": {
            annotations::NAME: STREAM, annotations::SOURCE: "ocp/source",
            annotations::CREATION_TIMESTAMP: created.unwrap().to_string(),
            annotations::PHASE: self.phase.as_str(), annotations::HASH: hash(self.hash),
        }})
    }

    fn payload(&self) -> Arc<ReleasePayload> {
        let holds: &[&str] = match self.phase {
            Phase::Pending => &[],
            Phase::Ready => &["PayloadCreated"],
            Phase::Accepted => &["PayloadCreated", "PayloadAccepted"],
            Phase::Rejected => &["PayloadCreated", "PayloadRejected"],
            Phase::Failed => &["PayloadFailed"],
        };
        let conditions = holds.iter().map(|type_| {
            json!({
                "type": type_, "status": "True", "reason": "Said", "message": "said",
                "lastTransitionTime": "2026-01-02T00:00:00Z",
            })
        });
        let jobs = json!([{"name": "aws", "jobName": "periodic-aws", "maxRetries": 1}]);
        let object = json!({
            "apiVersion": "release.openshift.io/v1alpha1", "kind": "ReleasePayload",
            "metadata": {"name": self.name(), "namespace": "ocp", "uid": self.name()},
            "spec": crate::payload::samples::payload(&json!({})).spec,
            "status": {
                "conditions": conditions.collect::<Vec<_>>(), "blockingJobResults": jobs,
            },
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn mirror(&self) -> (String, Arc<ImageStream>) {
        let name = format!("source{}", self.name().trim_start_matches(STREAM));
        let mirror = json!({
            "metadata": {
                "name": name, "namespace": "ocp",
                "annotations": {annotations::HASH: hash(self.hash)},
            },
            "spec": {},
        });
        (name, stream(&mirror))
    }
}

fn hash(images: u8) -> String {
    let digest = digest(images);
    crate::names::input_hash([digest.as_str()])
}

fn digest(images: u8) -> String {
    format!("sha256:{images:064}")
}

fn phases() -> impl Strategy<Value = Phase> {
    prop::sample::select(vec![
        Phase::Pending,
        Phase::Ready,
        Phase::Accepted,
        Phase::Rejected,
        Phase::Failed,
    ])
}

prop_compose! {
    fn cuts()(
        chosen in prop::collection::btree_map(1_u32..5000, (phases(), any::<[bool; 2]>(), 0_u8..3), 0..12),
    ) -> Vec<Cut> {
        chosen.into_iter().map(|(age, (phase, [has_payload, has_mirror], hash))| Cut {
            age, phase, has_payload, has_mirror, hash,
        }).collect()
    }
}

prop_compose! {
    fn any_facts()(
        cuts in cuts(),
        images in 0_u8..3,
        published in any::<Option<prop::sample::Index>>(),
        expires in any::<bool>(),
        max_unready in 0_i64..3,
        is_verified in any::<bool>(),
        paused in any::<bool>(),
    ) -> Facts {
        let mut config = json!({
            "name": STREAM, "to": "target", "maxUnreadyReleases": max_unready,
            "publish": {"newest": {"tagRef": {"name": NEWEST_PUBLISHED}}},
        });
        if expires {
            config["expires"] = json!("24h");
        }
        if is_verified {
            config["verify"] = json!({"aws": {"prowJob": {"name": "periodic-aws"}, "maxRetries": 1}});
        }
        let mut source = json!({
            "metadata": {"name": "source", "namespace": "ocp", "uid": "source", "generation": 3,
                "annotations": {annotations::CONFIG: config.to_string()}},
            "spec": {"tags": [{"name": "cli", "from": {"kind": "DockerImage", "name": "reg.example/cli:1"}}]},
            "status": {"tags": [{"tag": "cli", "items": [{
                "created": "2026-01-01T00:00:00Z", "image": digest(images), "generation": 3,
                "dockerImageReference": format!("reg.example/cli@{}", digest(images)),
            }]}]},
        });
        if paused {
            source["metadata"]["annotations"][annotations::PAUSED] = json!("a user");
        }
        let mut tags: Vec<_> = cuts.iter().map(Cut::tag).collect();
        if let Some(published) = published.filter(|_| !cuts.is_empty()) {
            let name = published.get(&cuts).name();
            tags.push(json!({"name": NEWEST_PUBLISHED, "from": {"kind": "ImageStreamTag", "name": name}}));
        }
        let target = json!({
            "metadata": {"name": "target", "namespace": "ocp", "uid": "target", "generation": 5},
            "spec": {"tags": tags},
        });
        facts(&config, &source, &target, &cuts)
    }
}

fn facts(config: &Value, source: &Value, target: &Value, cuts: &[Cut]) -> Facts {
    let periodic = Periodic {
        name: "periodic-aws".to_owned(),
        cluster: "build01".to_owned(),
        spec: Some(json!({"containers": [{"image": "x"}]})),
        ..Periodic::default()
    };
    let mut options = StreamOptions::new("ocp", "ci-release", "ci");
    options.registry = Some("reg.example".to_owned());
    let with = |is: fn(&Cut) -> bool| cuts.iter().filter(move |cut| is(cut));
    Facts {
        options: Arc::new(options),
        source: stream(source),
        config: Ok(Arc::new(
            parse(&config.to_string(), ANNOTATION_LIMIT).unwrap(),
        )),
        target: Some(stream(target)),
        payloads: with(|cut| cut.has_payload)
            .map(|cut| (cut.name(), cut.payload()))
            .collect(),
        proved: with(|cut| cut.has_payload).map(Cut::name).collect(),
        mirrors: with(|cut| cut.has_mirror).map(Cut::mirror).collect(),
        jobs: BTreeMap::new(),
        runs: BTreeMap::new(),
        periodic_runs: BTreeMap::new(),
        prow: Arc::new(ProwConfig {
            periodics: [(periodic.name.clone(), periodic)].into(),
            scheduler_enabled: false,
        }),
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
        run_key: RunKey::new(&[7; 32]).unwrap(),
        now: now(),
    }
}

/// Carries a decision out, as the API server would show it.
fn apply(facts: &mut Facts, decision: Decision) {
    for change in decision.changes {
        match change {
            StreamChange::UpdateStream {
                stream,
                tags,
                annotations,
                ..
            } => {
                let mut after = ImageStream::clone(&stream);
                if let Some(tags) = tags {
                    after.spec.tags = tags;
                }
                let all = after.annotations_mut();
                for (name, value) in annotations {
                    match value {
                        Some(value) => all.insert(name, value),
                        None => all.remove(&name),
                    };
                }
                if stream.name_any() == "source" {
                    facts.source = Arc::new(after);
                } else {
                    facts.target = Some(Arc::new(after));
                }
            }
            StreamChange::CreateMirror(mirror) => {
                facts.mirrors.insert(mirror.name_any(), Arc::new(*mirror));
            }
            StreamChange::CreatePayload(mut payload) => {
                payload.metadata.uid = payload.metadata.name.clone();
                if facts.run_key.proves(&payload) {
                    facts.proved.insert(payload.name_any());
                }
                facts
                    .payloads
                    .insert(payload.name_any(), Arc::new(*payload));
            }
            StreamChange::CreateJob(job) => {
                facts.jobs.insert(job.name_any(), Arc::new(*job));
            }
            StreamChange::CreateRun(run) => {
                let tag = run.labels()[labels::PAYLOAD].clone();
                facts.runs.entry(tag).or_default().insert(run.name_any());
            }
        }
    }
}

/// What a decision creates, and the tags that it leaves, in an order that does not depend on the facts'.
fn effects(decision: &Decision) -> (BTreeSet<String>, BTreeMap<String, TagReference>) {
    let (mut created, mut tags) = (BTreeSet::new(), BTreeMap::new());
    for change in &decision.changes {
        match change {
            StreamChange::UpdateStream {
                tags: Some(after), ..
            } => {
                tags.extend(after.iter().map(|tag| (tag.name.clone(), tag.clone())));
            }
            StreamChange::UpdateStream { .. } => {}
            created_object => {
                created.insert(created_object.to_string());
            }
        }
    }
    (created, tags)
}

fn published(facts: &Facts) -> Option<String> {
    let target = facts.target.as_ref()?;
    let tag = target.spec.tag(NEWEST_PUBLISHED)?;
    Some(tag.from.as_ref()?.name.clone())
}

proptest! {
    #[test]
    fn with_unchanged_facts_a_later_pass_writes_nothing(facts in any_facts()) {
        let mut facts = facts;
        for _ in 0..MAX_PASSES {
            let decision = decide(&facts);
            apply(&mut facts, decision);
        }
        let last = decide(&facts);
        let changes: Vec<_> = last.changes.iter().map(ToString::to_string).collect();
        prop_assert_eq!(changes, Vec::<String>::new());
        prop_assert_eq!(last.events, vec![]);
    }

    #[test]
    fn the_decision_does_not_depend_on_the_order_of_tags(facts in any_facts(), seed in any::<u64>()) {
        let decision = decide(&facts);
        let mut shuffled = facts;
        let mut target = ImageStream::clone(shuffled.target.as_ref().unwrap());
        target.spec.tags.sort_by_cached_key(|tag| {
            crate::names::short_hash(&format!("{seed}{}", tag.name))
        });
        shuffled.target = Some(Arc::new(target));
        let other = decide(&shuffled);
        prop_assert_eq!(effects(&decision), effects(&other));
        prop_assert_eq!(decision.state, other.state);
        prop_assert_eq!(decision.requeue_after, other.requeue_after);
    }

    #[test]
    fn a_published_tag_never_moves_to_an_older_release(facts in any_facts()) {
        let mut facts = facts;
        for _ in 0..MAX_PASSES {
            let before = published(&facts);
            let decision = decide(&facts);
            apply(&mut facts, decision);
            let after = published(&facts);
            let target = facts.target.as_ref().unwrap();
            if let (Some(before), Some(after)) = (before, after)
                && target.spec.tag(&before).is_some()
            {
                // The names of these releases are in the order of their times.
                prop_assert!(after >= before, "from {before} to {after}");
            }
        }
    }

    #[test]
    fn nothing_is_created_while_a_stream_is_paused_but_for_releases_that_exist(facts in any_facts()) {
        let is_paused = facts.source.annotations().contains_key(annotations::PAUSED);
        let count = |facts: &Facts| {
            let tags = &facts.target.as_ref().unwrap().spec.tags;
            tags.iter().filter(|tag| tag.name.starts_with(STREAM)).count()
        };
        let mut after = facts.clone();
        let decision = decide(&facts);
        apply(&mut after, decision);
        if is_paused {
            prop_assert!(count(&after) <= count(&facts));
        }
    }
}
