//! The manifests and the chart: they match the code, and have the names of KubeElasti 0.1.30.

#![expect(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

mod chart;
mod dashboard;
mod moving;
mod rights;
#[path = "../stand_in/stubs.rs"]
mod stubs;
mod values;

use std::{collections::BTreeMap, fs, path::Path};

use kube::{
    Api, Client, CustomResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use neap_idle::{api::ElastiService, operator::OperatorOptions, resolver::ResolverOptions};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};

fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/idle");
    fs::read_to_string(root.join(path)).unwrap()
}

fn documents(path: &str) -> Vec<Value> {
    let text = text(path);
    let documents = text.split("\n---\n");
    documents
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .collect()
}

fn definition() -> Value {
    // Through YAML, so that numbers compare as in JSON: 1 and 1.0 are equal to a server.
    let text = serde_saphyr::to_string(&ElastiService::crd()).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

#[test]
fn the_definition_matches_the_types() {
    let committed = &documents("kustomize/crd.yaml")[0];
    assert_eq!(*committed, definition(), "run `cargo xtask generate`");
    let chart = text("chart/templates/crd.yaml");
    let lines = chart
        .lines()
        .filter(|line| !line.trim_start().starts_with("{{-"));
    let mut chart: Value = serde_saphyr::from_str(&lines.collect::<Vec<_>>().join("\n")).unwrap();
    let metadata = chart["metadata"].as_object_mut().unwrap();
    assert_eq!(
        metadata.remove("annotations"),
        Some(json!({"helm.sh/resource-policy": "keep"}))
    );
    // Helm fills them in.
    assert_eq!(metadata.remove("labels"), Some(Value::Null));
    assert_eq!(chart, definition(), "run `cargo xtask generate`");
}

/// The fields of KubeElasti 0.1.30: path, type, whether it is required, and the rest of its schema. An enum
/// may be wider here, or absent.
const FIELDS: &str = r#"
spec.service string required {}
spec.scaleTargetRef object required {}
spec.scaleTargetRef.apiVersion string required {"enum":["apps/v1","argoproj.io/v1alpha1"]}
spec.scaleTargetRef.kind string required {"enum":["deployments","rollouts","Deployment","StatefulSet","Rollout"]}
spec.scaleTargetRef.name string required {}
spec.minTargetReplicas integer optional {"format":"int32","minimum":1}
spec.cooldownPeriod integer optional {"format":"int32","minimum":0,"maximum":604800,"default":900}
spec.triggers array optional {"minItems":null}
spec.triggers[].type string required {"enum":["prometheus"]}
spec.triggers[].metadata any optional {"x-kubernetes-preserve-unknown-fields":true}
spec.autoscaler object optional {}
spec.autoscaler.type string required {"enum":["hpa","keda"]}
spec.autoscaler.name string required {}
spec.enabledPeriod object optional {}
spec.enabledPeriod.schedule string optional {"default":"0 0 * * *"}
spec.enabledPeriod.duration string optional {"default":"24h"}
spec.probeResponse array optional {"maxItems":32}
spec.probeResponse[].method string optional {"enum":["GET","HEAD","POST","PUT","DELETE","CONNECT","OPTIONS","TRACE","PATCH"]}
spec.probeResponse[].path object optional {}
spec.probeResponse[].path.type string optional {"enum":["Exact","PathPrefix","RegularExpression"]}
spec.probeResponse[].path.value string optional {"maxLength":1024}
spec.probeResponse[].headers array optional {"maxItems":16}
spec.probeResponse[].headers[].name string required {"maxLength":256}
spec.probeResponse[].headers[].value string required {"maxLength":4096}
spec.probeResponse[].headers[].type string optional {"enum":["Exact","RegularExpression"]}
spec.probeResponse[].queryParams array optional {"maxItems":16}
spec.probeResponse[].queryParams[].name string required {"maxLength":256}
spec.probeResponse[].queryParams[].value string required {"maxLength":1024}
spec.probeResponse[].queryParams[].type string optional {"enum":["Exact","RegularExpression"]}
spec.probeResponse[].response object required {}
spec.probeResponse[].response.status integer required {"enum":[200,204,400,401,403,404,500,502,503,504]}
spec.probeResponse[].response.body string required {}
status.lastReconciledTime string optional {"format":"date-time"}
status.lastScaledUpTime string optional {"format":"date-time"}
status.mode string optional {"enum":["proxy","serve"]}
"#;

/// Path, type, whether it is required, and the rest of its schema.
fn fields() -> Vec<(&'static str, &'static str, bool, Value)> {
    let lines = FIELDS.trim().lines().map(|line| {
        let parts: Vec<_> = line.splitn(4, ' ').collect();
        let [path, kind, required, says] = parts[..] else {
            panic!("{line}");
        };
        let says = serde_json::from_str(says).unwrap();
        (path, kind, required == "required", says)
    });
    lines.collect()
}

/// The schema at `path`, and whether the object around it requires it.
fn at<'a>(schema: &'a Value, path: &str) -> (&'a Value, bool) {
    let (mut schema, mut required) = (schema, false);
    for part in path.split('.') {
        let name = part.trim_end_matches("[]");
        let names = schema["required"].as_array();
        required = names.is_some_and(|names| names.contains(&json!(name)));
        schema = &schema["properties"][name];
        if part.ends_with("[]") {
            schema = &schema["items"];
        }
    }
    (schema, required)
}

