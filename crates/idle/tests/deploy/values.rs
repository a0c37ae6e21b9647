//! A values file of KubeElasti 0.1.30: each of its values arrives where it belongs.

use std::{collections::BTreeSet, time::Duration};

use super::{
    chart::{container, entry, found, monitors_lead_to_pods, rendered_with},
    *,
};

const OPERATOR: &str = "calm-operator-controller-manager";
const RESOLVER: &str = "calm-resolver";

/// The chart as Helm renders it with the file.
fn filled(test: &str) -> Option<Vec<Value>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/deploy/values.yaml");
    rendered_with(test, &["--values", file.to_str().unwrap()])
}

fn pods<'a>(documents: &'a [Value], name: &str) -> &'a Value {
    &found(documents, "Deployment", name)["spec"]["template"]
}

/// Deployment, own label and Services of operator and resolver.
const PARTS: [(&str, [&str; 2], &[&str]); 2] = [
    (
        OPERATOR,
        ["control-plane", "controller-manager"],
        &[
            "calm-operator-controller-service",
            "calm-operator-controller-manager-metrics-service",
        ],
    ),
    (
        RESOLVER,
        ["app", "elasti-resolver"],
        &["calm-resolver-service"],
    ),
];

#[test]
fn names_follow_values_and_selectors_do_not() {
    let test = "deploy::values::names_follow_values_and_selectors_do_not";
    let Some(documents) = filled(test) else {
        return;
    };
    for (name, [label, value], services) in PARTS {
        let selector = json!({
            "app.kubernetes.io/name": "elasti",
            "app.kubernetes.io/instance": "elasti",
            label: value,
        });
        let deployment = found(&documents, "Deployment", name);
        assert_eq!(deployment["spec"]["selector"]["matchLabels"], selector);
        let labels = &pods(&documents, name)["metadata"]["labels"];
        for (label, value) in selector.as_object().unwrap() {
            assert_eq!(labels[label], *value, "{label} of the pods of {name}");
        }
        for service in services {
            let service = found(&documents, "Service", service);
            assert_eq!(service["spec"]["selector"], selector);
        }
        let account = &pods(&documents, name)["spec"]["serviceAccountName"];
        assert_eq!(account, name);
        found(&documents, "ServiceAccount", name);
    }
    monitors_lead_to_pods(&documents);
}

/// Objects by kind and name, and the names of their labels and annotations from the file besides `all`. In
/// the file the value of each label is `labels`, and that of each annotation `annotations`.
const OBJECTS: [(&str, &str, &[&str]); 14] = [
    (
        "Deployment",
        OPERATOR,
        &["operator", "operator-deployment", "all-deployments"],
    ),
    (
        "Deployment",
        RESOLVER,
        &["resolver", "resolver-deployment", "all-deployments"],
    ),
    (
        "Service",
        "calm-operator-controller-service",
        &["operator", "operator-service", "all-services"],
    ),
    (
        "Service",
        "calm-operator-controller-manager-metrics-service",
        &["operator", "metrics-service", "all-services"],
    ),
    (
        "Service",
        "calm-resolver-service",
        &[
            "resolver",
            "resolver-service",
            "proxy-service",
            "all-services",
        ],
    ),
    (
        "ServiceAccount",
        OPERATOR,
        &["operator", "operator-account", "all-accounts"],
    ),
    (
        "ServiceAccount",
        RESOLVER,
        &["resolver", "resolver-account", "all-accounts"],
    ),
    (
        "ServiceMonitor",
        "calm-operator-controller-manager-metrics-monitor",
        &["operator", "operator-monitor"],
    ),
    (
        "ServiceMonitor",
        "calm-resolver-metrics-monitor",
        &["resolver", "resolver-monitor"],
    ),
    ("HorizontalPodAutoscaler", RESOLVER, &["resolver"]),
    ("PodDisruptionBudget", RESOLVER, &["resolver"]),
    ("Role", "calm-operator-manager-role", &["operator"]),
    (
        "RoleBinding",
        "calm-resolver-additional-access-binding",
        &["resolver"],
    ),
    ("ClusterRole", "calm-token-reviewer", &[]),
];

/// The names from the file in `what`, which is `labels` or `annotations`.
fn words<'a>(metadata: &'a Value, what: &str) -> BTreeSet<&'a str> {
    let all = metadata[what].as_object().into_iter().flatten();
    let own = all.filter(|(_, value)| **value == what);
    own.map(|(name, _)| name.as_str()).collect()
}

fn assert_names(metadata: &Value, more: &[&str], of: &str) {
    let expected: BTreeSet<_> = more.iter().copied().chain(["all"]).collect();
    for what in ["labels", "annotations"] {
        assert_eq!(words(metadata, what), expected, "{what} of {of}");
    }
}

