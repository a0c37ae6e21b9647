//! What users do: create, list, show, use, delete.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Node},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use neap_kit::operation::Operation;
use serde_json::{Value, json};

use super::fleet_server::{FleetServer, SUBSCRIPTION, repository};
use crate::kube_client::connect;

/// What only the client, Hive and the cluster may know.
const CLIENT_SECRET: &str = "a-client-secret-of-this-test";
const PULL_SECRET: &str = "a-pull-secret-of-this-test";

/// The body of a PUT with secrets.
fn body(name: &str, number: u32) -> Value {
    let subnet = |name: &str| {
        format!(
            "/subscriptions/{SUBSCRIPTION}/resourceGroups/vnet/providers/Microsoft.Network/virtualNetworks/vnet/subnets/{name}"
        )
    };
    let auth = STANDARD.encode(format!("user:{PULL_SECRET}"));
    let pull_secret = json!({"auths": {"registry.example.com": {"auth": auth}}});
    json!({
        "location": "local",
        "properties": {
            "clusterProfile": {
                "domain": name,
                "resourceGroupId": format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/aro-{name}"),
                "pullSecret": pull_secret.to_string(),
            },
            "servicePrincipalProfile": {
                "clientId": format!("00000000-0000-0000-0000-{number:012}"),
                "clientSecret": CLIENT_SECRET,
            },
            "networkProfile": {"podCidr": "10.128.0.0/14", "serviceCidr": "172.30.0.0/16"},
            "masterProfile": {"vmSize": "Standard_D8s_v3", "subnetId": subnet("master")},
            "workerProfiles": [{
                "name": "worker",
                "vmSize": "Standard_D4s_v3",
                "diskSizeGB": 128,
                "subnetId": subnet("worker"),
                "count": 3,
            }],
            "apiserverProfile": {"visibility": "Public"},
            "ingressProfiles": [{"name": "default", "visibility": "Public"}],
        },
    })
}

pub(super) fn create(server: &FleetServer, name: &str, number: u32) {
    let file = server.sandbox.path(&format!("{name}.json"));
    fs::write(&file, body(name, number).to_string()).unwrap();
    let file = file.to_str().unwrap();
    let printed = server.succeeds(&["fleet", "create", name, "--file", file]);
    assert!(
        printed.contains(&format!("{name} was created")),
        "{printed}"
    );
}

/// The kubeconfig of an administrator, in a file.
pub(super) fn kubeconfig(server: &FleetServer, name: &str) -> PathBuf {
    let text = server.succeeds(&["fleet", "credentials", name, "--kubeconfig-of-admin"]);
    let file = server.sandbox.path(&format!("{name}.kubeconfig"));
    fs::write(&file, text).unwrap();
    file
}

fn api_of(kubeconfig: &Path) -> String {
    let text = fs::read_to_string(kubeconfig).unwrap();
    let parsed: Value = serde_json::from_str(&text).unwrap();
    let server = parsed["clusters"][0]["cluster"]["server"].as_str();
    server.unwrap().to_owned()
}

async fn nodes(kubeconfig: &Path) -> Result<usize, kube::Error> {
    let nodes: Api<Node> = Api::all(connect(kubeconfig).await);
    let found = nodes.list(&ListParams::default().limit(100)).await?;
    Ok(found.items.len())
}

/// The files below a folder that contain one of these texts.
fn files_with(folder: &Path, texts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, texts));
            continue;
        }
        let content = fs::read(&path).unwrap();
        for text in texts {
            if content.windows(text.len()).any(|it| it == text.as_bytes()) {
                found.push(format!("{text} in {}", path.display()));
            }
        }
    }
    found
}

