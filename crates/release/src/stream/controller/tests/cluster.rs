//! A server with both controllers, and what Jobs, Prow and users do.

use std::{sync::Arc, time::Duration};

use futures::future::{BoxFuture, FutureExt};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        batch::v1::Job,
        core::v1::{ConfigMap, Namespace, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, Client, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use neap_kit::{
    apply::{Error, Object, Write, WriteObserver},
    clock::Clock,
    context::Context,
    lease::Leadership,
    process::Process,
    watch::Watches,
};
use neap_pocket::{Options, Pocket, environment::Environment};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    api::{ProwJob, ReleasePayload, annotations, release_payload_definition},
    config::ReleaseQualifiers,
    hand_over::{CONFIG_KEY, Owner, Step, map_name, next},
    image_stream::api::ImageStream,
    payload::{
        Phase,
        controller::{PayloadOptions, SharedQualifiers, components as payload_components},
        facts::Timeouts,
        run_keys::RunKeys,
    },
    stream::{
        StreamState,
        controller::{Services, components},
        options::{Program, StreamOptions},
        prow_config::{ProwConfig, SharedProwConfig},
        release_reader::{CachedReader, ReleaseInfo, ReleaseReader},
        upgrade_graph::{SECRET, SECRET_KEY, UpgradeGraph},
    },
};

pub(super) struct TestCluster {
    pub(super) client: Client,
    clock: Clock,
    watches: Watches,
    prow: SharedProwConfig,
    qualifiers: SharedQualifiers,
    audited: Arc<AuditedReasons>,
    _tasks: Mutex<JoinSet<()>>,
    _pocket: Pocket,
}

/// The job configuration of Prow with these periodics.
pub(super) fn periodics(names: &[&str]) -> String {
    let periodic = |name: &&str| {
        format!(
            "- name: {name}\n  agent: kubernetes\n  cluster: build01\n  interval: 24h\n  spec:\n    containers:\n    - image: x\n"
        )
    };
    let all: String = names.iter().map(periodic).collect();
    if all.is_empty() {
        String::new()
    } else {
        format!("periodics:\n{all}")
    }
}

/// The configuration of a nightly stream with these fields.
pub(super) fn integration(fields: Value) -> Value {
    let mut config = json!({"name": "4.21.0-0.nightly", "to": "release"});
    if let (Value::Object(config), Value::Object(fields)) = (&mut config, fields) {
        config.extend(fields);
    }
    config
}

pub(super) fn condition(payload: &ReleasePayload, type_: &str) -> Condition {
    let conditions = &payload.status.as_ref().unwrap().conditions;
    conditions
        .iter()
        .find(|it| it.type_ == type_)
        .unwrap()
        .clone()
}

/// The reasons of writes, as the audit gets them.
#[derive(Debug, Default)]
struct AuditedReasons(Mutex<Vec<String>>);

impl WriteObserver for AuditedReasons {
    fn on_write<'a>(&'a self, write: &'a Write, _: Result<(), &'a Error>) -> BoxFuture<'a, ()> {
        let reason = write.reason.as_deref().map(str::to_owned);
        self.0.lock().extend(reason);
        async {}.boxed()
    }
}

/// A registry with every image but those called `slow`, for which it gives no answer.
#[derive(Debug)]
struct Images;

impl ReleaseReader for Images {
    fn read<'a>(
        &'a self,
        _: &'a str,
        pull_spec: &'a str,
    ) -> BoxFuture<'a, Result<ReleaseInfo, String>> {
        let name = pull_spec.rsplit(':').next().unwrap_or_default().to_owned();
        let previous = vec!["4.10.18".to_owned(), "4.11.10".to_owned()];
        let cli = Some("reg.example/ocp/cli@sha256:ccc".to_owned());
        let info = ReleaseInfo {
            name,
            previous,
            cli,
        };
        async move {
            if info.name == "slow" {
                std::future::pending::<()>().await;
            }
            Ok(info)
        }
        .boxed()
    }
}

impl TestCluster {
    pub(super) async fn open(prow: &str) -> Self {
        Self::with_tools(prow, Program::Neap).await
    }

    pub(super) async fn with_tools(prow: &str, program: Program) -> Self {
        Self::with_options(prow, |options| options.tools.program = program).await
    }

