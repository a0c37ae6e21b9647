//! Both installs, as their users apply them, and what runs under their accounts and rights.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use kube::api::ListParams;
use neap_idle::api::names;
use neap_kit::{
    clock::Clock,
    lease::{Elector, Options as Election, Timings},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    account::Account,
    operator::{Home, Operator},
    processes::{Processes, asked},
    stage::{DEFINITION, DEPLOYMENT, ELASTI, ROLE, SERVICE, SLICE, Stage},
    targets,
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
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}{wrong}");
    said
}

fn kubectl(arguments: &[&str]) -> String {
    run("NEAP_KUBECTL", "kubectl", arguments)
}

fn helm(arguments: &[&str]) -> String {
    run("NEAP_HELM", "helm", arguments)
}

/// Whoever installs brings the definition.
fn undefined() {
    let name = "elastiservices.elasti.truefoundry.com";
    kubectl(&[
        "delete",
        "--ignore-not-found",
        "customresourcedefinition",
        name,
    ]);
}

/// What an install is called where it is.
struct Install {
    namespace: &'static str,
    /// All its names begin so.
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

    /// Everything that is said of it here. Pods run as long as what this gives is there.
    async fn holds(&self, test: &str) -> Stage {
        let mut stage = Stage::connected(test).await;
        stage.play_also(self.namespace);
        stage.served().await;
        self.is_there(&stage).await;
        targets::define(&stage).await;
        let operator = Account::of(&stage, self.namespace, &self.operator()).await;
        // Asks until it may, which the other does not.
        let asking = Account::of(&stage, self.namespace, &self.operator()).await;
        targets::granted(&stage, &asking).await;
        let resolver = Account::of(&stage, self.namespace, &self.resolver()).await;
        self.processes_run(&stage, &operator, &resolver).await;
        self.services_sleep(&mut stage, &operator).await;
        assert_eq!(operator.refused(), [] as [String; 0], "the server said no");
        assert_eq!(resolver.refused(), [] as [String; 0], "the server said no");
        self.goes(&stage).await;
        stage
    }

    /// Resolvers are ready at the addresses of their Service, of all families that the server has, and
    /// the rights of scale targets are gathered.
    async fn is_there(&self, stage: &Stage) {
        let role = self.name("scale-targets");
        let gathered = async || {
            let role = stage.api(ROLE).get(&role).await.unwrap();
            role.data["rules"]
                .as_array()
                .is_some_and(|it| !it.is_empty())
        };
        stage.until(gathered).await;
        let deployments = stage.api_in(self.namespace, DEPLOYMENT);
        let resolvers = self.resolver();
        let ready = async || {
            let found = deployments.get(&resolvers).await.unwrap();
            found.data["status"]["readyReplicas"] == 2
        };
        stage.until(ready).await;
        let service = self.name("resolver-service");
        let found = stage.api_in(self.namespace, SERVICE).get(&service).await;
        let families = found.unwrap().data["spec"]["ipFamilies"].clone();
        let families = families.as_array().unwrap().len();
        let labels = format!("kubernetes.io/service-name={service}");
        let labels = ListParams::default().labels(&labels);
        let slices = stage.api_in(self.namespace, SLICE);
        let led = async || {
            let slices = slices.list(&labels).await.unwrap();
            let mut endpoints = slices
                .iter()
                .map(|slice| slice.data["endpoints"].as_array());
            slices.items.len() == families
                && endpoints.all(|all| all.is_some_and(|all| all.len() == 2))
        };
        stage.until(led).await;
    }

    /// Both processes begin under their accounts, let each other in and nobody else, and what KubeElasti
    /// left asleep wakes when a resolver asks for it.
    async fn processes_run(&self, stage: &Stage, operator: &Account, resolver: &Account) {
        let names = [&*self.operator(), &*self.resolver()];
        let processes = Processes::start(stage, self.namespace, names, [operator, resolver]).await;
        let health = format!("{}:8081", processes.operator);
        let (inside, outside) = (
            format!("{}:8013", processes.resolver),
            format!("{}:8013", processes.operator),
        );
        for place in [&health, &inside] {
            let ready = async || asked(place, "GET /readyz", "", "").await == Some(200);
            stage.until(ready).await;
        }
        stage.workload("old", &json!({"replicas": 0})).await;
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
        stage.create(ELASTI, old).await;
        let proxy = json!({"status": {"mode": "proxy"}});
        stage.patch_status(ELASTI, "old", proxy).await;
        let asleep = async || stage.is_asleep("old").await;
        stage.until(asleep).await;

        let wake = "POST /informer/incoming-request";
        let body = format!(
            r#"{{"count":1,"svc":"old","namespace":"{}"}}"#,
            stage.namespace
        );
        let stranger = Account::of(stage, &stage.namespace, "default").await;
        assert_eq!(asked(&outside, wake, "", &body).await, Some(401));
        let said = asked(&outside, wake, stranger.token(), &body).await;
        assert_eq!(said, Some(403));
        assert_eq!(stage.replicas("old").await, 0);
        let said = asked(&outside, wake, resolver.token(), &body).await;
        assert_eq!(said, Some(200));
        stage.until(async || stage.replicas("old").await == 1).await;
        let activity = "GET /activity";
        assert_eq!(asked(&inside, activity, "", "").await, Some(401));
        let said = asked(&inside, activity, resolver.token(), "").await;
        assert_eq!(said, Some(403), "none of its business");
        let said = asked(&inside, activity, operator.token(), "").await;
        assert_eq!(said, Some(200));
        processes.end().await;
    }

