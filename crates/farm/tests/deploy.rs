//! The manifests and the chart of deploy/farm: they match the registration, and a server accepts them.
//! `NEAP_UPDATE=1` writes the generated ones.

#![expect(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

use std::{collections::BTreeSet, fs, io::Write, path::PathBuf, process::Command};

use kube::{
    Api, Client, CustomResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use neap_farm::{api::OPERATOR_NAMESPACE, area::AREA};
use neap_kit::operation::Operation;
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};

/// The files of kustomization.yaml.
const MANIFESTS: [&str; 4] = ["namespace.yaml", "crd.yaml", "rbac.yaml", "operator.yaml"];

fn deploy() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/farm")
}

fn documents(values: &[Value]) -> String {
    let texts = values
        .iter()
        .map(|value| serde_saphyr::to_string(value).unwrap());
    let texts: Vec<_> = texts.collect();
    format!(
        "# Generated from crates/farm; NEAP_UPDATE=1 cargo test -p neap-farm --test deploy\n{}",
        texts.join("---\n")
    )
}

fn holds(path: &str, text: &str) {
    let path = deploy().join(path);
    if std::env::var_os("NEAP_UPDATE").is_some() {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "{} differs from what the registration says",
        path.display()
    );
}

#[test]
fn the_definitions_are_those_of_the_types() {
    let mut definitions = (AREA.definitions)();
    // Roll-outs are recorded in Operations, which belong to no area.
    definitions.push(Operation::crd());
    let values: Vec<_> = definitions
        .iter()
        .map(|definition| serde_json::to_value(definition).unwrap())
        .collect();
    let text = documents(&values);
    assert!(
        text.len() < 200_000,
        "the definitions fit into an annotation: {}",
        text.len()
    );
    holds("kustomize/crd.yaml", &text);
    holds("chart/templates/crd.yaml", &text);
}

#[test]
fn the_rights_are_those_of_the_registration() {
    let roles = AREA.roles.iter();
    let values: Vec<_> = roles
        .flat_map(|role| role.objects(OPERATOR_NAMESPACE))
        .collect();
    let text = documents(&values);
    holds("kustomize/rbac.yaml", &text);
    let chart = text.replace(
        &format!("namespace: {OPERATOR_NAMESPACE}"),
        "namespace: {{ .Release.Namespace }}",
    );
    holds("chart/templates/rbac.yaml", &chart);
}

#[test]
fn every_right_is_used_and_no_write_lacks_one() {
    use neap_farm::farm::objects::owned_kinds;
    let manager = AREA.roles[0];
    for kind in owned_kinds() {
        let right = manager.rights.iter().find(|right| {
            right.group == kind.resource.group
                && right.resources.contains(&kind.resource.plural.as_str())
        });
        let right = right.unwrap_or_else(|| panic!("no right for {}", kind.resource.plural));
        for verb in ["create", "delete", "get", "list", "patch", "watch"] {
            assert!(
                right.verbs.contains(&verb),
                "{verb} {}",
                kind.resource.plural
            );
        }
    }
    let all: Vec<_> = manager
        .rights
        .iter()
        .flat_map(|right| right.resources)
        .collect();
    let known = owned_kinds().len() + 3 + 2 + 5 + 10;
    assert_eq!(
        all.len(),
        known,
        "events, claims and pods, operations, five kinds and their subresources"
    );
}

fn parsed(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    documents.into_iter().filter(|it| !it.is_null()).collect()
}

/// What `kubectl apply -k` sends.
fn installed() -> Vec<Value> {
    let read = |file| fs::read_to_string(deploy().join("kustomize").join(file)).unwrap();
    let files = MANIFESTS.iter();
    files.flat_map(|file| parsed(&read(file))).collect()
}

#[test]
fn the_kustomization_has_all_manifests() {
    let text = fs::read_to_string(deploy().join("kustomize/kustomization.yaml")).unwrap();
    let kustomization: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(kustomization["resources"], json!(MANIFESTS));
    assert_eq!(kustomization["namespace"], OPERATOR_NAMESPACE);
}

#[test]
fn the_operator_runs_as_the_account_that_has_the_rights() {
    let installed = installed();
    let accounts: BTreeSet<_> = AREA.roles.iter().map(|role| role.account).collect();
    for deployment in installed.iter().filter(|it| it["kind"] == "Deployment") {
        let pod = &deployment["spec"]["template"]["spec"];
        let account = pod["serviceAccountName"].as_str().unwrap();
        assert!(accounts.contains(account), "{account}");
        let made = installed
            .iter()
            .any(|it| it["kind"] == "ServiceAccount" && it["metadata"]["name"] == account);
        assert!(made, "{account} is not created");
    }
}

async fn create(client: &Client, object: Value) {
    let version = object["apiVersion"].as_str().unwrap().to_owned();
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    let kind = object["kind"].as_str().unwrap().to_owned();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let name = object.metadata.name.clone().unwrap();
    if let Err(error) = api.create(&PostParams::default(), &object).await {
        panic!("{kind} {name}: {error}");
    }
}