    #[expect(clippy::too_many_lines, reason = "all that a cluster has")]
    pub(super) async fn with_options(prow: &str, change: impl FnOnce(&mut StreamOptions)) -> Self {
        let pocket = Pocket::open(Options::new(Environment::simulated(7)))
            .await
            .unwrap();
        let client = Client::new(pocket.service(), "ocp");
        let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
        for namespace in ["ocp", "origin", "ci", "ci-release"] {
            let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
            let namespaces: Api<Namespace> = Api::all(client.clone());
            namespaces
                .create(&PostParams::default(), &object)
                .await
                .unwrap();
        }
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let prow_jobs = serde_json::from_value(prow_job_definition()).unwrap();
        for definition in [ImageStream::crd(), release_payload_definition(), prow_jobs] {
            definitions
                .create(&PostParams::default(), &definition)
                .await
                .unwrap();
        }
        clock.sleep(Duration::from_millis(100)).await;
        let audited = Arc::<AuditedReasons>::default();
        let process = Process::default().with_write_observer(audited.clone());
        let (watches, watching) = Watches::in_process(clock, process);
        let context = Context {
            client: client.clone(),
            watches: watches.clone(),
            leadership: Leadership::without_election(clock),
            clock,
        };
        let mut options = StreamOptions::new("ocp", "ci-release", "ci");
        options.registry = Some("reg.example".to_owned());
        change(&mut options);
        let writer = context.writer("release-keys");
        let run_keys = if options.dry_run {
            RunKeys::stand_in(writer, clock, "ocp")
        } else {
            RunKeys::new(writer, clock, "ocp", || Some([7; 32]))
        };
        let prow = SharedProwConfig::new(ProwConfig::parse([("jobs.yaml", prow)]).unwrap());
        let services = Services {
            options: Arc::new(options),
            prow: prow.clone(),
            run_keys: run_keys.clone(),
            reader: CachedReader::new(Arc::new(Images)),
        };
        let qualifiers = SharedQualifiers::default();
        let payload_options = PayloadOptions {
            timeouts: Timeouts::default(),
            run_keys,
            qualifiers: qualifiers.clone(),
            job_namespace: Some("ci-release".to_owned()),
        };
        let mut all = components(&context, services).unwrap();
        all.extend(payload_components(&context, payload_options).unwrap());
        let mut tasks = JoinSet::new();
        let stop = CancellationToken::new();
        tasks.spawn(watching.run(stop.clone()));
        for component in all {
            tasks.spawn(component.run(stop.clone()));
        }
        Self {
            client,
            clock,
            watches,
            prow,
            qualifiers,
            audited,
            _tasks: Mutex::new(tasks),
            _pocket: pocket,
        }
    }

    /// Prow gets another job configuration.
    pub(super) fn configure_prow(&self, text: &str) {
        let config = ProwConfig::parse([("jobs.yaml", text)]).unwrap();
        assert!(self.prow.replace(config));
    }

    /// The global qualifiers change.
    pub(super) fn configure_qualifiers(&self, text: &str) {
        assert!(
            self.qualifiers
                .replace(ReleaseQualifiers::parse(text).unwrap())
        );
    }

    pub(super) async fn pass(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    /// The reasons that the audit has for writes.
    pub(super) fn audited(&self) -> Vec<String> {
        self.audited.0.lock().clone()
    }

    pub(super) fn metrics(&self) -> String {
        self.watches.process().metrics()
    }

    /// The number of writes so far.
    pub(super) fn writes(&self) -> u64 {
        let metrics = self.metrics();
        let lines = metrics
            .lines()
            .filter(|line| line.starts_with("neaptide_writes_total{"));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum()
    }

    fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(super) async fn get<K>(&self, name: &str) -> Option<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.get_in("ocp", name).await
    }

