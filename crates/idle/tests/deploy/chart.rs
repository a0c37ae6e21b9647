//! The chart, as Helm renders it.

use std::{
    collections::BTreeSet,
    process::{Command, Output},
};

use neap_load::skip::skipped;

use super::*;

/// The image in the manifests.
const IMAGE: [&str; 2] = [
    "global.image.registry=ghcr.io",
    "global.image.repository=neaptide/neap",
];

/// The chart as Helm renders it with an image; `None` without Helm.
pub(super) fn rendered(test: &str, values: &[&str]) -> Option<Vec<Value>> {
    let set = IMAGE.iter().chain(values);
    let set = set.flat_map(|value| ["--set", *value]);
    rendered_with(test, &set.collect::<Vec<_>>())
}

/// The same with arguments for Helm.
pub(super) fn rendered_with(test: &str, arguments: &[&str]) -> Option<Vec<Value>> {
    let output = helm(test, "idle", arguments)?;
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

/// What Helm makes of the chart of an area.
fn helm(test: &str, area: &str, arguments: &[&str]) -> Option<Output> {
    let Some(helm) = std::env::var_os("NEAP_HELM") else {
        skipped(test, "NEAP_HELM is not set; run cargo xtask test");
        return None;
    };
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../deploy/{area}/chart"));
    let mut command = Command::new(helm);
    command.args(["template", "elasti"]).arg(chart);
    command.args(["--namespace", "elasti"]).args(arguments);
    Some(command.output().unwrap())
}

#[test]
fn charts_require_an_image() {
    let test = "deploy::chart::charts_require_an_image";
    for (area, own) in [
        ("idle", "global.image.repository=tools/neap"),
        ("farm", "image.repository=tools/neap"),
    ] {
        let Some(refused) = helm(test, area, &[]) else {
            return;
        };
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success(), "{area} has an image");
        let expected = "image.repository to the image that you have pushed";
        assert!(text.contains(expected), "{text}");
        // Without a registry, the container runtime's own.
        let rendered = helm(test, area, &["--set", own]).unwrap();
        let text = String::from_utf8(rendered.stdout).unwrap();
        let images = text.lines().map(str::trim);
        let images = images.filter(|line| line.starts_with("image: "));
        let images: BTreeSet<_> = images.map(|line| line.replace('"', "")).collect();
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!("image: tools/neap:{version}");
        assert_eq!(images, BTreeSet::from([expected]), "{area}");
    }
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
async fn the_chart_installs_what_kustomize_installs_and_a_server_accepts_it() {
    let test = "deploy::chart::the_chart_installs_what_kustomize_installs_and_a_server_accepts_it";
    let Some(documents) = rendered(test, &[]) else {
        return;
    };
    // The chart may have more objects, and two kinds are only in Kustomize.
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
        "elasti-operator-additional-access",
        "elasti-resolver-additional-access",
        "elasti-scale-targets-usual",
    ] {
        assert_eq!(rules(&documents, role), rules(&installed(), role), "{role}");
    }
    let options = Options::new(Environment::simulated(7));
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
        for role in [
            "elasti-operator-manager-role",
            "elasti-operator-additional-access",
            "elasti-resolver-additional-access",
        ] {
            let role = ("Role".to_owned(), namespace.to_owned(), role.to_owned());
            assert!(names.contains(&role), "{role:?} is not in {names:#?}");
        }
    }
    let limited = |name: &str| entry(&documents, name, "WATCH_NAMESPACES").is_some();
    assert!(limited("elasti-operator-controller-manager"));
    assert!(
        limited("elasti-resolver"),
        "resolvers watch the same namespaces"
    );
}

