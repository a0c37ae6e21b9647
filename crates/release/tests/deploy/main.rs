//! The manifests and the chart of deploy/release: they match the registration, and a server accepts them.
//! `NEAP_UPDATE=1` writes the generated ones.

#![expect(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

mod chart;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use kube::{
    Api, Client, CustomResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use neap_pocket::{Options, Pocket, environment::Environment};
use neap_release::{api::release_payload_definition, area::AREA, image_stream::api::ImageStream};
use serde_json::{Value, json};

const NAMESPACE: &str = "neap-release";
const NOTICE: &str =
    "# Generated from crates/release; NEAP_UPDATE=1 cargo test -p neap-release --test deploy\n";
/// The files of kustomization.yaml.
const MANIFESTS: [&str; 9] = [
    "namespace.yaml",
    "releasepayloads.yaml",
    "imagestreams.yaml",
    "imports.yaml",
    "rbac.yaml",
    "builder.yaml",
    "controller.yaml",
    "payloads.yaml",
    "network.yaml",
];

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/release")
}

fn text(path: &str) -> String {
    fs::read_to_string(deploy().join(path)).unwrap_or_default()
}

fn parsed(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

fn yaml(values: &[Value]) -> String {
    let texts = values
        .iter()
        .map(|value| serde_saphyr::to_string(value).unwrap());
    texts.collect::<Vec<_>>().join("---\n")
}

fn holds(path: &str, wanted: &str) {
    if std::env::var_os("NEAP_UPDATE").is_some() {
        fs::write(deploy().join(path), wanted).unwrap();
    }
    assert!(
        text(path) == wanted,
        "{path} differs from what the registration says"
    );
}

/// In the chart, a definition stays when the release is removed, and braces are no template.
fn chart_definition(definition: &Value, condition: &str) -> String {
    let mut kept = definition.clone();
    kept["metadata"]["annotations"]["helm.sh/resource-policy"] = "keep".into();
    let text = yaml(&[kept]).replace("{{", "{{ \"{{\" }}");
    format!("{NOTICE}{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n")
}

#[test]
fn the_definitions_are_those_of_the_types() {
    let payloads = serde_json::to_value(release_payload_definition()).unwrap();
    let streams = serde_json::to_value(ImageStream::crd()).unwrap();
    for (name, definition, condition) in [
        ("releasepayloads", payloads, ".Values.installDefinitions"),
        (
            "imagestreams",
            streams,
            "and .Values.installDefinitions .Values.imageStreams",
        ),
    ] {
        let manifest = format!("{NOTICE}{}", yaml(std::slice::from_ref(&definition)));
        holds(&format!("kustomize/{name}.yaml"), &manifest);
        holds(
            &format!("chart/templates/{name}.yaml"),
            &chart_definition(&definition, condition),
        );
    }
}

#[test]
fn the_rights_are_those_of_the_registration() {
    let accounts: BTreeSet<_> = AREA.roles.iter().map(|role| role.account).collect();
    let accounts = accounts.into_iter().map(|name| {
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": NAMESPACE},
        })
    });
    let roles = AREA.roles.iter().flat_map(|role| role.objects(NAMESPACE));
    let objects: Vec<_> = accounts.chain(roles).collect();
    let manifest = format!("{NOTICE}{}", yaml(&objects));
    holds("kustomize/rbac.yaml", &manifest);
    let chart = manifest.replace(
        &format!("namespace: {NAMESPACE}\n"),
        "namespace: {{ .Release.Namespace }}\n",
    );
    holds("chart/templates/rbac.yaml", &chart);
}

/// What `kubectl apply -k` sends, but for labels.
fn installed() -> Vec<Value> {
    let files = MANIFESTS.iter();
    let documents = files.flat_map(|file| parsed(&text(&format!("kustomize/{file}"))));
    let mut documents: Vec<_> = documents.collect();
    for document in &mut documents {
        let is_of_cluster = ["Namespace", "CustomResourceDefinition"]
            .contains(&document["kind"].as_str().unwrap())
            || document["kind"].as_str().unwrap().starts_with("Cluster");
        if !is_of_cluster {
            document["metadata"]["namespace"] = NAMESPACE.into();
        }
    }
    documents
}

