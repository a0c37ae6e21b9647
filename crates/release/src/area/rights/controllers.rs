//! The rights of both controllers. Each does all it can do under its roles while the other one runs as an
//! administrator.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{ListParams, Patch, PatchParams};
use neap_emulators::prow;
use neap_kit::manager::Component;

use super::*;
use crate::{
    api::{ProwJob, ReleasePayload, annotations, release_payload_definition},
    payload::{
        controller::{self as payloads, PayloadOptions, SharedQualifiers},
        facts::Timeouts,
        run_keys::RunKeys,
    },
    stream::{
        controller::{self as streams, Services},
        options::StreamOptions,
        prow_config::{Periodic, ProwConfig, SharedProwConfig},
        registry_reader::RegistryReader,
        release_reader::CachedReader,
    },
};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
/// Repeated Events are counted, which the test of imports does.
const COUNTED_EVENTS: [(&str, &str, &str); 2] = [("", "events", "get"), ("", "events", "update")];
/// The Events of the release controller are about invalid configurations and refused writes, and the Secret of
/// upgrades is updated when an upgrade job has ended; nothing of that is here.
const NOT_HERE: [(&str, &str, &str); 4] = [
    ("", "secrets", "update"),
    ("", "events", "create"),
    ("", "events", "get"),
    ("", "events", "update"),
];

/// Both controllers, each with its own client.
struct Controllers<'a> {
    fixture: &'a Fixture,
    _tasks: JoinSet<()>,
}

impl<'a> Controllers<'a> {
    async fn start(fixture: &'a Fixture, of_streams: &Client, of_payloads: &Client) -> Self {
        let definitions = prow::definitions().unwrap();
        for definition in definitions
            .into_iter()
            .chain([release_payload_definition()])
        {
            fixture
                .create(serde_json::to_value(definition).unwrap())
                .await;
        }
        fixture.clock.sleep(SECOND).await;
        let mut tasks = JoinSet::new();
        let mut context = |client: &Client| {
            let (watches, watching) = Watches::new(fixture.clock);
            tasks.spawn(watching.run(CancellationToken::new()));
            Context {
                client: client.clone(),
                watches,
                leadership: Leadership::without_election(fixture.clock),
                clock: fixture.clock,
            }
        };
        let (of_streams, of_payloads) = (context(of_streams), context(of_payloads));
        let mut all = stream_components(&of_streams, fixture.registry.clone());
        all.extend(payload_components(&of_payloads));
        for component in all {
            tasks.spawn(component.run(CancellationToken::new()));
        }
        Self {
            fixture,
            _tasks: tasks,
        }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.fixture.admin.clone(), NAMESPACE)
    }

    async fn patch_stream(&self, name: &str, patch: Value) {
        let parameters = PatchParams::default();
        let api = self.api::<ImageStream>();
        api.patch(name, &parameters, &Patch::Merge(patch))
            .await
            .unwrap();
    }

    /// A new image is imported. Returns the release that is cut.
    async fn import(&self, number: u32) -> String {
        let digest = format!("sha256:{number:064}");
        let item = json!({
            "created": "2026-01-01T00:00:00Z", "image": digest, "generation": 1,
            "dockerImageReference": format!("{HOST}/ocp/cli@{digest}"),
        });
        let status = json!({"status": {"tags": [{"tag": "cli", "items": [item]}]}});
        let api = self.api::<ImageStream>();
        let parameters = PatchParams::default();
        api.patch_status("source", &parameters, &Patch::Merge(status))
            .await
            .unwrap();
        self.fixture.clock.sleep(SECOND * 10).await;
        let target = api.get("target").await.unwrap();
        let tags = target.spec.tags.iter().map(|tag| tag.name.clone());
        tags.max().unwrap()
    }

    async fn end_job(&self, name: &str, passes: bool) {
        let now = "2026-01-01T00:00:30Z";
        let condition = |type_: &str| {
            json!({
                "type": type_, "status": "True", "reason": "Ended", "message": "it ended",
                "lastTransitionTime": now, "lastProbeTime": now,
            })
        };
        let conditions = if passes {
            ["SuccessCriteriaMet", "Complete"].map(condition)
        } else {
            ["FailureTarget", "Failed"].map(condition)
        };
        let mut status = json!({"startTime": now, "conditions": conditions});
        if passes {
            status["completionTime"] = now.into();
            status["succeeded"] = 1.into();
        }
        let patch = Patch::Merge(json!({"status": status}));
        let api = self.api::<Job>();
        let parameters = PatchParams::default();
        api.patch_status(name, &parameters, &patch).await.unwrap();
        self.fixture.clock.sleep(SECOND * 10).await;
    }

    /// A release that fails, one that is accepted and collected, and one whose results are in its tag.
    async fn work(&self) {
        self.declare().await;
        let failing = self.import(1).await;
        self.end_job(&failing, false).await;
        let passing = self.import(2).await;
        assert_ne!(failing, passing);
        self.end_job(&passing, true).await;
        let runs = self.api::<ProwJob>();
        let found = runs.list(&ListParams::default()).await.unwrap().items;
        let run = found[0].metadata.name.clone().unwrap();
        let ended =
            json!({"status": {"state": "success", "completionTime": "2026-01-01T00:01:00Z"}});
        let parameters = PatchParams::default();
        runs.patch(&run, &parameters, &Patch::Merge(ended))
            .await
            .unwrap();
        self.fixture.clock.sleep(SECOND * 10).await;
        let payload = self.api::<ReleasePayload>().get(&passing).await.unwrap();
        let status = payload.status.unwrap();
        let accepted = status
            .conditions
            .iter()
            .find(|it| it.type_ == "PayloadAccepted");
        assert_eq!(accepted.unwrap().status, "True");
        self.fixture.create(of_older_version()).await;
        self.fixture.clock.sleep(MINUTE).await;
        // Users remove the tags, and what belonged to them is collected.
        self.patch_stream(
            "source",
            json!({"metadata": {"annotations": {annotations::PAUSED: "a user"}}}),
        )
        .await;
        self.patch_stream("target", json!({"spec": {"tags": []}}))
            .await;
        self.fixture.clock.sleep(MINUTE * 30).await;
        let left = self
            .api::<Job>()
            .list(&ListParams::default())
            .await
            .unwrap();
        assert_eq!(left.items.len(), 0, "the Jobs are collected");
    }

    async fn declare(&self) {
        let config = json!({
            "name": "4.99.0-0.nightly", "to": "target",
            "verify": {"aws": {"prowJob": {"name": "periodic-aws"}}},
        });
        let stable = json!({"name": "4-stable", "as": "Stable"});
        let stream = |name: &str, annotations: Value, tags: Value| {
            json!({
                "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
                "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations},
                "spec": {"tags": tags},
            })
        };
        let from = json!({"kind": "DockerImage", "name": format!("{HOST}/ocp/cli:1")});
        for object in [
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "config", "namespace": NAMESPACE},
                "data": {"config.json": config.to_string()},
            }),
            stream("target", json!({}), json!([])),
            stream(
                "source",
                json!({annotations::CONFIG_REF: "config"}),
                json!([{"name": "cli", "from": from}]),
            ),
            stream("stable", json!({CONFIG: stable.to_string()}), json!([])),
        ] {
            self.fixture.create(object).await;
        }
        // The image of a Stable release is read with the pull secrets of its namespace.
        self.patch_stream("stable", json!({"spec": {"tags": [{"name": "4.99.0"}]}}))
            .await;
        let item = json!({
            "created": "2026-01-01T00:00:00Z", "image": "sha256:1", "generation": 1,
            "dockerImageReference": format!("{HOST}/ocp/release@sha256:{:064}", 1),
        });
        let status = json!({"status": {"tags": [{"tag": "4.99.0", "items": [item]}]}});
        let parameters = PatchParams::default();
        let api = self.api::<ImageStream>();
        api.patch_status("stable", &parameters, &Patch::Merge(status))
            .await
            .unwrap();
    }
}

