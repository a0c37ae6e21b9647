//! Prow against an API server in this process, under a paused clock.

use std::time::Duration;

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use neap_kit::{
    clock::Clock, context::Context, lease::Leadership, manager::Component, watch::Watches,
};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{ProwJob, ProwJobState, ProwOptions, components, definitions, run::JOB_NAMES};

const STEP: Duration = Duration::from_secs(30);

struct Stage {
    client: Client,
    clock: Clock,
    _pocket: Pocket,
    _tasks: JoinSet<()>,
}

impl Stage {
    async fn open(options: ProwOptions) -> Self {
        let pocket = Pocket::open(Options::new(Environment::simulated(7)))
            .await
            .unwrap();
        let client = Client::new(pocket.service(), "default");
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let apis = Api::all(client.clone());
        for definition in definitions().unwrap() {
            apis.create(&PostParams::default(), &definition)
                .await
                .unwrap();
        }
        clock.sleep(Duration::from_secs(5)).await;
        let (watches, watching) = Watches::new(clock);
        let context = Context {
            client: client.clone(),
            watches,
            leadership: Leadership::without_election(clock),
            clock,
        };
        let mut tasks = JoinSet::new();
        let stop = CancellationToken::new();
        let prow = components(&context, &options).unwrap();
        for component in prow.into_iter().chain([Component::from(watching)]) {
            tasks.spawn(component.run(stop.clone()));
        }
        Self {
            client,
            clock,
            _pocket: pocket,
            _tasks: tasks,
        }
    }

    fn prow_jobs(&self) -> Api<ProwJob> {
        Api::default_namespaced(self.client.clone())
    }

    fn jobs(&self) -> Api<Job> {
        Api::default_namespaced(self.client.clone())
    }

    async fn create(&self, name: &str, spec: Value) {
        self.create_with(name, spec, json!({"state": "triggered"}))
            .await;
    }

    async fn create_with(&self, name: &str, spec: Value, status: Value) {
        let prow_job = json!({
            "apiVersion": "prow.k8s.io/v1", "kind": "ProwJob",
            "metadata": {"name": name}, "spec": spec, "status": status,
        });
        let api: Api<kube::api::DynamicObject> = Api::default_namespaced_with(
            self.client.clone(),
            &kube::api::ApiResource::erase::<ProwJob>(&()),
        );
        let prow_job = serde_json::from_value(prow_job).unwrap();
        api.create(&PostParams::default(), &prow_job).await.unwrap();
        self.clock.sleep(STEP).await;
    }

    async fn state(&self, name: &str) -> Option<ProwJobState> {
        self.prow_jobs().get(name).await.unwrap().status?.state
    }

    /// The name of the newest Job of a run, which is the last one by name, too.
    async fn newest_job(&self) -> String {
        let jobs = self.jobs().list(&ListParams::default()).await.unwrap();
        let of_prow = |job: &&Job| !job.owner_references().is_empty();
        let names = jobs.items.iter().filter(of_prow).map(ResourceExt::name_any);
        names.max().unwrap_or_default()
    }