#[test]
fn labels_and_annotations_arrive() {
    let test = "deploy::values::labels_and_annotations_arrive";
    let Some(documents) = filled(test) else {
        return;
    };
    for (kind, name, more) in OBJECTS {
        let metadata = &found(&documents, kind, name)["metadata"];
        assert_names(metadata, more, &format!("{kind} {name}"));
    }
    for (name, part, own) in [
        (OPERATOR, "operator", "operator-pods"),
        (RESOLVER, "resolver", "resolver-pods"),
    ] {
        let metadata = &pods(&documents, name)["metadata"];
        assert_names(
            metadata,
            &[part, own, "all-pods"],
            &format!("pods of {name}"),
        );
    }
    // The definition is generated from the types.
    let rest = |one: &&Value| one["kind"] != "CustomResourceDefinition";
    for one in documents.iter().filter(rest) {
        let name = &one["metadata"]["name"];
        for what in ["labels", "annotations"] {
            assert_eq!(one["metadata"][what]["all"], what, "{what} of {name}");
        }
    }
}

#[test]
fn the_most_specific_value_wins_and_selector_labels_are_never_replaced() {
    let test =
        "deploy::values::the_most_specific_value_wins_and_selector_labels_are_never_replaced";
    let Some(documents) = filled(test) else {
        return;
    };
    for (kind, name, near) in [
        (
            "Service",
            "calm-operator-controller-service",
            "operator-service",
        ),
        ("Service", "calm-resolver-service", "services"),
        ("Deployment", OPERATOR, "operator"),
        ("Deployment", RESOLVER, "global"),
    ] {
        let labels = &found(&documents, kind, name)["metadata"]["labels"];
        assert_eq!(labels["near"], near, "{kind} {name}");
    }
    let labels = &pods(&documents, OPERATOR)["metadata"]["labels"];
    assert_eq!(labels["near"], "pods");
    assert_eq!(labels["control-plane"], "controller-manager");
    let scraped = |name: &str| {
        let annotations = &pods(&documents, name)["metadata"]["annotations"];
        let names = ["scrape", "path", "port"];
        names.map(|name| annotations[format!("prometheus.io/{name}")].clone())
    };
    assert_eq!(scraped(OPERATOR), ["false", "/metrics", "9013"]);
    assert_eq!(scraped(RESOLVER), ["true", "/metrics", "9113"]);
}