/// A payload that was made when results were in the annotation of a tag.
fn of_older_version() -> Value {
    let mut payload = crate::payload::samples::payload(&json!({
        "payloadVerificationDataSource": "ImageStreamTagAnnotation",
    }));
    payload.metadata = kube::api::ObjectMeta {
        name: payload.metadata.name,
        namespace: Some(NAMESPACE.to_owned()),
        ..kube::api::ObjectMeta::default()
    };
    serde_json::to_value(payload).unwrap()
}

fn run_keys(context: &Context) -> RunKeys {
    let writer = context.writer("release-keys");
    RunKeys::new(writer, context.clock, NAMESPACE, || Some([7; 32]))
}

fn stream_components(context: &Context, registry: RegistryClient) -> Vec<Component> {
    let periodic = Periodic {
        name: "periodic-aws".to_owned(),
        cluster: "build01".to_owned(),
        spec: Some(json!({"containers": [{"name": "test", "image": "test"}]})),
        ..Periodic::default()
    };
    let mut options = StreamOptions::new(NAMESPACE, NAMESPACE, NAMESPACE);
    options.registry = Some(HOST.to_owned());
    let reader = RegistryReader::new(registry, context.client.clone(), context.clock);
    let services = Services {
        options: Arc::new(options),
        prow: SharedProwConfig::new(ProwConfig {
            periodics: [(periodic.name.clone(), periodic)].into(),
            scheduler_enabled: false,
        }),
        run_keys: run_keys(context),
        reader: CachedReader::new(Arc::new(reader)),
    };
    streams::components(context, services).unwrap()
}

fn payload_components(context: &Context) -> Vec<Component> {
    let options = PayloadOptions {
        timeouts: Timeouts::default(),
        run_keys: run_keys(context),
        qualifiers: SharedQualifiers::default(),
        job_namespace: Some(NAMESPACE.to_owned()),
    };
    payloads::components(context, options).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_release_controller_has_the_rights_that_it_uses_and_no_others() {
    let fixture = Fixture::open("neap-release-controller").await;
    fixture.lead().await;
    let controllers = Controllers::start(&fixture, &fixture.client, &fixture.admin).await;
    controllers.work().await;
    fixture.assert_rights(&NOT_HERE);
}

#[tokio::test(start_paused = true)]
async fn the_payload_controller_has_the_rights_that_it_uses_and_no_others() {
    let fixture = Fixture::open("neap-release-payloads").await;
    fixture.lead().await;
    let controllers = Controllers::start(&fixture, &fixture.admin, &fixture.client).await;
    controllers.work().await;
    fixture.assert_rights(&COUNTED_EVENTS);
}