/// Whether a schema with `ours` accepts everything that one with `theirs` accepts.
fn accepts(name: &str, ours: &Value, theirs: &Value) -> bool {
    match name {
        "enum" => {
            let ours = ours.as_array().cloned();
            let theirs = theirs.as_array().cloned().unwrap_or_default();
            ours.is_none_or(|ours| theirs.iter().all(|one| ours.contains(one)))
        }
        _ => match (ours.as_f64(), theirs.as_f64()) {
            (Some(ours), Some(theirs)) => (ours - theirs).abs() < f64::EPSILON,
            _ => ours == theirs,
        },
    }
}

#[test]
fn every_field_and_limit_of_kubeelasti_exists() {
    let definition = definition();
    let version = &definition["spec"]["versions"][0];
    let schema = &version["schema"]["openAPIV3Schema"];
    for (path, kind, required, says) in fields() {
        let (found, is_required) = at(schema, path);
        assert!(found.is_object(), "{path} is missing");
        assert_eq!(found["type"].as_str().unwrap_or("any"), kind, "{path}");
        assert_eq!(is_required, required, "{path}");
        for (name, value) in says.as_object().unwrap() {
            let ours = &found[name];
            assert!(
                accepts(name, ours, value),
                "{path} {name}: {ours} for {value}"
            );
        }
    }
    let names = &definition["spec"]["names"];
    assert_eq!(
        definition["metadata"]["name"],
        "elastiservices.elasti.truefoundry.com"
    );
    assert_eq!(definition["spec"]["group"], "elasti.truefoundry.com");
    assert_eq!(definition["spec"]["scope"], "Namespaced");
    assert_eq!(
        (&names["plural"], &names["singular"]),
        (&json!("elastiservices"), &json!("elastiservice"))
    );
    assert_eq!(version["name"], "v1alpha1");
    assert_eq!(
        (&version["served"], &version["storage"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(version["subresources"], json!({"status": {}}));
}

#[test]
fn no_field_beyond_kubeelasti_is_required() {
    fn walk(schema: &Value, path: &str, known: &[String], wrong: &mut Vec<String>) {
        for name in schema["required"].as_array().into_iter().flatten() {
            let inner = format!("{path}{}", name.as_str().unwrap());
            let ours = path.split(['.', '[']).any(|part| {
                [
                    "ports",
                    "queue",
                    "conditions",
                    "handOff",
                    "lastWake",
                    "resting",
                    "wouldSleep",
                    "notReady",
                ]
                .contains(&part)
            });
            if !ours && !known.contains(&inner) {
                wrong.push(inner);
            }
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let array = if inner["type"] == "array" { "[]" } else { "" };
            let below = if array.is_empty() {
                inner
            } else {
                &inner["items"]
            };
            walk(below, &format!("{path}{name}{array}."), known, wrong);
        }
    }
    let definition = definition();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let known: Vec<String> = fields().iter().map(|field| field.0.to_owned()).collect();
    let known = [known, vec!["spec".to_owned()]].concat();
    let mut wrong = Vec::new();
    walk(schema, "", &known, &mut wrong);
    assert_eq!(wrong, [] as [&str; 0]);
}

fn installed() -> Vec<Value> {
    let files = ["namespace", "crd", "rbac", "places", "operator", "resolver"];
    let files = files.map(|file| documents(&format!("kustomize/{file}.yaml")));
    files.into_iter().flatten().collect()
}

#[test]
fn names_are_those_of_kubeelasti() {
    let installed = installed();
    let has = |kind: &str, name: &str| {
        let found = |one: &Value| one["kind"] == kind && one["metadata"]["name"] == name;
        assert!(installed.iter().any(found), "{kind} {name}");
    };
    has("Namespace", "elasti");
    has("Deployment", "elasti-operator-controller-manager");
    has("Deployment", "elasti-resolver");
    has("Service", "elasti-operator-controller-service");
    has(
        "Service",
        "elasti-operator-controller-manager-metrics-service",
    );
    has("Service", "elasti-resolver-service");
    has("ServiceAccount", "elasti-operator-controller-manager");
    has("ServiceAccount", "elasti-resolver");
    has("PodDisruptionBudget", "elasti-resolver");
    let ports = |name: &str| -> Vec<(String, i64)> {
        let service = |one: &&Value| one["kind"] == "Service" && one["metadata"]["name"] == name;
        let service = installed.iter().find(service).unwrap();
        let ports = service["spec"]["ports"].as_array().unwrap().iter();
        let port = |port: &Value| {
            (
                port["name"].as_str().unwrap().to_owned(),
                port["port"].as_i64().unwrap(),
            )
        };
        ports.map(port).collect()
    };
    assert_eq!(
        ports("elasti-operator-controller-service"),
        [("custom-port".to_owned(), 8013)]
    );
    let resolver = [
        ("http-resolver".to_owned(), 8013),
        ("http-resolver-reverse-proxy".to_owned(), 8012),
    ];
    assert_eq!(ports("elasti-resolver-service"), resolver);
    let monitors = documents("kustomize/monitoring/monitors.yaml");
    let monitors: Vec<_> = monitors
        .iter()
        .map(|one| one["metadata"]["name"].clone())
        .collect();
    assert_eq!(
        monitors,
        [
            "elasti-operator-controller-manager-metrics-monitor",
            "elasti-resolver-metrics-monitor"
        ]
    );
}

/// The variables and arguments of the container of Deployment `name`.
fn started(name: &str) -> (BTreeMap<String, String>, Vec<String>) {
    let installed = installed();
    let places = installed
        .iter()
        .find(|one| one["kind"] == "ConfigMap")
        .unwrap();
    let deployment = |one: &&Value| one["kind"] == "Deployment" && one["metadata"]["name"] == name;
    let deployment = installed.iter().find(deployment).unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut variables: BTreeMap<_, _> = places["data"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), text(value)))
        .collect();
    let own = container["env"].as_array().unwrap().iter();
    variables.extend(own.map(|one| (text(&one["name"]), text(&one["value"]))));
    let words = container["args"].as_array().into_iter().flatten();
    (variables, words.map(text).collect())
}

#[test]
fn processes_accept_the_variables_and_arguments_of_the_manifests() {
    let (variables, words) = started("elasti-operator-controller-manager");
    let operator = OperatorOptions::read(words, &|name| variables.get(name).cloned()).unwrap();
    assert!(operator.leader_elect && !operator.allow_unauthenticated_resolvers);
    let (variables, _) = started("elasti-resolver");
    let resolver = ResolverOptions::read(&|name| variables.get(name).cloned()).unwrap();
    assert_eq!(resolver.installation, operator.installation);
    assert_eq!(resolver.route_defaults.limits.requests, 50_000);
}

#[tokio::test(start_paused = true)]
async fn a_server_accepts_the_manifests_and_an_object_of_kubeelasti() {
    let options = Options::new(Environment::simulated(7));
    let pocket = Pocket::open(options).await.unwrap();
    let client = Client::new(pocket.service(), "elasti");
    for object in installed() {
        create(&client, object).await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let made = create(
        &client,
        json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1",
            "kind": "ElastiService",
            "metadata": {"name": "target"},
            "spec": {
                "service": "target-deployment",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "deployments", "name": "target"},
                "triggers": [{"type": "prometheus", "metadata": {"query": "up or vector(0)", "threshold": "0.01"}}],
                "autoscaler": {"type": "keda", "name": "target-scaled-object"},
                "enabledPeriod": {},
                "probeResponse": [{
                    "method": "GET",
                    "path": {"type": "PathPrefix", "value": "/healthz"},
                    "response": {"status": 200, "body": "{\"ok\":true}"},
                }],
            },
        }),
    )
    .await;
    assert_eq!(made.data["spec"]["cooldownPeriod"], 900);
    let day = json!({"schedule": "0 0 * * *", "duration": "24h"});
    assert_eq!(made.data["spec"]["enabledPeriod"], day);
    assert_eq!(
        made.data["spec"]["triggers"][0]["metadata"]["threshold"],
        "0.01"
    );
}

async fn create(client: &Client, object: Value) -> DynamicObject {
    let version = object["apiVersion"].as_str().unwrap();
    let kind = object["kind"].as_str().unwrap().to_owned();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let scoped = [
        "Namespace",
        "CustomResourceDefinition",
        "ClusterRole",
        "ClusterRoleBinding",
    ];
    let api: Api<DynamicObject> = if scoped.contains(&&*kind) {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), "elasti", &resource)
    };
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let made = api.create(&PostParams::default(), &object).await;
    made.unwrap_or_else(|error| panic!("{kind} {:?}: {error}", object.metadata.name))
}