#[test]
fn the_operator_may_scale_the_kinds_in_values() {
    let test = "deploy::chart::the_operator_may_scale_the_kinds_in_values";
    let target = [
        "global.scaleTargets[0].apiGroup=example.com",
        "global.scaleTargets[0].resource=lamps",
    ];
    let Some(everywhere) = rendered(test, &target) else {
        return;
    };
    let some = [&target[..], &["global.allowedNamespaces={shop}"]].concat();
    let some = rendered(test, &some).unwrap();
    let wanted = [
        json!({"apiGroups": ["example.com"], "resources": ["lamps"], "verbs": ["get", "list", "watch"]}),
        json!({"apiGroups": ["example.com"], "resources": ["lamps/scale"], "verbs": ["get", "patch"]}),
    ];
    let grants = |role: &Value| {
        let rules = role["rules"].as_array().unwrap();
        wanted.iter().all(|rule| rules.contains(rule))
    };
    let usual = "elasti-scale-targets-usual";
    assert!(grants(found(&everywhere, "ClusterRole", usual)));
    let roles = some.iter().filter(|one| {
        one["kind"] == "Role" && one["metadata"]["name"] == "elasti-operator-additional-access"
    });
    let roles: Vec<_> = roles.collect();
    assert_eq!(roles.len(), 2, "one there, and one where the operator is");
    assert!(roles.into_iter().all(grants));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of objects")]
fn objects_have_the_names_and_labels_that_selectors_of_users_name() {
    let test = "deploy::chart::objects_have_the_names_and_labels_that_selectors_of_users_name";
    let Some(documents) = rendered(test, &["global.enableMonitoring=true"]) else {
        return;
    };
    let (operator, resolver) = ("elasti-operator", "elasti-resolver");
    for (kind, name, of, more) in [
        (
            "Deployment",
            "elasti-operator-controller-manager",
            operator,
            Some(("control-plane", "controller-manager")),
        ),
        (
            "Service",
            "elasti-operator-controller-service",
            operator,
            Some(("control-plane", "controller-manager")),
        ),
        (
            "ServiceAccount",
            "elasti-operator-controller-manager",
            operator,
            None,
        ),
        (
            "ClusterRole",
            "elasti-operator-manager-role",
            operator,
            None,
        ),
        (
            "ClusterRole",
            "elasti-operator-additional-access",
            operator,
            None,
        ),
        (
            "ClusterRoleBinding",
            "elasti-operator-operator-additional-access-binding",
            operator,
            None,
        ),
        (
            "ServiceMonitor",
            "elasti-operator-controller-manager-metrics-monitor",
            operator,
            Some(("control-plane", "controller-manager")),
        ),
        (
            "Deployment",
            "elasti-resolver",
            resolver,
            Some(("app", "elasti-resolver")),
        ),
        (
            "Service",
            "elasti-resolver-service",
            resolver,
            Some(("app.kubernetes.io/prometheus", "elasti-resolver")),
        ),
        (
            "ClusterRole",
            "elasti-resolver-additional-access",
            resolver,
            None,
        ),
        (
            "ClusterRoleBinding",
            "elasti-resolver-additional-access-binding",
            resolver,
            None,
        ),
        (
            "ServiceMonitor",
            "elasti-resolver-metrics-monitor",
            resolver,
            Some(("group", "elasti")),
        ),
        (
            "CustomResourceDefinition",
            "elastiservices.elasti.truefoundry.com",
            "elasti",
            None,
        ),
    ] {
        let labels = &found(&documents, kind, name)["metadata"]["labels"];
        assert_eq!(labels["app.kubernetes.io/name"], of, "{kind} {name}");
        assert_eq!(
            labels["app.kubernetes.io/part-of"], "elasti",
            "{kind} {name}"
        );
        assert_eq!(
            labels["app.kubernetes.io/instance"], "elasti",
            "{kind} {name}"
        );
        if let Some((label, value)) = more {
            assert_eq!(labels[label], value, "{kind} {name}");
        }
    }
    for name in ["elasti-operator-controller-manager", "elasti-resolver"] {
        let pods = &found(&documents, "Deployment", name)["spec"]["template"];
        assert_eq!(
            pods["metadata"]["labels"]["app.kubernetes.io/name"],
            "elasti"
        );
        assert_eq!(
            pods["spec"]["securityContext"]["runAsGroup"], 65532,
            "{name}"
        );
    }
    let operator = found(
        &documents,
        "Deployment",
        "elasti-operator-controller-manager",
    );
    let annotations = &operator["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(
        annotations["kubectl.kubernetes.io/default-container"],
        "manager"
    );
}

/// The object of this kind and name.
pub(super) fn found<'a>(documents: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = |one: &&Value| one["kind"] == kind && one["metadata"]["name"] == name;
    let found = documents.iter().find(found);
    found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

/// The container of the Deployment of this name.
pub(super) fn container<'a>(documents: &'a [Value], name: &str) -> &'a Value {
    &found(documents, "Deployment", name)["spec"]["template"]["spec"]["containers"][0]
}

/// The entry of a container's variable.
pub(super) fn entry<'a>(documents: &'a [Value], name: &str, variable: &str) -> Option<&'a Value> {
    let variables = container(documents, name)["env"].as_array().unwrap();
    variables.iter().find(|one| one["name"] == variable)
}

/// The value of a container's variable.
pub(super) fn variable(documents: &[Value], name: &str, variable: &str) -> Value {
    entry(documents, name, variable).unwrap()["value"].clone()
}

