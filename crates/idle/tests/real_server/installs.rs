//! Both installs as users apply them, and their processes under their accounts and rights.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use kube::api::ListParams;
use neap_idle::api::names;
use neap_kit::{
    clock::Clock,
    lease::{ElectionOptions as Election, Elector, LeaseTimings},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    account::Account,
    operator::{Operator, OperatorPlacement},
    processes::{Processes, request_status},
    targets,
    test_namespace::{DEFINITION, DEPLOYMENT, ELASTI, ROLE, SERVICE, SLICE, TestNamespace},
};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/idle")
}

fn run(program: &str, usual: &str, arguments: &[&str]) -> String {
    let program = std::env::var_os(program).unwrap_or_else(|| usual.into());
    let server = std::env::var_os("NEAP_IDLE_SERVER").unwrap();
    let output = Command::new(program)
        .env("KUBECONFIG", server)
        .args(arguments)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stdout}{stderr}");
    stdout
}

fn kubectl(arguments: &[&str]) -> String {
    run("NEAP_KUBECTL", "kubectl", arguments)
}

fn helm(arguments: &[&str]) -> String {
    run("NEAP_HELM", "helm", arguments)
}

/// Deletes the definition, which the install brings along.
fn delete_definition() {
    let name = "elastiservices.elasti.truefoundry.com";
    kubectl(&[
        "delete",
        "--ignore-not-found",
        "customresourcedefinition",
        name,
    ]);
}

/// The names of an install.
struct Install {
    namespace: &'static str,
    /// The prefix of its names.
    full: &'static str,
}

impl Install {
    fn name(&self, rest: &str) -> String {
        format!("{}-{rest}", self.full)
    }

    fn operator(&self) -> String {
        self.name("operator-controller-manager")
    }

    fn resolver(&self) -> String {
        self.name("resolver")
    }

    /// Makes all assertions about the install. Its pods run until the returned value is dropped.
    async fn verify(&self, test: &str) -> TestNamespace {
        let mut cluster = TestNamespace::connected(test).await;
        cluster.run_pods_of(self.namespace);
        cluster.wait_until_served().await;
        self.wait_until_ready(&cluster).await;
        targets::define(&cluster).await;
        let operator = Account::of(&cluster, self.namespace, &self.operator()).await;
        // A separate account, because its first requests are refused until the rights are aggregated.
        let waiting = Account::of(&cluster, self.namespace, &self.operator()).await;
        targets::granted(&cluster, &waiting).await;
        let resolver = Account::of(&cluster, self.namespace, &self.resolver()).await;
        self.processes_run(&cluster, &operator, &resolver).await;
        self.services_sleep(&mut cluster, &operator).await;
        assert_eq!(operator.refused(), [] as [String; 0], "refused requests");
        assert_eq!(resolver.refused(), [] as [String; 0], "refused requests");
        self.assert_no_objects_left(&cluster).await;
        cluster
    }

    /// Waits until the resolvers are ready, their Service has an EndpointSlice for each family of the server,
    /// and the rights for scale targets are aggregated.
    async fn wait_until_ready(&self, cluster: &TestNamespace) {
        let role = self.name("scale-targets");
        let gathered = async || {
            let role = cluster.api(ROLE).get(&role).await.unwrap();
            role.data["rules"]
                .as_array()
                .is_some_and(|it| !it.is_empty())
        };
        cluster.until(gathered).await;
        let deployments = cluster.api_in(self.namespace, DEPLOYMENT);
        let resolvers = self.resolver();
        let ready = async || {
            let found = deployments.get(&resolvers).await.unwrap();
            found.data["status"]["readyReplicas"] == 2
        };
        cluster.until(ready).await;
        let service = self.name("resolver-service");
        let found = cluster.api_in(self.namespace, SERVICE).get(&service).await;
        let families = found.unwrap().data["spec"]["ipFamilies"].clone();
        let families = families.as_array().unwrap().len();
        let labels = format!("kubernetes.io/service-name={service}");
        let labels = ListParams::default().labels(&labels);
        let slices = cluster.api_in(self.namespace, SLICE);
        let led = async || {
            let slices = slices.list(&labels).await.unwrap();
            let mut endpoints = slices
                .iter()
                .map(|slice| slice.data["endpoints"].as_array());
            slices.items.len() == families
                && endpoints.all(|all| all.is_some_and(|all| all.len() == 2))
        };
        cluster.until(led).await;
    }

    /// Both processes start under their accounts and authenticate each other only, and a service that
    /// KubeElasti left asleep wakes when a resolver requests it.
    async fn processes_run(&self, cluster: &TestNamespace, operator: &Account, resolver: &Account) {
        let names = [&*self.operator(), &*self.resolver()];
        let processes =
            Processes::start(cluster, self.namespace, names, [operator, resolver]).await;
        let health = format!("{}:8081", processes.operator);
        let (inside, outside) = (
            format!("{}:8013", processes.resolver),
            format!("{}:8013", processes.operator),
        );
        for place in [&health, &inside] {
            let ready = async || request_status(place, "GET /readyz", "", "").await == Some(200);
            cluster.until(ready).await;
        }
        cluster.workload("old", &json!({"replicas": 0})).await;
        let old = json!({
            "metadata": {"name": "old", "finalizers": ["elasti.truefoundry.com/finalizer"]},
            "spec": {
                "service": "old",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "deployments", "name": "old"},
                "triggers": [{"type": "prometheus", "metadata": {
                    "query": "up", "serverAddress": "http://127.0.0.1:1", "threshold": "0.5",
                }}],
            },
        });
        cluster.create(ELASTI, old).await;
        let proxy = json!({"status": {"mode": "proxy"}});
        cluster.patch_status(ELASTI, "old", proxy).await;
        let asleep = async || cluster.is_asleep("old").await;
        cluster.until(asleep).await;

