//! The chart, as Helm renders it.

use std::process::Command;

use neap_load::skip::skipped;

use super::*;

/// What Helm makes of the chart; nothing where there is no Helm.
fn rendered(test: &str, values: &[&str]) -> Option<Vec<Value>> {
    let Some(helm) = std::env::var_os("NEAP_HELM") else {
        skipped(test, "NEAP_HELM is not set; run cargo xtask test");
        return None;
    };
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/idle/chart");
    let mut command = Command::new(helm);
    command.args(["template", "elasti"]).arg(chart);
    command.args(["--namespace", "elasti"]);
    for value in values {
        command.args(["--set", value]);
    }
    let output = command.output().unwrap();
    let (text, wrong) = (output.stdout, String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{wrong}");
    let text = String::from_utf8(text).unwrap();
    let documents = text.split("\n---").map(str::trim);
    let documents = documents.filter(|document| {
        document
            .lines()
            .any(|line| !line.starts_with('#') && !line.trim().is_empty() && line.trim() != "---")
    });
    let documents = documents.map(|document| serde_saphyr::from_str(document).unwrap());
    Some(documents.collect())
}

/// Kind, namespace and name.
fn named(documents: &[Value]) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut names: Vec<_> = documents
        .iter()
        .map(|one| {
            let metadata = &one["metadata"];
            (
                text(&one["kind"]),
                text(&metadata["namespace"]),
                text(&metadata["name"]),
            )
        })
        .collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn the_chart_installs_what_kustomize_installs_and_a_server_takes_it() {
    let test = "deploy::chart::the_chart_installs_what_kustomize_installs_and_a_server_takes_it";
    let Some(documents) = rendered(test, &[]) else {
        return;
    };
    // Names and kinds of both, where each may have a few of its own.
    let chart: Vec<_> = named(&documents)
        .into_iter()
        .map(|(kind, _, name)| (kind, name))
        .collect();
    for (kind, _, name) in named(&installed()) {
        let apart = ["Namespace", "ConfigMap"].contains(&&*kind);
        let found = apart || chart.contains(&(kind.clone(), name.clone()));
        assert!(found, "the chart has no {kind} {name}: {chart:#?}");
    }
    let rules = |documents: &[Value], name: &str| {
        let found = documents.iter().find(|one| {
            one["metadata"]["name"] == name && one["kind"].as_str().unwrap().ends_with("Role")
        });
        let mut rules = found.unwrap()["rules"].as_array().unwrap().clone();
        rules.retain(|rule| rule["resources"] != json!(["tokenreviews"]));
        rules
    };
    for role in [
        "elasti-operator-manager-role",
        "elasti-resolver-role",
        "elasti-scale-targets-usual",
    ] {
        assert_eq!(rules(&documents, role), rules(&installed(), role), "{role}");
    }
    let options = Options::new(Environment::rehearsal(7));
    let pocket = Pocket::open(options).await.unwrap();
    let client = Client::new(pocket.service(), "elasti");
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elasti"}});
    create(&client, namespace).await;
    for document in documents {
        create(&client, document).await;
    }
}

#[test]
fn an_install_for_some_namespaces_has_no_rights_beyond_them() {
    let test = "deploy::chart::an_install_for_some_namespaces_has_no_rights_beyond_them";
    let values = [
        "global.allowedNamespaces={shop,office}",
        "global.authentication=false",
    ];
    let Some(documents) = rendered(test, &values) else {
        return;
    };
    let names = named(&documents);
    let everywhere = names
        .iter()
        .filter(|(kind, ..)| kind.starts_with("ClusterRole"));
    assert_eq!(everywhere.count(), 0, "{names:#?}");
    for namespace in ["shop", "office", "elasti"] {
        for role in ["elasti-operator-manager-role", "elasti-resolver-role"] {
            let role = ("Role".to_owned(), namespace.to_owned(), role.to_owned());
            assert!(names.contains(&role), "{role:?} is not in {names:#?}");
        }
    }
    let told = |name: &str| {
        let found = |one: &&Value| one["kind"] == "Deployment" && one["metadata"]["name"] == name;
        let deployment = documents.iter().find(found).unwrap();
        let variables = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
        let mut variables = variables.as_array().unwrap().iter();
        variables.any(|one| one["name"] == "WATCH_NAMESPACES")
    };
    assert!(told("elasti-operator-controller-manager"));
    assert!(told("elasti-resolver"), "resolvers look no further, either");
}

/// What the variable of a container of `name` is set to.
fn variable(documents: &[Value], name: &str, variable: &str) -> Value {
    let deployment = |one: &&Value| one["kind"] == "Deployment" && one["metadata"]["name"] == name;
    let deployment = documents.iter().find(deployment).unwrap();
    let variables = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
    let mut variables = variables.as_array().unwrap().iter();
    let found = variables.find(|one| one["name"] == variable);
    found.unwrap()["value"].clone()
}

#[test]
fn numbers_are_shown_as_values_say() {
    let test = "deploy::chart::numbers_are_shown_as_values_say";
    let Some(plain) = rendered(test, &["global.enableMonitoring=true"]) else {
        return;
    };
    let asked = [
        "global.enableMonitoring=true",
        "elastiResolver.proxy.env.unboundedMetrics=true",
        "elastiController.manager.args={--leader-elect,--metrics-secure}",
    ];
    let asked = rendered(test, &asked).unwrap();
    let unbounded = |all: &[Value]| variable(all, "elasti-resolver", "ELASTI_UNBOUNDED_METRICS");
    assert_eq!(
        (unbounded(&plain), unbounded(&asked)),
        (json!("false"), json!("true"))
    );
    let scheme = |documents: &[Value]| {
        let monitor = |one: &&Value| {
            let name = &one["metadata"]["name"];
            name == "elasti-operator-controller-manager-metrics-monitor"
        };
        let monitor = documents.iter().find(monitor).unwrap();
        monitor["spec"]["endpoints"][0]["scheme"].clone()
    };
    assert_eq!(
        (scheme(&plain), scheme(&asked)),
        (Value::Null, json!("https"))
    );
}

#[test]
fn monitors_and_the_dashboard_come_where_they_are_asked_for() {
    let test = "deploy::chart::monitors_and_the_dashboard_come_where_they_are_asked_for";
    let Some(plain) = rendered(test, &[]) else {
        return;
    };
    let asked = ["global.enableMonitoring=true", "global.dashboard=true"];
    let monitored = rendered(test, &asked).unwrap();
    let of = |documents: &[Value], kind: &str| {
        let found = named(documents).into_iter().filter(|one| one.0 == kind);
        found.map(|one| one.2).collect::<Vec<_>>()
    };
    assert!(of(&plain, "ServiceMonitor").is_empty());
    let monitors = [
        "elasti-operator-controller-manager-metrics-monitor",
        "elasti-resolver-metrics-monitor",
    ];
    assert_eq!(of(&monitored, "ServiceMonitor"), monitors);
    let dashboard = monitored
        .iter()
        .find(|one| one["metadata"]["name"] == "elasti-dashboard");
    let data = &dashboard.unwrap()["data"]["idle.json"];
    let read: Value = serde_json::from_str(data.as_str().unwrap()).unwrap();
    let committed: Value = serde_json::from_str(&text("dashboard/idle.json")).unwrap();
    assert_eq!(read, committed);
}