#[test]
fn metrics_follow_values() {
    let test = "deploy::chart::metrics_follow_values";
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
    // The monitor does not depend on the arguments for port 8080.
    let endpoints = |all: &[Value]| {
        let name = "elasti-operator-controller-manager-metrics-monitor";
        found(all, "ServiceMonitor", name)["spec"]["endpoints"].clone()
    };
    let expected = json!([{"port": "custom-port", "path": "/metrics"}]);
    assert_eq!(endpoints(&plain), expected);
    assert_eq!(endpoints(&asked), expected);
}

/// Asserts that every ServiceMonitor names a port of a Service that it selects, and that pods have it.
pub(super) fn monitors_lead_to_pods(documents: &[Value]) {
    let of = |kind: &'static str| documents.iter().filter(move |one| one["kind"] == kind);
    assert_eq!(of("ServiceMonitor").count(), 2);
    for monitor in of("ServiceMonitor") {
        let name = &monitor["metadata"]["name"];
        let wanted = monitor["spec"]["selector"]["matchLabels"].as_object();
        let selects = |service: &&Value| {
            let labels = &service["metadata"]["labels"];
            let mut wanted = wanted.unwrap().iter();
            wanted.all(|(label, value)| labels[label] == *value)
        };
        let named = &monitor["spec"]["endpoints"][0]["port"];
        let services = of("Service").filter(selects);
        let ports = services.flat_map(|one| one["spec"]["ports"].as_array().unwrap());
        let ports: Vec<_> = ports.filter(|port| port["name"] == *named).collect();
        assert_eq!(ports.len(), 1, "{name}: Services with the port {named}");
        let target = &ports[0]["targetPort"];
        let led = |one: &&Value| {
            let ports = &one["spec"]["template"]["spec"]["containers"][0]["ports"];
            let mut ports = ports.as_array().unwrap().iter();
            ports.any(|port| port["name"] == *target)
        };
        assert_eq!(of("Deployment").filter(led).count(), 1, "{name}");
    }
}

#[test]
fn monitors_name_existing_ports() {
    let mut kustomize = installed();
    kustomize.extend(documents("kustomize/monitoring/monitors.yaml"));
    monitors_lead_to_pods(&kustomize);
    let test = "deploy::chart::monitors_name_existing_ports";
    let Some(chart) = rendered(test, &["global.enableMonitoring=true"]) else {
        return;
    };
    monitors_lead_to_pods(&chart);
}

#[test]
fn chart_and_kustomize_agree_on_ports_and_selectors() {
    let test = "deploy::chart::chart_and_kustomize_agree_on_ports_and_selectors";
    let Some(chart) = rendered(test, &[]) else {
        return;
    };
    let kustomization = text("kustomize/kustomization.yaml");
    let kustomization: Value = serde_saphyr::from_str(&kustomization).unwrap();
    // Kustomize adds these to selectors and labels.
    let pairs = kustomization["labels"][0]["pairs"].as_object().unwrap();
    let with_pairs = |labels: &Value| {
        let mut labels = labels.clone();
        for (name, value) in pairs {
            labels[name] = value.clone();
        }
        labels
    };
    for ours in installed() {
        let kind = ours["kind"].as_str().unwrap();
        let selector = match kind {
            "Service" => "/spec/selector",
            "Deployment" | "PodDisruptionBudget" => "/spec/selector/matchLabels",
            _ => continue,
        };
        let name = ours["metadata"]["name"].as_str().unwrap();
        let theirs = found(&chart, kind, name);
        let selects = with_pairs(ours.pointer(selector).unwrap());
        assert_eq!(selects, *theirs.pointer(selector).unwrap(), "{kind} {name}");
        assert_eq!(
            ours["spec"]["ports"], theirs["spec"]["ports"],
            "{kind} {name}"
        );
        if kind != "Deployment" {
            continue;
        }
        let (ours, theirs) = (&ours["spec"]["template"], &theirs["spec"]["template"]);
        let (own, metadata) = (&ours["metadata"], &theirs["metadata"]);
        assert_eq!(with_pairs(&own["labels"]), metadata["labels"], "{name}");
        assert_eq!(own["annotations"], metadata["annotations"], "{name}");
        let (own, container) = (&ours["spec"]["containers"][0], container(&chart, name));
        for field in ["name", "image", "command", "args", "ports", "resources"] {
            assert_eq!(own[field], container[field], "{field} of {name}");
        }
    }
}

#[test]
fn monitors_and_the_dashboard_are_optional() {
    let test = "deploy::chart::monitors_and_the_dashboard_are_optional";
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