        let wake = "POST /informer/incoming-request";
        let body = format!(
            r#"{{"count":1,"svc":"old","namespace":"{}"}}"#,
            cluster.namespace
        );
        let stranger = Account::of(cluster, &cluster.namespace, "default").await;
        assert_eq!(request_status(&outside, wake, "", &body).await, Some(401));
        let status = request_status(&outside, wake, stranger.token(), &body).await;
        assert_eq!(status, Some(403));
        assert_eq!(cluster.replicas("old").await, 0);
        let status = request_status(&outside, wake, resolver.token(), &body).await;
        assert_eq!(status, Some(200));
        cluster
            .until(async || cluster.replicas("old").await == 1)
            .await;
        let activity = "GET /activity";
        assert_eq!(request_status(&inside, activity, "", "").await, Some(401));
        let status = request_status(&inside, activity, resolver.token(), "").await;
        assert_eq!(status, Some(403), "only the operator may read it");
        let status = request_status(&inside, activity, operator.token(), "").await;
        assert_eq!(status, Some(200));
        processes.end().await;
    }

    /// The elected operator under its rights; only triggers and proofs are stubs. It also adopts `old`.
    async fn services_sleep(&self, cluster: &mut TestNamespace, account: &Account) {
        let clock = Clock::system();
        let election = Election {
            namespace: self.namespace.to_owned(),
            name: "acf50383.truefoundry.io".to_owned(),
            identity: "two".to_owned(),
            timings: LeaseTimings::default(),
        };
        let client = account.client().await;
        let (elector, mut leadership) = Elector::new(client.clone(), election, clock).unwrap();
        let elected = CancellationToken::new();
        tokio::spawn(elector.run(elected.clone()));
        leadership.gained().await;
        let service = self.name("resolver-service");
        let placement = OperatorPlacement {
            namespace: self.namespace,
            resolver_service: &service,
            only: None,
        };
        cluster.with_operator(Operator::start(&client, &placement, Some(leadership)));
        cluster.workload("web", &json!({})).await;
        cluster.declare("web").await;
        cluster.until(async || cluster.is_asleep("web").await).await;
        let slice = names::resolver_slice("web");
        let slice = cluster.api(SLICE).get(&slice).await.unwrap();
        let endpoints = slice.data["endpoints"].as_array().unwrap();
        assert_eq!(endpoints.len(), 2, "both resolvers of the install");
        cluster.wake_and_delete().await;
        targets::a_stateful_set(cluster).await;
        targets::a_custom_kind(cluster).await;
        cluster.workload("again", &json!({})).await;
        cluster.declare("again").await;
        cluster
            .until(async || cluster.is_asleep("again").await)
            .await;
        // The uninstall wakes all services and deletes the definition.
        let namespace = ["--operator-namespace", self.namespace];
        let output = neap(&[
            "idle",
            "uninstall",
            "--yes",
            "--wait",
            "1m",
            namespace[0],
            namespace[1],
        ]);
        assert!(output.contains("again is awake and restored"), "{output}");
        assert!(output.contains("old is awake and restored"), "{output}");
        assert!(cluster.replicas("again").await > 0);
        elected.cancel();
    }

    /// Asserts that no object of the services is left.
    async fn assert_no_objects_left(&self, cluster: &TestNamespace) {
        let definitions = cluster.api(DEFINITION);
        let name = "elastiservices.elasti.truefoundry.com";
        let gone = async || definitions.get_opt(name).await.unwrap().is_none();
        cluster.until(gone).await;
        let all = ListParams::default();
        for kind in [SERVICE, SLICE] {
            let left = cluster.api(kind).list(&all).await.unwrap();
            let mut left = left.iter().filter_map(|one| one.metadata.name.as_deref());
            assert!(left.all(|name| !name.starts_with("elasti-")));
        }
    }
}

fn neap(arguments: &[&str]) -> String {
    run("NEAP_BIN", "neap", arguments)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kustomize_install_works_under_its_own_rights() {
    let folder = deploy().join("kustomize");
    let folder = folder.to_str().unwrap();
    delete_definition();
    kubectl(&["apply", "--server-side", "-k", folder]);
    // The aggregated rules do not conflict with a second apply.
    kubectl(&["apply", "--server-side", "-k", folder]);
    let install = Install {
        namespace: "elasti",
        full: "elasti",
    };
    let _cluster = install.verify("idle-kustomize").await;
    kubectl(&["delete", "--ignore-not-found", "-k", folder]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chart_install_works_under_its_own_rights() {
    let chart = deploy().join("chart");
    let chart = chart.to_str().unwrap();
    delete_definition();
    let there = [chart, "--namespace", "rest"];
    let helm_with = |before: &[&str], after: &[&str]| helm(&[before, &there, after].concat());
    let image = ["--set", "global.image.repository=neaptide/neap"];
    helm_with(
        &["install", "rest"],
        &["--create-namespace", image[0], image[1]],
    );
    // The migration from KubeElasti has a phase without tokens, and a second upgrade.
    for shown in ["false", "true"] {
        let set = format!("global.authentication={shown}");
        helm_with(&["upgrade", "rest"], &["--set", &set, image[0], image[1]]);
    }
    let install = Install {
        namespace: "rest",
        full: "rest-elasti",
    };
    let _cluster = install.verify("idle-chart").await;
    helm(&["uninstall", "rest", "--namespace", "rest"]);
}