    /// Creates the pod of a Job, which has failed with this message.
    async fn fail_pod(&self, job: &str, message: &str) {
        let of = self.jobs().get(job).await.unwrap();
        let owner = of.controller_owner_ref(&()).unwrap();
        let pod = json!({
            "metadata": {
                "name": format!("{job}-pod"),
                "labels": of.spec.unwrap().template.metadata.unwrap().labels,
                "ownerReferences": [owner],
            },
            "spec": {"containers": [{"name": "a", "image": "a"}]},
        });
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let pod = serde_json::from_value(pod).unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
        let end = json!({"exitCode": 137, "message": message});
        let status = json!({"status": {"phase": "Failed", "containerStatuses": [{
            "name": "a", "image": "a", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": end},
        }]}});
        let pod = format!("{job}-pod");
        pods.patch_status(&pod, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap();
    }

    /// Sets the status of a Job, as its controller does.
    async fn finish(&self, job: &str, condition: Value) {
        let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
        let jobs = self.jobs();
        jobs.patch_status(job, &PatchParams::default(), &patch)
            .await
            .unwrap();
        self.clock.sleep(STEP).await;
    }
}

fn spec() -> Value {
    json!({
        "type": "periodic",
        "agent": "kubernetes",
        "cluster": "build01",
        "job": "periodic-ci-e2e-aws",
        "refs": {"org": "openshift", "repo": "origin", "base_ref": "main"},
        "pod_spec": {"containers": [{
            "name": "test", "image": "registry.example.com/test:1",
            "env": [{"name": "JOB_TYPE", "value": "mine"}],
        }]},
        "unknown_field": {"kept": true},
    })
}

fn condition(kind: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": "True", "reason": reason,
        "lastTransitionTime": "2026-01-01T03:00:00Z",
    })
}