    /// The operator under its rights, elected; only triggers and proofs are played. It takes `old` as
    /// it was left, too.
    async fn services_sleep(&self, stage: &mut Stage, account: &Account) {
        let clock = Clock::system();
        let election = Election {
            namespace: self.namespace.to_owned(),
            name: "acf50383.truefoundry.io".to_owned(),
            identity: "two".to_owned(),
            timings: Timings::default(),
        };
        let client = account.client().await;
        let (elector, mut leadership) = Elector::new(client.clone(), election, clock).unwrap();
        let elected = CancellationToken::new();
        tokio::spawn(elector.run(elected.clone()));
        leadership.gained().await;
        let service = self.name("resolver-service");
        let home = Home {
            namespace: self.namespace,
            resolver_service: &service,
            only: None,
        };
        stage.led_by(Operator::start(&client, &home, Some(leadership)));
        stage.workload("web", &json!({})).await;
        stage.declare("web").await;
        stage.until(async || stage.is_asleep("web").await).await;
        let slice = names::resolver_slice("web");
        let slice = stage.api(SLICE).get(&slice).await.unwrap();
        let endpoints = slice.data["endpoints"].as_array().unwrap();
        assert_eq!(endpoints.len(), 2, "both resolvers of the install");
        stage.wakes_and_goes().await;
        targets::a_stateful_set(stage).await;
        targets::a_kind_of_the_users_own(stage).await;
        stage.workload("again", &json!({})).await;
        stage.declare("again").await;
        stage.until(async || stage.is_asleep("again").await).await;
        // As it is told to: everything is awake, and the kind is gone.
        let namespace = ["--operator-namespace", self.namespace];
        let said = neap(&[
            "idle",
            "uninstall",
            "--yes",
            "--wait",
            "1m",
            namespace[0],
            namespace[1],
        ]);
        assert!(said.contains("again is awake and restored"), "{said}");
        assert!(said.contains("old is awake and restored"), "{said}");
        assert!(stage.replicas("again").await > 0);
        elected.cancel();
    }

    /// Nothing of the services that slept is left.
    async fn goes(&self, stage: &Stage) {
        let definitions = stage.api(DEFINITION);
        let name = "elastiservices.elasti.truefoundry.com";
        let gone = async || definitions.get_opt(name).await.unwrap().is_none();
        stage.until(gone).await;
        let all = ListParams::default();
        for kind in [SERVICE, SLICE] {
            let left = stage.api(kind).list(&all).await.unwrap();
            let mut left = left.iter().filter_map(|one| one.metadata.name.as_deref());
            assert!(left.all(|name| !name.starts_with("elasti-")));
        }
    }
}

fn neap(arguments: &[&str]) -> String {
    run("NEAP_BIN", "neap", arguments)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_kustomize_installs_works_under_its_own_rights() {
    let folder = deploy().join("kustomize");
    let folder = folder.to_str().unwrap();
    undefined();
    kubectl(&["apply", "--server-side", "-k", folder]);
    // What was gathered meanwhile is not in the way of a second time.
    kubectl(&["apply", "--server-side", "-k", folder]);
    let install = Install {
        namespace: "elasti",
        full: "elasti",
    };
    let _stage = install.holds("idle-kustomize").await;
    kubectl(&["delete", "--ignore-not-found", "-k", folder]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_chart_installs_works_under_its_own_rights() {
    let chart = deploy().join("chart");
    let chart = chart.to_str().unwrap();
    undefined();
    let there = [chart, "--namespace", "rest"];
    let helm_with = |before: &[&str], after: &[&str]| helm(&[before, &there, after].concat());
    helm_with(&["install", "rest"], &["--create-namespace"]);
    // The way from KubeElasti has a time without tokens, and a second upgrade.
    for shown in ["false", "true"] {
        let set = format!("global.authentication={shown}");
        helm_with(&["upgrade", "rest"], &["--set", &set]);
    }
    let install = Install {
        namespace: "rest",
        full: "rest-elasti",
    };
    let _stage = install.holds("idle-chart").await;
    helm(&["uninstall", "rest", "--namespace", "rest"]);
}
