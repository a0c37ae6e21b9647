//! The chart, as Helm renders it.

use std::{io::Write, process::Command};

use super::*;

/// The chart with these values. None without Helm, and then the test says so where skips are counted.
fn rendered(test: &str, values: &[&str]) -> Option<Vec<Value>> {
    let Some(helm) = std::env::var_os("NEAP_HELM") else {
        skipped(test);
        return None;
    };
    let mut command = Command::new(helm);
    command
        .args(["template", "neap"])
        .arg(deploy().join("chart"));
    command.args(["--namespace", NAMESPACE]);
    command.args(["--set", "image.repository=ghcr.io/neaptide/neap"]);
    let set = values.iter().flat_map(|value| ["--set", *value]);
    let output = command.args(set).output().unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}");
    let text = String::from_utf8(output.stdout).unwrap();
    let documents = parsed(&text);
    Some(documents.into_iter().filter(|it| !it.is_null()).collect())
}

/// Lists a skipped test in the file that `NEAP_SKIPS` names, so that it does not count as passed.
fn skipped(test: &str) {
    if let Some(path) = std::env::var_os("NEAP_SKIPS") {
        let mut file = fs::File::options().append(true).open(path).unwrap();
        let line = format!("SKIPPED {test}: NEAP_HELM is not set; run cargo xtask test\n");
        file.write_all(line.as_bytes()).unwrap();
    }
}

fn named(documents: &[Value]) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = documents
        .iter()
        .map(|it| (text(&it["kind"]), text(&it["metadata"]["name"])));
    names.collect()
}

#[tokio::test(start_paused = true)]
async fn the_chart_installs_what_kustomize_installs_and_a_server_accepts_it() {
    let test = "deploy::chart::the_chart_installs_what_kustomize_installs_and_a_server_accepts_it";
    let Some(documents) = rendered(test, &[]) else {
        return;
    };
    let mut kustomize = named(&installed());
    kustomize.remove(&("Namespace".to_owned(), NAMESPACE.to_owned()));
    assert_eq!(named(&documents), kustomize);
    let container = |documents: &[Value], role: &str| {
        let deployment = documents
            .iter()
            .find(|it| it["kind"] == "Deployment" && it["metadata"]["name"] == role);
        deployment.unwrap()["spec"]["template"]["spec"]["containers"][0].clone()
    };
    for role in ["controller", "payloads", "imports"] {
        let name = format!("neap-release-{role}");
        let (chart, manifest) = (container(&documents, &name), container(&installed(), &name));
        for field in ["command", "image", "ports", "securityContext", "resources"] {
            assert_eq!(chart[field], manifest[field], "{name} {field}");
        }
        let args = |container: &Value| {
            container["args"]
                .to_string()
                .replace("$(POD_NAMESPACE)", NAMESPACE)
        };
        assert_eq!(args(&chart), args(&manifest), "{name}");
    }
    let client = server().await;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    create(&client, namespace).await;
    for document in documents {
        create(&client, document).await;
    }
}

#[test]
fn on_openshift_streams_are_neither_defined_nor_imported() {
    let test = "deploy::chart::on_openshift_streams_are_neither_defined_nor_imported";
    let values = ["imageStreams=false", "monitoring=true", "dashboard=true"];
    let Some(documents) = rendered(test, &values) else {
        return;
    };
    let names = named(&documents);
    let has = |kind: &str, name: &str| names.contains(&(kind.to_owned(), name.to_owned()));
    assert!(!has(
        "CustomResourceDefinition",
        "imagestreams.image.openshift.io"
    ));
    assert!(!has("Deployment", "neap-release-imports"));
    assert!(has("Deployment", "neap-release-controller"));
    assert!(has("ServiceMonitor", "neap-release"));
    assert!(has("PrometheusRule", "neap-release"));
    assert!(has("ConfigMap", "neap-release-dashboard"));
}