#[tokio::test(start_paused = true)]
async fn a_prow_job_becomes_a_job_and_its_result_is_reported() {
    let stage = Stage::open(ProwOptions::default()).await;
    stage.create("run-1", spec()).await;
    let prow_job = stage.prow_jobs().get("run-1").await.unwrap();
    let status = prow_job.status.clone().unwrap();
    assert_eq!(status.state, Some(ProwJobState::Pending));
    assert!(status.start_time.is_some() && status.pending_time.is_some());
    let build = status.build_id.clone().unwrap();
    assert!(
        build.len() > 15 && build.bytes().all(|it| it.is_ascii_digit()),
        "{build}"
    );

    let job = stage.jobs().get("run-1").await.unwrap();
    let job = serde_json::to_value(&job).unwrap();
    assert_eq!(job["metadata"]["ownerReferences"][0]["kind"], "ProwJob");
    assert_eq!(job["spec"]["backoffLimit"], 0);
    assert_eq!(job["spec"]["activeDeadlineSeconds"], 86_400);
    let template = &job["spec"]["template"];
    assert_eq!(template["spec"]["restartPolicy"], "Never");
    assert_eq!(template["metadata"]["labels"]["prow.k8s.io/id"], "run-1");
    let env = template["spec"]["containers"][0]["env"].as_array().unwrap();
    let value = |name: &str| {
        let found = env.iter().find(|it| it["name"] == name);
        found
            .and_then(|it| it["value"].as_str())
            .unwrap_or_default()
    };
    assert_eq!(value("BUILD_ID"), build);
    assert_eq!(value("JOB_NAME"), "periodic-ci-e2e-aws");
    assert_eq!(
        value("JOB_TYPE"),
        "mine",
        "what a container sets itself stays"
    );
    assert_eq!(value("REPO_NAME"), "origin");
    let job_spec: Value = serde_json::from_str(value("JOB_SPEC")).unwrap();
    assert_eq!(job_spec["prowjobid"], "run-1");

    stage.finish("run-1", condition("Complete", "")).await;
    let status = stage
        .prow_jobs()
        .get("run-1")
        .await
        .unwrap()
        .status
        .unwrap();
    assert_eq!(status.state, Some(ProwJobState::Success));
    assert!(status.completion_time.is_some());
    let raw = stage.client.request::<Value>(
        http::Request::get("/apis/prow.k8s.io/v1/namespaces/default/prowjobs/run-1")
            .body(Vec::new())
            .unwrap(),
    );
    assert_eq!(raw.await.unwrap()["spec"]["unknown_field"]["kept"], true);
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_and_one_that_took_too_long_are_told_apart() {
    let stage = Stage::open(ProwOptions::default()).await;
    let mut slow = spec();
    slow["decoration_config"] = json!({"timeout": "1h0m0s"});
    stage.create("failed", spec()).await;
    stage.create("slow", slow).await;
    let job = stage.jobs().get("slow").await.unwrap();
    assert_eq!(job.spec.unwrap().active_deadline_seconds, Some(3600));
    stage
        .finish("failed", condition("Failed", "BackoffLimitExceeded"))
        .await;
    stage
        .finish("slow", condition("Failed", "DeadlineExceeded"))
        .await;
    assert_eq!(stage.state("failed").await, Some(ProwJobState::Failure));
    assert_eq!(stage.state("slow").await, Some(ProwJobState::Aborted));
    let status = stage
        .prow_jobs()
        .get("failed")
        .await
        .unwrap()
        .status
        .unwrap();
    assert_eq!(
        status.completion_time.unwrap().to_string(),
        "2026-01-01T03:00:00Z"
    );
}

#[tokio::test(start_paused = true)]
async fn an_aborted_prow_job_loses_its_job_and_never_runs_again() {
    let stage = Stage::open(ProwOptions::default()).await;
    stage.create("run", spec()).await;
    let patch = Patch::Merge(json!({"status": {"state": "aborted"}}));
    let parameters = PatchParams::default();
    stage
        .prow_jobs()
        .patch("run", &parameters, &patch)
        .await
        .unwrap();
    stage.clock.sleep(STEP).await;
    let jobs = stage.jobs().list(&ListParams::default()).await.unwrap();
    let left = jobs
        .items
        .iter()
        .filter(|job| job.metadata.deletion_timestamp.is_none());
    assert_eq!(left.count(), 0);
    let status = stage.prow_jobs().get("run").await.unwrap().status.unwrap();
    assert_eq!(status.state, Some(ProwJobState::Aborted));
    assert!(status.completion_time.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_pending_prow_job_whose_job_is_deleted_runs_again() {
    let stage = Stage::open(ProwOptions::default()).await;
    stage.create("run", spec()).await;
    let first = stage.jobs().get("run").await.unwrap().metadata.uid;
    stage
        .jobs()
        .delete("run", &DeleteParams::background())
        .await
        .unwrap();
    stage.clock.sleep(STEP).await;
    let second = stage.jobs().get("run").await.unwrap().metadata.uid;
    assert_ne!(first, second);
    assert_eq!(stage.state("run").await, Some(ProwJobState::Pending));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_run_ends_as_an_error_with_its_reason() {
    let stage = Stage::open(ProwOptions::default()).await;
    let mut without = spec();
    without.as_object_mut().unwrap().remove("pod_spec");
    stage.create("without", without).await;
    let mut invalid = spec();
    invalid["pod_spec"] = json!({"containers": []});
    stage.create("invalid", invalid).await;
    for (name, words) in [
        ("without", "no pod_spec"),
        ("invalid", "can not be created"),
    ] {
        let status = stage.prow_jobs().get(name).await.unwrap().status.unwrap();
        assert_eq!(status.state, Some(ProwJobState::Error), "{name}");
        assert!(
            status.description.clone().unwrap().contains(words),
            "{name}: {status:?}"
        );
        assert!(status.completion_time.is_some(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_of_another_under_the_name_does_not_end_a_run() {
    let stage = Stage::open(ProwOptions::default()).await;
    let taken = json!({
        "metadata": {"name": "run"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}],
        }}},
    });
    let taken = serde_json::from_value(taken).unwrap();
    let jobs = stage.jobs();
    jobs.create(&PostParams::default(), &taken).await.unwrap();
    stage.create("run", spec()).await;
    assert_eq!(stage.state("run").await, Some(ProwJobState::Pending));
    // The end of the other Job is not that of the run.
    stage.finish("run", condition("Failed", "")).await;
    assert_eq!(stage.state("run").await, Some(ProwJobState::Pending));
    let own = stage.newest_job().await;
    assert!(own.starts_with("run-"), "{own}");
    stage.finish(&own, condition("Complete", "")).await;
    assert_eq!(stage.state("run").await, Some(ProwJobState::Success));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_the_node_cut_short_is_started_again_a_few_times() {
    let stage = Stage::open(ProwOptions::default()).await;
    stage.create("run", spec()).await;
    for attempt in 1..JOB_NAMES {
        let name = stage.newest_job().await;
        stage.fail_pod(&name, "the node was stopped").await;
        stage.finish(&name, condition("Failed", "")).await;
        let state = stage.state("run").await;
        assert_eq!(state, Some(ProwJobState::Pending), "{attempt}");
        assert_ne!(stage.newest_job().await, name);
    }
    let last = stage.newest_job().await;
    stage.fail_pod(&last, "the node was stopped").await;
    stage.finish(&last, condition("Failed", "")).await;
    assert_eq!(stage.state("run").await, Some(ProwJobState::Failure));
    // What ended by itself has ended.
    stage.create("other", spec()).await;
    stage.fail_pod("other", "").await;
    stage.finish("other", condition("Failed", "")).await;
    assert_eq!(stage.state("other").await, Some(ProwJobState::Failure));
}

#[tokio::test(start_paused = true)]
async fn other_agents_and_final_states_are_left_alone() {
    let stage = Stage::open(ProwOptions::default()).await;
    let mut jenkins = spec();
    jenkins["agent"] = "jenkins".into();
    stage.create("jenkins", jenkins).await;
    stage
        .create_with("done", spec(), json!({"state": "success"}))
        .await;
    stage.create_with("new", spec(), json!({})).await;
    assert_eq!(stage.state("jenkins").await, Some(ProwJobState::Triggered));
    assert_eq!(stage.state("done").await, Some(ProwJobState::Success));
    assert_eq!(stage.state("new").await, Some(ProwJobState::Pending));
    let jobs = stage.jobs().list(&ListParams::default()).await.unwrap();
    assert_eq!(jobs.items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn only_as_many_run_at_a_time_as_the_job_allows() {
    let stage = Stage::open(ProwOptions::default()).await;
    let mut one = spec();
    one["max_concurrency"] = 1.into();
    stage.create("a", one.clone()).await;
    stage.create("b", one).await;
    assert_eq!(stage.state("b").await, Some(ProwJobState::Triggered));
    stage.finish("a", condition("Complete", "")).await;
    assert_eq!(stage.state("b").await, Some(ProwJobState::Pending));
}

#[tokio::test(start_paused = true)]
async fn injected_faults_keep_jobs_from_starting_or_end_them() {
    let stage = Stage::open(ProwOptions {
        hang: vec!["*-aws".to_owned()],
        fail: vec!["*-gcp".to_owned()],
        ..ProwOptions::default()
    })
    .await;
    let mut gcp = spec();
    gcp["job"] = "periodic-gcp".into();
    stage.create("aws", spec()).await;
    stage.create("gcp", gcp).await;
    assert_eq!(stage.state("aws").await, Some(ProwJobState::Triggered));
    assert_eq!(stage.state("gcp").await, Some(ProwJobState::Error));
}

#[tokio::test(start_paused = true)]
async fn the_log_of_the_pod_is_the_address_of_a_prow_job() {
    let stage = Stage::open(ProwOptions {
        log_server: Some("https://127.0.0.1:6443".to_owned()),
        ..ProwOptions::default()
    })
    .await;
    stage.create("run", spec()).await;
    let pod = json!({
        "metadata": {
            "name": "run-x7k2p",
            "labels": {"created-by-prow": "true", "prow.k8s.io/id": "run"},
        },
        "spec": {"containers": [{"name": "a", "image": "a"}]},
    });
    let pods: Api<Pod> = Api::default_namespaced(stage.client.clone());
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    stage.clock.sleep(STEP).await;
    let status = stage.prow_jobs().get("run").await.unwrap().status.unwrap();
    assert_eq!(status.pod_name.as_deref(), Some("run-x7k2p"));
    let log = "https://127.0.0.1:6443/api/v1/namespaces/default/pods/run-x7k2p/log";
    assert_eq!(status.url.as_deref(), Some(log));
}