/// The private keys in a kubeconfig, as it has them.
fn keys(kubeconfig: &Path) -> String {
    let parsed: Value = serde_json::from_str(&fs::read_to_string(kubeconfig).unwrap()).unwrap();
    let key = &parsed["users"][0]["user"]["client-key-data"];
    key.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn nothing_of_clusters_runs_before_it_is_used() {
    let mut server = FleetServer::start();
    let (url, authority) = server.provider().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(connect(&server.kubeconfig()).await);
    let hive = "clusterdeployments.hive.openshift.io";
    let database = server.data().join("node/fleet/fleet.db");
    let folder = database.parent().unwrap();
    assert!(folder.exists(), "{}", folder.display());
    assert!(!database.exists());
    assert!(definitions.get_opt(hive).await.unwrap().is_none());
    // The first request starts all of it, and is answered.
    let client = super::arm_client::ArmClient::new(&url, &authority, None);
    let operations = "/providers/Microsoft.RedHatOpenShift/operations";
    assert_eq!(client.get(operations).await.status, 200);
    assert!(database.exists());
    assert!(definitions.get_opt(hive).await.unwrap().is_some());
    let logged = server.stop().stderr;
    assert!(!logged.contains("request answered"), "{logged}");
}

#[tokio::test]
async fn a_cluster_is_created_used_kept_over_a_restart_and_deleted() {
    let mut server = FleetServer::start();
    create(&server, "blue", 1);
    create(&server, "red", 2);
    default_values_do_not_change_a_cluster(&server);
    a_group_is_listed_alone(&server);
    let listed = server.succeeds(&["fleet", "list"]);
    assert_eq!(listed.matches("Succeeded").count(), 2, "{listed}");
    let shown = server.succeeds(&["fleet", "show", "blue"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
    let files = ["blue", "red"].map(|name| kubeconfig(&server, name));
    let hosts: BTreeSet<_> = files.iter().map(|file| api_of(file)).collect();
    assert_eq!(hosts.len(), 2, "each has an address of its own: {hosts:?}");
    assert!(hosts.iter().all(|it| it.ends_with(":6443")), "{hosts:?}");
    assert_eq!(nodes(&files[0]).await.unwrap(), 6);
    let maps: Api<ConfigMap> = Api::namespaced(connect(&files[0]).await, "default");
    let map = json!({"metadata": {"name": "kept"}, "data": {"by": "the user"}});
    let map: ConfigMap = serde_json::from_value(map).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();

    let password = server.succeeds(&["fleet", "credentials", "blue"]);
    let password = password.lines().nth(1).unwrap().to_owned();
    assert!(password.len() > 15, "{password}");
    let key = keys(&files[0]);
    let secrets = [CLIENT_SECRET, PULL_SECRET, &password, &key];
    let operation = server.succeeds(&["operations", "show"]);
    for text in [&listed, &shown.to_string(), &operation] {
        assert!(
            !secrets.iter().any(|secret| text.contains(secret)),
            "{text}"
        );
    }
    let logged = server.stop();
    for text in [&logged.stdout, &logged.stderr] {
        assert!(
            !secrets.iter().any(|secret| text.contains(secret)),
            "{text}"
        );
    }
    // The documents, with their write-ahead log. The Secrets that Hive needs are objects of its cluster.
    let fleet = server.data().join("node/fleet");
    let plain: Vec<_> = files_with(&fleet, &secrets)
        .into_iter()
        .filter(|it| !it.contains("/clusters/"))
        .collect();
    assert_eq!(plain, [""; 0]);
    assert!(
        !files_with(&fleet, &["aro-blue"]).is_empty(),
        "the search finds what is plain"
    );

    server.start_again();
    // Clusters run again without a request to the provider, at the addresses of their kubeconfigs.
    super::fleet_server::until("the cluster answers", async || nodes(&files[0]).await.ok()).await;
    let maps: Api<ConfigMap> = Api::namespaced(connect(&files[0]).await, "default");
    assert_eq!(maps.get("kept").await.unwrap().name_any(), "kept");
    assert_eq!(server.succeeds(&["fleet", "list"]), listed);

    delete_both(&server, &files[0]).await;
}

fn a_group_is_listed_alone(server: &FleetServer) {
    let listed = server.succeeds(&["fleet", "list", "-g", "fleet"]);
    assert_eq!(listed.matches("Succeeded").count(), 2, "{listed}");
    let none = server.succeeds(&["fleet", "list", "-g", "other"]);
    assert!(
        none.contains("no cluster in the resource group other"),
        "{none}"
    );
}

/// They have new credentials each time.
fn default_values_do_not_change_a_cluster(server: &FleetServer) {
    for arguments in [&["--dry-run"][..], &[]] {
        let arguments = [&["fleet", "create", "blue"], arguments].concat();
        let refused = server.neap(&arguments);
        assert_eq!(refused.code, Some(6), "{refused:?}");
        let remedy = "look with neap fleet show blue, or change it with --file";
        assert!(refused.stderr.contains(remedy), "{refused:?}");
    }
}

/// Deletes both clusters. Nothing of them is left.
async fn delete_both(server: &FleetServer, kubeconfig_of_blue: &Path) {
    for name in ["blue", "red"] {
        let printed = server.succeeds(&["fleet", "delete", name]);
        assert!(printed.contains("was deleted"), "{printed}");
    }
    let listed = server.succeeds(&["fleet", "list"]);
    assert!(listed.starts_with("There is no cluster"), "{listed}");
    assert!(nodes(kubeconfig_of_blue).await.is_err());
    let left: Vec<_> = fs::read_dir(server.data().join("node/fleet/clusters"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let again = server.neap(&["fleet", "delete", "blue"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    assert!(
        again.stderr.contains("there is no cluster blue"),
        "{again:?}"
    );
}

/// An Operation object that failed at its second step.
async fn fail_an_operation(kubeconfig: &Path) {
    let client = connect(kubeconfig).await;
    let api: Api<Operation> = Api::namespaced(client, "default");
    let operation = json!({
        "apiVersion": "neaptide.dev/v1alpha1", "kind": "Operation",
        "metadata": {"name": "roll"},
        "spec": {"work": "roll-out", "target": {"kind": "Deployment", "name": "web"}, "steps": ["pull", "swap"]},
    });
    let operation: Operation = serde_json::from_value(operation).unwrap();
    // The definition is installed a moment after the start.
    super::fleet_server::until("operations are served", async || {
        let created = api.create(&PostParams::default(), &operation).await;
        created.ok()
    })
    .await;
    let status = json!({"status": {
        "phase": "Failed", "step": "swap", "cause": {"message": "no room"},
        "steps": [
            {"name": "pull", "state": "Succeeded", "attempts": 1, "started": "2026-01-01T00:00:01Z", "ended": "2026-01-01T00:00:05Z"},
            {"name": "swap", "state": "Failed", "attempts": 3, "started": "2026-01-01T00:00:05Z", "ended": "2026-01-01T00:00:09Z", "cause": {"message": "no room"}},
        ],
    }});
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(&status));
    api.patch_status("roll", &parameters, &patch).await.unwrap();
}

#[tokio::test]
async fn operation_objects_are_shown_cancelled_and_run_again() {
    let server = FleetServer::start();
    fail_an_operation(&server.kubeconfig()).await;
    let listed = server.succeeds(&["operations", "list"]);
    for text in [
        "default/roll",
        "roll-out",
        "Deployment/web",
        "Failed",
        "1/2",
    ] {
        assert!(listed.contains(text), "{text}: {listed}");
    }
    let shown = server.succeeds(&["operations", "show", "default/roll"]);
    for text in ["4 s, usually 4 s", "3 attempts, no room"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let watched = server.neap(&["operations", "watch", "default/roll"]);
    assert_eq!(watched.code, Some(1), "{}", watched.stderr);
    assert!(
        watched
            .stderr
            .contains("neap operations retry default/roll"),
        "{}",
        watched.stderr
    );
    let again = server.succeeds(&["operations", "retry", "default/roll"]);
    assert!(again.contains("default/roll-retry-1"), "{again}");
    let cancelled = server.neap(&["operations", "cancel", "default/roll"]);
    assert_ne!(cancelled.code, Some(0), "it has ended");
    let arguments = [
        "operations",
        "cancel",
        "default/roll-retry-1",
        "--reason",
        "wrong size",
    ];
    server.succeeds(&arguments);
    let api: Api<Operation> = Api::namespaced(connect(&server.kubeconfig()).await, "default");
    let spec = api.get("roll-retry-1").await.unwrap().spec;
    assert!(spec.cancel);
    assert_eq!(spec.cancel_reason.as_deref(), Some("wrong size"));
}

#[test]
fn the_versions_of_a_file_become_those_of_the_provider() {
    let server = FleetServer::start();
    let file = repository("examples/fleet/versions.json");
    let file = file.to_str().unwrap();
    let planned = server.succeeds(&["fleet", "versions", "apply", file, "--dry-run"]);
    assert!(planned.contains("4.20.1 would be created"), "{planned}");
    let applied = server.succeeds(&["fleet", "versions", "apply", file]);
    for text in ["4.20.1 created", "4.19.9 unchanged"] {
        assert!(applied.contains(text), "{text}: {applied}");
    }
    let one = json!({"versions": [{
        "version": "4.20.1", "enabled": true, "default": true,
        "openShiftPullspec": "registry.example.com/release:2",
        "installerPullspec": "registry.example.com/installer:2",
    }]});
    let other = server.sandbox.path("versions.json");
    fs::write(&other, one.to_string()).unwrap();
    let applied = server.succeeds(&["fleet", "versions", "apply", other.to_str().unwrap()]);
    for text in ["4.20.1 updated", "4.19.9 deleted", "4.18.21 deleted"] {
        assert!(applied.contains(text), "{text}: {applied}");
    }
    let listed = server.succeeds(&["fleet", "versions", "list", "-o", "name"]);
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let again = server.succeeds(&["fleet", "versions", "apply", other.to_str().unwrap()]);
    assert!(again.contains("4.20.1 unchanged"), "{again}");
}