async fn server() -> Client {
    let options = Options::new(Environment::simulated(7));
    let pocket = Pocket::open(options).await.unwrap();
    Client::new(pocket.service(), OPERATOR_NAMESPACE)
}

#[tokio::test(start_paused = true)]
async fn a_server_accepts_the_manifests() {
    let client = server().await;
    for object in installed() {
        create(&client, object).await;
    }
}

/// The chart with these values. None without Helm, and then the test says so where skips are counted.
fn rendered(test: &str, values: &[&str]) -> Option<Vec<Value>> {
    let Some(helm) = std::env::var_os("NEAP_HELM") else {
        if let Some(path) = std::env::var_os("NEAP_SKIPS") {
            let mut file = fs::File::options().append(true).open(path).unwrap();
            let line = format!("SKIPPED {test}: NEAP_HELM is not set; run cargo xtask test\n");
            file.write_all(line.as_bytes()).unwrap();
        }
        return None;
    };
    let mut command = Command::new(helm);
    command
        .args(["template", "buildbarn"])
        .arg(deploy().join("chart"))
        .args(["--namespace", OPERATOR_NAMESPACE])
        .args(["--set", "image.repository=ghcr.io/neaptide/neap"]);
    let set = values.iter().flat_map(|value| ["--set", *value]);
    let output = command.args(set).output().unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}");
    Some(parsed(&String::from_utf8(output.stdout).unwrap()))
}

fn named(documents: &[Value]) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = documents
        .iter()
        .map(|it| (text(&it["kind"]), text(&it["metadata"]["name"])));
    names.collect()
}

fn container(documents: &[Value]) -> Value {
    let mut documents = documents.iter();
    let deployment = documents.find(|it| it["kind"] == "Deployment").unwrap();
    deployment["spec"]["template"]["spec"]["containers"][0].clone()
}

#[tokio::test(start_paused = true)]
async fn the_chart_installs_what_kustomize_installs_and_a_server_accepts_it() {
    let test = "deploy::the_chart_installs_what_kustomize_installs_and_a_server_accepts_it";
    let Some(documents) = rendered(test, &[]) else {
        return;
    };
    let mut kustomize = named(&installed());
    kustomize.remove(&("Namespace".to_owned(), OPERATOR_NAMESPACE.to_owned()));
    assert_eq!(named(&documents), kustomize);
    let (chart, manifest) = (container(&documents), container(&installed()));
    for field in [
        "command",
        "args",
        "image",
        "ports",
        "securityContext",
        "resources",
        "env",
    ] {
        assert_eq!(chart[field], manifest[field], "{field}");
    }
    let client = server().await;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATOR_NAMESPACE},
    });
    create(&client, namespace).await;
    for document in documents {
        create(&client, document).await;
    }
}

#[test]
fn the_chart_restricts_the_operator_to_namespaces() {
    let test = "deploy::the_chart_restricts_the_operator_to_namespaces";
    let Some(documents) = rendered(test, &["watchNamespaces={one,two}"]) else {
        return;
    };
    let args = container(&documents)["args"].clone();
    for namespace in ["one", "two"] {
        let arg = format!("--watch-namespace={namespace}");
        assert!(args.as_array().unwrap().contains(&arg.into()), "{args}");
    }
}

/// The metrics of the operator that rules query.
const QUERIED: [&str; 2] = [
    "neaptide_reconciles_total",
    "neaptide_reconcile_errors_total",
];

#[test]
fn monitors_select_the_operator_and_alerts_query_what_it_serves() {
    let text = fs::read_to_string(deploy().join("kustomize/monitoring/monitors.yaml")).unwrap();
    let monitors = parsed(&text);
    let operator = installed()
        .into_iter()
        .find(|it| it["kind"] == "Deployment")
        .unwrap();
    let template = &operator["spec"]["template"];
    let spec = &monitors[0]["spec"];
    assert_eq!(
        spec["selector"]["matchLabels"],
        template["metadata"]["labels"]
    );
    let port = &spec["podMetricsEndpoints"][0]["port"];
    let ports = template["spec"]["containers"][0]["ports"].as_array();
    assert!(ports.unwrap().iter().any(|it| it["name"] == *port));
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let queried: BTreeSet<_> = words.filter(|word| word.starts_with("neaptide_")).collect();
    assert_eq!(queried, BTreeSet::from(QUERIED));
    let controller = format!("controller=\"{}\"", neap_farm::farm::controller::NAME);
    assert_eq!(text.matches(&controller).count(), QUERIED.len());
}

#[test]
fn the_chart_has_the_monitors_of_kustomize_behind_a_value() {
    let test = "deploy::the_chart_has_the_monitors_of_kustomize_behind_a_value";
    let Some(documents) = rendered(test, &["monitoring=true"]) else {
        return;
    };
    let text = fs::read_to_string(deploy().join("kustomize/monitoring/monitors.yaml")).unwrap();
    let kinds = ["PodMonitor", "PrometheusRule"];
    let is_monitor = |it: &Value| kinds.iter().any(|kind| it["kind"] == *kind);
    let found: Vec<_> = documents.into_iter().filter(is_monitor).collect();
    assert_eq!(found, parsed(&text));
}