    pub(super) async fn get_in<K>(&self, namespace: &str, name: &str) -> Option<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api(namespace).get_opt(name).await.unwrap()
    }

    pub(super) async fn all<K>(&self, namespace: &str) -> Vec<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api(namespace)
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
    }

    pub(super) async fn create_in<K>(&self, namespace: &str, object: &K)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api::<K>(namespace)
            .create(&PostParams::default(), object)
            .await
            .unwrap();
    }

    pub(super) async fn delete_in<K>(&self, namespace: &str, name: &str)
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api::<K>(namespace)
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    /// Creates an ImageStream, with its status.
    pub(super) async fn declare_object(&self, stream: &Value) {
        self.declare_object_in("ocp", stream).await;
    }

    async fn declare_object_in(&self, namespace: &str, stream: &Value) {
        let mut object: ImageStream = serde_json::from_value(with_kind(stream)).unwrap();
        let api: Api<ImageStream> = self.api(namespace);
        let status = object.status.take();
        let created = api.create(&PostParams::default(), &object).await.unwrap();
        if let Some(status) = status {
            // The controller may have written the object by now.
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status(&created.name_any(), &PatchParams::default(), &patch)
                .await
                .unwrap();
        }
    }

    /// Creates the target and the source of a stream, with two images.
    pub(super) async fn declare(&self, config: &Value) {
        self.declare_in("ocp", config).await;
    }

    /// The same in another namespace.
    pub(super) async fn declare_in(&self, namespace: &str, config: &Value) {
        let target = json!({"metadata": {"name": "release"}, "spec": {}});
        self.declare_object_in(namespace, &target).await;
        let tag = |name: &str| {
            let from =
                json!({"kind": "DockerImage", "name": format!("reg.example/ocp/{name}:latest")});
            json!({"name": name, "from": from})
        };
        let source = json!({
            "metadata": {"name": "4.21-art-latest", "annotations": {annotations::CONFIG: config.to_string()}},
            "spec": {"tags": [tag("cli"), tag("etcd")]},
            "status": {"tags": [imported("cli", "sha256:aaa"), imported("etcd", "sha256:bbb")]},
        });
        self.declare_object_in(namespace, &source).await;
    }

    /// The cluster has a registry of its own, which serves the source.
    pub(super) async fn has_registry(&self, host: &str) {
        let api: Api<ImageStream> = self.api("ocp");
        let repository = format!("{host}/ocp/4.21-art-latest");
        let patch = Patch::Merge(json!({"status": {"dockerImageRepository": repository}}));
        api.patch_status("4.21-art-latest", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// A new image of etcd is imported.
    pub(super) async fn new_image(&self, number: usize) {
        let api: Api<ImageStream> = self.api("ocp");
        let digest = format!("sha256:e{number}");
        let tags = json!([imported("cli", "sha256:aaa"), imported("etcd", &digest)]);
        let patch = Patch::Merge(json!({"status": {"tags": tags}}));
        api.patch_status("4.21-art-latest", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(super) async fn annotate(&self, stream: &str, name: &str, value: &str) {
        self.annotate_all(stream, json!({name: value})).await;
    }

    pub(super) async fn annotate_all(&self, stream: &str, annotations: Value) {
        let api: Api<ImageStream> = self.api("ocp");
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        api.patch(stream, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// A step of a hand-over, as the command writes it.
    pub(super) async fn move_to(&self, owner: Owner) {
        let source: ImageStream = self.get("4.21-art-latest").await.unwrap();
        let map = map_name(&source);
        let stored: Option<ConfigMap> = self.get(&map).await;
        let stored = stored.and_then(|map| map.data?.get(CONFIG_KEY).cloned());
        let annotations = match next(&source, stored.as_deref(), owner).unwrap() {
            Step::Done => return,
            Step::Take { annotations } => annotations,
            Step::Release {
                map,
                config,
                annotations,
            } => {
                if let Some(config) = config {
                    let map = json!({"metadata": {"name": map}, "data": {CONFIG_KEY: config}});
                    let map: ConfigMap = serde_json::from_value(map).unwrap();
                    self.create_in("ocp", &map).await;
                }
                annotations
            }
        };
        let api: Api<ImageStream> = self.api("ocp");
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        api.patch("4.21-art-latest", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Gives the target one tag.
    pub(super) async fn tag_release(&self, tag: Value) {
        self.set_releases(json!([tag])).await;
    }

    /// Gives the target these tags.
    pub(super) async fn set_releases(&self, tags: Value) {
        self.set_tags("release", tags).await;
    }

    /// Gives an ImageStream these tags.
    pub(super) async fn set_tags(&self, stream: &str, tags: Value) {
        let api: Api<ImageStream> = self.api("ocp");
        let patch = Patch::Merge(json!({"spec": {"tags": tags}}));
        api.patch(stream, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(super) async fn patch_payload(&self, name: &str, change: Value) {
        let api: Api<ReleasePayload> = self.api("ocp");
        api.patch(name, &PatchParams::default(), &Patch::Merge(change))
            .await
            .unwrap();
    }

    pub(super) async fn override_payload(&self, name: &str, decision: &str, reason: &str) {
        let api: Api<ReleasePayload> = self.api("ocp");
        let decision = json!({"override": decision, "reason": reason});
        let patch = Patch::Merge(json!({"spec": {"payloadOverride": decision}}));
        api.patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// The Job of a release ends.
    pub(super) async fn end_job(&self, name: &str, completed: bool) {
        let now = "2026-01-02T03:04:30Z";
        let condition = |type_: &str, reason: &str, message: &str| {
            json!({
                "type": type_, "status": "True", "reason": reason, "message": message,
                "lastTransitionTime": now, "lastProbeTime": now,
            })
        };
        let status = if completed {
            json!({
                "startTime": now, "completionTime": now, "succeeded": 1,
                "conditions": [condition("SuccessCriteriaMet", "CompletionsReached", ""), condition("Complete", "CompletionsReached", "")],
            })
        } else {
            let message = "the image of etcd is missing";
            json!({
                "startTime": now, "failed": 4,
                "conditions": [
                    condition("FailureTarget", "BackoffLimitExceeded", message),
                    condition("Failed", "BackoffLimitExceeded", message),
                ],
            })
        };
        let api: Api<Job> = self.api("ci-release");
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Prow ends a run.
    pub(super) async fn end_run(&self, name: &str, state: &str) {
        let now = self.clock.now();
        let now = jiff::Timestamp::from_second(now.as_second())
            .unwrap()
            .to_string();
        let url = format!("https://prow.example.com/{name}");
        let status = json!({"state": state, "startTime": now, "completionTime": now, "url": url});
        self.report_run(name, status).await;
    }

    /// Prow says something about a run.
    pub(super) async fn report_run(&self, name: &str, status: Value) {
        let api: Api<ProwJob> = self.api("ci");
        let patch = Patch::Merge(json!({"status": status}));
        api.patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(super) async fn phase(&self, name: &str) -> Phase {
        let payload: ReleasePayload = self.get(name).await.unwrap();
        Phase::of_payload(&payload)
    }

    /// The state of the nightly stream.
    pub(super) async fn state(&self) -> StreamState {
        let source: ImageStream = self.get("4.21-art-latest").await.unwrap();
        let annotations = source.metadata.annotations.unwrap();
        serde_json::from_str(&annotations[annotations::STREAM_STATE]).unwrap()
    }

    /// The recorded results of upgrades.
    pub(super) async fn upgrades(&self) -> UpgradeGraph {
        let secret: Secret = self.get(SECRET).await.unwrap();
        UpgradeGraph::read(&secret.data.unwrap()[SECRET_KEY].0).unwrap()
    }

    /// The tags of the target.
    pub(super) async fn releases(&self) -> Vec<String> {
        let target: ImageStream = self.get("release").await.unwrap();
        target.spec.tags.into_iter().map(|tag| tag.name).collect()
    }
}

fn imported(tag: &str, digest: &str) -> Value {
    let item = json!({
        "created": "2026-01-02T03:00:00Z", "image": digest, "generation": 1,
        "dockerImageReference": format!("reg.example/ocp/{tag}@{digest}"),
    });
    json!({"tag": tag, "items": [item]})
}

fn with_kind(stream: &Value) -> Value {
    let mut stream = stream.clone();
    stream["apiVersion"] = json!("image.openshift.io/v1");
    stream["kind"] = json!("ImageStream");
    stream
}

/// As Prow installs it: without a status subresource.
fn prow_job_definition() -> Value {
    json!({
        "metadata": {
            "name": "prowjobs.prow.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/test-infra/pull/8669"},
        },
        "spec": {
            "group": "prow.k8s.io", "scope": "Namespaced",
            "names": {"plural": "prowjobs", "singular": "prowjob", "kind": "ProwJob", "listKind": "ProwJobList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}