#[test]
fn pods_follow_values() {
    let test = "deploy::values::pods_follow_values";
    let Some(documents) = filled(test) else {
        return;
    };
    let chart: Value = serde_saphyr::from_str(&text("chart/Chart.yaml")).unwrap();
    let version = chart["appVersion"].as_str().unwrap();
    let operator = json!({
        "image": "operators.example.com/our/operator:1.5",
        "imagePullPolicy": "Always",
        "resources": {
            "limits": {"cpu": "300m", "memory": "90Mi"},
            "requests": {"cpu": "110m", "memory": "50Mi"},
        },
    });
    // The registry is the global one, and the tag that of the chart.
    let resolver = json!({
        "image": format!("images.example.com/our/resolver:{version}"),
        "imagePullPolicy": "Never",
        "resources": {
            "limits": {"cpu": "400m", "memory": "100Mi"},
            "requests": {"cpu": "120m", "memory": "60Mi"},
        },
    });
    for (name, expected, affinity, of, group) in [
        (OPERATOR, operator, "podAntiAffinity", "operators", 2001),
        (RESOLVER, resolver, "podAffinity", "resolvers", 3001),
    ] {
        let (container, pods) = (container(&documents, name), &pods(&documents, name)["spec"]);
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(container[field], *value, "{field} of {name}");
        }
        assert_eq!(container["securityContext"]["runAsGroup"], group + 1);
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert_eq!(pods["securityContext"]["fsGroup"], group);
        assert_eq!(pods["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pods["imagePullSecrets"], json!([{"name": "pull"}]));
        assert_eq!(pods["nodeSelector"], json!({"for": of}));
        let tolerations = json!([{"key": of, "operator": "Exists"}]);
        assert_eq!(pods["tolerations"], tolerations);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let term = &pods["affinity"][affinity][required][0];
        assert_eq!(term["topologyKey"], of, "{name}");
    }
}

/// The variables of a container, without those from a Secret.
fn variables(documents: &[Value], name: &str) -> BTreeMap<String, String> {
    let variables = container(documents, name)["env"].as_array().unwrap();
    let plain = variables.iter().filter_map(|one| {
        let (name, value) = (one["name"].as_str()?, one["value"].as_str()?);
        Some((name.to_owned(), value.to_owned()))
    });
    plain.collect()
}

#[test]
fn variables_and_arguments_follow_values() {
    let test = "deploy::values::variables_and_arguments_follow_values";
    let Some(documents) = filled(test) else {
        return;
    };
    let read = variables(&documents, OPERATOR);
    let words = container(&documents, OPERATOR)["args"].as_array().unwrap();
    let words = words.iter().map(|word| word.as_str().unwrap().to_owned());
    let operator = OperatorOptions::read(words, &|name| read.get(name).cloned()).unwrap();
    assert!(operator.leader_elect && operator.metrics.is_none());
    assert!(!operator.allow_unauthenticated_resolvers);
    assert_eq!(operator.polling_interval, Duration::from_secs(45));
    let address = operator.prometheus.address.as_deref();
    assert_eq!(address, Some("http://prometheus.monitoring:9090"));
    let authorization = operator.prometheus.authorization.as_ref();
    assert_eq!(authorization.unwrap(), "Bearer one");
    let namespaces: Vec<_> = operator.namespaces.iter().map(String::as_str).collect();
    assert_eq!(namespaces, ["elasti", "office", "shop"]);
    let installation = &operator.installation;
    assert_eq!(
        (
            &*installation.operator_deployment,
            &*installation.resolver_deployment
        ),
        (OPERATOR, RESOLVER)
    );
    assert_eq!(
        (
            &*installation.operator_account,
            &*installation.resolver_account
        ),
        (OPERATOR, RESOLVER)
    );

    let read = variables(&documents, RESOLVER);
    let resolver = ResolverOptions::read(&|name| read.get(name).cloned()).unwrap();
    assert_eq!(resolver.installation, operator.installation);
    assert_eq!(resolver.host_routing.domain, "cluster.home");
    let header = resolver.host_routing.header.as_ref();
    assert_eq!(header.unwrap(), "x-our-host");
    let defaults = &resolver.route_defaults;
    assert_eq!(defaults.deadline, Duration::from_secs(61));
    assert_eq!(defaults.limits.requests, 2_000_062);
    assert!(!resolver.allow_unauthenticated_operators);
    // Values without an effect arrive as well, so that the resolver can warn about them.
    for (name, value) in [
        ("QUEUE_RETRY_DURATION", "4"),
        ("MAX_QUEUE_CONCURRENCY", "63"),
        ("INITIAL_CAPACITY", "64"),
        ("TRAFFIC_RE_ENABLE_DURATION", "6"),
        ("OPERATOR_RETRY_DURATION", "11"),
        ("MAX_IDLE_PROXY_CONNS", "65"),
        ("MAX_IDLE_PROXY_CONNS_PER_HOST", "66"),
        ("CRD_CACHE_POLL_INTERVAL_MINUTES", "7"),
    ] {
        assert_eq!(read[name], value, "{name}");
        assert!(resolver.ignored_variables.contains(&name), "{name}");
    }
}

#[test]
fn the_target_of_error_reports_follows_values() {
    let test = "deploy::values::the_target_of_error_reports_follows_values";
    let Some(documents) = filled(test) else {
        return;
    };
    for (name, key, environment) in [
        (OPERATOR, "operatorSentryDsn", "operators"),
        (RESOLVER, "resolverSentryDsn", "resolvers"),
    ] {
        let address = entry(&documents, name, "SENTRY_DSN").unwrap();
        let secret = json!({"secretKeyRef": {"name": "our-secret", "key": key}});
        assert_eq!(address["valueFrom"], secret, "{name}");
        let variable = entry(&documents, name, "SENTRY_ENVIRONMENT").unwrap();
        assert_eq!(variable["value"], environment, "{name}");
    }
}

#[test]
fn services_and_replicas_follow_values() {
    let test = "deploy::values::services_and_replicas_follow_values";
    let Some(documents) = filled(test) else {
        return;
    };
    for (name, kind, ports) in [
        (
            "calm-operator-controller-service",
            "LoadBalancer",
            json!([["custom-port", 9013]]),
        ),
        (
            "calm-operator-controller-manager-metrics-service",
            "NodePort",
            json!([["http", 9080]]),
        ),
        (
            "calm-resolver-service",
            "NodePort",
            json!([
                ["http-resolver", 9113],
                ["http-resolver-reverse-proxy", 9112]
            ]),
        ),
    ] {
        let spec = &found(&documents, "Service", name)["spec"];
        assert_eq!(spec["type"], kind, "{name}");
        let found = spec["ports"].as_array().unwrap().iter();
        let found: Vec<_> = found
            .map(|port| json!([port["name"], port["port"]]))
            .collect();
        assert_eq!(json!(found), ports, "{name}");
    }
    let replicas = |name: &str| &found(&documents, "Deployment", name)["spec"]["replicas"];
    assert_eq!(*replicas(OPERATOR), 1);
    assert_eq!(*replicas(RESOLVER), Value::Null, "its autoscaler decides");
    let scaler = &found(&documents, "HorizontalPodAutoscaler", RESOLVER)["spec"];
    assert_eq!(scaler["scaleTargetRef"]["name"], RESOLVER);
    assert_eq!(
        (&scaler["minReplicas"], &scaler["maxReplicas"]),
        (&json!(3), &json!(8))
    );
    let target = &scaler["metrics"][0]["resource"]["target"];
    assert_eq!(target["averageUtilization"], 55);
}

#[tokio::test(start_paused = true)]
async fn a_server_accepts_the_rendered_file() {
    let test = "deploy::values::a_server_accepts_the_rendered_file";
    let Some(documents) = filled(test) else {
        return;
    };
    let options = Options::new(Environment::simulated(7));
    let pocket = Pocket::open(options).await.unwrap();
    let client = Client::new(pocket.service(), "elasti");
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elasti"}});
    create(&client, namespace).await;
    let kinds = [
        "Deployment",
        "HorizontalPodAutoscaler",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    ];
    for document in documents {
        if kinds.contains(&document["kind"].as_str().unwrap()) {
            create(&client, document).await;
        }
    }
}