#[test]
fn the_kustomization_has_all_manifests() {
    let kustomization: Value =
        serde_saphyr::from_str(&text("kustomize/kustomization.yaml")).unwrap();
    assert_eq!(kustomization["resources"], json!(MANIFESTS));
}

#[test]
fn each_process_has_its_account_its_budget_and_a_network_policy() {
    let installed = installed();
    let has = |kind: &str, name: &str| {
        installed
            .iter()
            .any(|it| it["kind"] == kind && it["metadata"]["name"] == name)
    };
    let mut components = Vec::new();
    for deployment in installed.iter().filter(|it| it["kind"] == "Deployment") {
        let pod = &deployment["spec"]["template"];
        let account = pod["spec"]["serviceAccountName"].as_str().unwrap();
        assert!(AREA.roles.iter().any(|role| role.account == account));
        assert!(has("ServiceAccount", account));
        assert!(has("PodDisruptionBudget", account));
        assert!(deployment["spec"]["replicas"].as_u64().unwrap() > 1);
        let leads = AREA.roles.iter().any(|role| {
            let mut rights = role.rights.iter();
            role.account == account && rights.any(|right| right.resources.contains(&"leases"))
        });
        assert!(leads, "{account} cannot elect a leader");
        components.push(pod["metadata"]["labels"]["app.kubernetes.io/component"].clone());
    }
    let policy = installed.iter().find(|it| it["kind"] == "NetworkPolicy");
    let selected = &policy.unwrap()["spec"]["podSelector"]["matchExpressions"][0]["values"];
    components.sort_by_key(ToString::to_string);
    let mut selected = selected.as_array().unwrap().clone();
    selected.sort_by_key(ToString::to_string);
    assert_eq!(selected, components);
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
    Client::new(pocket.service(), NAMESPACE)
}

#[tokio::test(start_paused = true)]
async fn a_server_accepts_the_manifests() {
    let client = server().await;
    for object in installed() {
        create(&client, object).await;
    }
}

/// The metrics in the expressions of alerts and panels, without the suffixes of histograms.
fn asked(text: &str) -> BTreeSet<String> {
    let words = text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    let own = ["neaptide_", "release_controller_"];
    let names = words.filter(|word| own.iter().any(|start| word.starts_with(start)));
    let ends = ["_bucket", "_sum", "_count"];
    let bare = names.map(|name| {
        let end = ends.iter().find_map(|end| name.strip_suffix(end));
        end.unwrap_or(name).to_owned()
    });
    bare.collect()
}

#[test]
fn alerts_and_panels_query_metrics_of_the_registration() {
    let known: BTreeSet<_> = AREA.metrics.iter().map(|it| it.name.to_owned()).collect();
    for file in [
        "kustomize/monitoring/monitors.yaml",
        "chart/templates/monitoring.yaml",
        "dashboard/release.json",
    ] {
        let asked = asked(&text(file));
        assert!(asked.len() >= 3, "{file}: {asked:?}");
        let unknown: Vec<_> = asked.difference(&known).collect();
        assert!(unknown.is_empty(), "{file} queries {unknown:?}");
    }
}

#[test]
fn what_needs_a_person_has_an_alert() {
    for file in [
        "kustomize/monitoring/monitors.yaml",
        "chart/templates/monitoring.yaml",
    ] {
        let asked = asked(&text(file));
        for metric in [
            "neaptide_release_payloads",
            "neaptide_release_payloads_stuck",
            "neaptide_release_payloads_unproved",
            "neaptide_release_stream_staleness_seconds",
            "release_controller_release_upgrade_graph_save_error",
        ] {
            assert!(asked.contains(metric), "{file} lacks {metric}");
        }
    }
}
