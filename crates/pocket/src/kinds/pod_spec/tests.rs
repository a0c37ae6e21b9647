mod ephemeral;

use serde_json::json;

use super::*;

/// A valid spec with one change, defaulted.
fn with(pointer: &str, value: Value) -> Value {
    let mut spec = json!({
        "containers": [{"name": "c", "image": "i:1"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    });
    let (holder, field) = pointer.rsplit_once('/').unwrap();
    spec.pointer_mut(holder).unwrap()[field] = value;
    default_pod_spec(&mut spec);
    spec
}

fn errors(spec: &Value) -> Vec<String> {
    let mut problems = Problems::new();
    validate_pod_spec(spec, "spec", &mut problems);
    problems.iter().map(ToString::to_string).collect()
}

/// Each change is refused with exactly one error that starts with the text.
fn refused(cases: Vec<(&str, Value, &str)>) {
    for (pointer, value, expected) in cases {
        let errors = errors(&with(pointer, value));
        assert_eq!(errors.len(), 1, "{pointer}: {errors:?}");
        assert!(errors[0].starts_with(expected), "{errors:?}");
    }
}

fn accepted(cases: Vec<(&str, Value)>) {
    for (pointer, value) in cases {
        assert_eq!(errors(&with(pointer, value)), [""; 0], "{pointer}");
    }
}

const C: &str = "/containers/0";

#[test]
fn containers_have_distinct_names_and_images() {
    let container = |name: &str| json!({"name": name, "image": "i"});
    refused(vec![
        (
            "/containers",
            json!([container("A")]),
            "spec.containers[0].name: Invalid value: \"A\": a lowercase RFC 1123 label",
        ),
        (
            "/containers",
            json!([container("a"), container("a")]),
            "spec.containers[1].name: Duplicate value: \"a\"",
        ),
        (
            "/initContainers",
            json!([container("c")]),
            "spec.initContainers[0].name: Duplicate value: \"c\"",
        ),
        (
            "/containers",
            json!([{"name": "c"}]),
            "spec.containers[0].image: Required value",
        ),
        (
            "/ephemeralContainers",
            json!([{"name": "d", "image": " i"}]),
            "spec.ephemeralContainers[0].image: Invalid value: \" i\": must not have leading or trailing whitespace",
        ),
    ]);
}

#[test]
fn ports_are_in_range_named_and_free() {
    let at = format!("{C}/ports");
    let host = json!([{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]);
    refused(vec![
        (
            &at,
            json!([{}]),
            "spec.containers[0].ports[0].containerPort: Required value",
        ),
        (
            &at,
            json!([{"containerPort": 65536}]),
            "spec.containers[0].ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
        ),
        (
            &at,
            json!([{"containerPort": 1, "hostPort": -1}]),
            "spec.containers[0].ports[0].hostPort: Invalid value",
        ),
        (
            &at,
            json!([{"containerPort": 1, "name": "Web"}]),
            "spec.containers[0].ports[0].name: Invalid value: \"Web\"",
        ),
        (
            &at,
            json!([{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]),
            "spec.containers[0].ports[1].name: Duplicate value: \"a\"",
        ),
        (
            &at,
            host,
            "spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//9\"",
        ),
    ]);
}

#[test]
fn variables_have_one_source() {
    let at = format!("{C}/env");
    let field = |path: &str| json!([{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": path}}}]);
    accepted(vec![
        (&at, field("metadata.name")),
        (&at, field("metadata.labels['example.com/a']")),
        (&at, json!([{"name": "my.var", "value": ""}])),
    ]);
    let name = "spec.containers[0].env[0].valueFrom";
    let path = "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath";
    refused(vec![
        (
            &at,
            json!([{"name": "a=b"}]),
            "spec.containers[0].env[0].name: Invalid value: \"a=b\"",
        ),
        (
            &at,
            json!([{"name": "N", "valueFrom": {}}]),
            &format!("{name}: Invalid value: \"\": must specify one of"),
        ),
        (
            &at,
            json!([{"name": "N", "value": "v", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
            &format!("{name}: Invalid value: \"\": may not be specified when `value` is not empty"),
        ),
        (
            &at,
            json!([{"name": "N", "valueFrom": {"secretKeyRef": {"key": "k"}}}]),
            &format!(
                "{name}.secretKeyRef.name: Invalid value: \"\": a lowercase RFC 1123 subdomain"
            ),
        ),
        (
            &at,
            field("spec.color"),
            &format!(
                "{path}: Invalid value: \"spec.color\": error converting fieldPath: field label not supported: spec.color"
            ),
        ),
        (
            &at,
            field("metadata.labels"),
            &format!("{path}: Unsupported value: \"metadata.labels\""),
        ),
        (
            &format!("{C}/envFrom"),
            json!([{}]),
            "spec.containers[0].envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
        ),
        (
            &format!("{C}/envFrom"),
            json!([{"secretRef": {}}]),
            "spec.containers[0].envFrom[0].secretRef.name: Required value",
        ),
    ]);
}

#[test]
fn probes_do_one_thing() {
    let live = format!("{C}/livenessProbe");
    let ready = format!("{C}/readinessProbe");
    let get = json!({"port": 80});
    accepted(vec![
        (&ready, json!({"httpGet": get, "successThreshold": 3})),
        (&live, json!({"tcpSocket": {"port": "http"}})),
        (&live, json!({"httpGet": get, "timeoutSeconds": 0})),
    ]);
    let path = "spec.containers[0].livenessProbe";
    refused(vec![
        (
            &live,
            json!({}),
            &format!("{path}: Required value: must specify a handler type"),
        ),
        (
            &live,
            json!({"exec": {"command": ["x"]}, "httpGet": get}),
            &format!("{path}.httpGet: Forbidden: may not specify more than 1 handler type"),
        ),
        (
            &live,
            json!({"exec": {}}),
            &format!("{path}.exec.command: Required value"),
        ),
        (
            &live,
            json!({"httpGet": {}}),
            &format!("{path}.httpGet.port: Invalid value: 0: must be between 1 and 65535"),
        ),
        (
            &live,
            json!({"tcpSocket": {"port": "80"}}),
            &format!(
                "{path}.tcpSocket.port: Invalid value: \"80\": must contain at least one letter"
            ),
        ),
    ]);
}

#[test]
fn probes_wait_and_count_within_bounds() {
    let live = format!("{C}/livenessProbe");
    let get = json!({"port": 80});
    let path = "spec.containers[0].livenessProbe";
    refused(vec![
        (
            &live,
            json!({"httpGet": get, "successThreshold": 2}),
            &format!("{path}.successThreshold: Invalid value: 2: must be 1"),
        ),
        (
            &live,
            json!({"httpGet": get, "periodSeconds": -1}),
            &format!("{path}.periodSeconds: Invalid value: -1: must be greater than or equal to 0"),
        ),
        (
            &live,
            json!({"httpGet": get, "terminationGracePeriodSeconds": 0}),
            &format!(
                "{path}.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0"
            ),
        ),
        (
            &format!("{C}/readinessProbe"),
            json!({"httpGet": get, "terminationGracePeriodSeconds": 1}),
            "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes",
        ),
        (
            &format!("{C}/lifecycle"),
            json!({"preStop": {}}),
            "spec.containers[0].lifecycle.preStop: Required value: must specify a handler type",
        ),
    ]);
}

#[test]
fn only_sidecars_among_init_containers_are_probed() {
    let init = |policy: Value| json!([{"name": "i", "image": "i", "restartPolicy": policy, "readinessProbe": {"httpGet": {"port": 80}}}]);
    accepted(vec![("/initContainers", init(json!("Always")))]);
    refused(vec![(
        "/initContainers",
        init(json!(null)),
        "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
    )]);
}

#[test]
fn mounts_are_of_volumes_and_in_distinct_places() {
    let at = format!("{C}/volumeMounts");
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    accepted(vec![(&at, json!([mount("v", "/a"), mount("v", "/b")]))]);
    let path = "spec.containers[0].volumeMounts";
    refused(vec![
        (
            &at,
            json!([mount("w", "/a")]),
            &format!("{path}[0].name: Not found: \"w\""),
        ),
        (
            &at,
            json!([mount("v", "/a"), mount("v", "/a")]),
            &format!("{path}[1].mountPath: Invalid value: \"/a\": must be unique"),
        ),
        (
            &at,
            json!([{"name": "v", "mountPath": "/a", "subPath": "/b"}]),
            &format!("{path}.subPath: Invalid value: \"/b\": must be a relative path"),
        ),
        (
            &at,
            json!([{"name": "v", "mountPath": "/a", "subPath": "b/../c"}]),
            &format!("{path}.subPath: Invalid value: \"b/../c\": must not contain '..'"),
        ),
    ]);
}

#[test]
fn volumes_have_one_source_each() {
    let volume = |source: Value| {
        let mut volume = json!({"name": "w"});
        volume
            .as_object_mut()
            .unwrap()
            .extend(source.as_object().unwrap().clone());
        json!([volume])
    };
    let token = |seconds: i64| {
        volume(
            json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": seconds}}]}}),
        )
    };
    accepted(vec![
        ("/volumes", volume(json!({}))),
        ("/volumes", token(600)),
    ]);
    let expires =
        "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value";
    refused(vec![
        (
            "/volumes",
            json!([{"name": "v"}, {"name": "v"}]),
            "spec.volumes[1].name: Duplicate value: \"v\"",
        ),
        (
            "/volumes",
            volume(json!({"emptyDir": {}, "hostPath": {"path": "/"}})),
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
        (
            "/volumes",
            volume(json!({"configMap": {}})),
            "spec.volumes[0].configMap.name: Required value",
        ),
        (
            "/volumes",
            volume(json!({"secret": {"secretName": "s", "defaultMode": 512}})),
            "spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal)",
        ),
        (
            "/volumes",
            volume(json!({"hostPath": {"path": "/a/../b"}})),
            "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
        ),
        (
            "/volumes",
            volume(json!({"hostPath": {"type": "Odd"}})),
            "spec.volumes[0].hostPath.path: Required value",
        ),
        (
            "/volumes",
            volume(json!({"emptyDir": {"sizeLimit": "-1"}})),
            "spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity",
        ),
        ("/volumes", token(599), expires),
        ("/volumes", token((1 << 32) + 1), expires),
    ]);
}

#[test]
fn placement_is_sound() {
    refused(vec![
        (
            "/nodeSelector",
            json!({"a b": "c"}),
            "spec.nodeSelector: Invalid value: \"a b\": name part",
        ),
        (
            "/tolerations",
            json!([{"operator": "Equal"}]),
            "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty",
        ),
        (
            "/tolerations",
            json!([{"key": "a", "operator": "Exists", "value": "b"}]),
            "spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
        ),
        (
            "/tolerations",
            json!([{"key": "a", "tolerationSeconds": 1}]),
            "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        (
            "/topologySpreadConstraints",
            json!([{"maxSkew": 0, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}]),
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (
            "/affinity",
            json!({"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "podAffinityTerm": {"topologyKey": "k"}}]}}),
            "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100",
        ),
    ]);
}

#[test]
fn times_and_names_of_the_pod_are_sound() {
    refused(vec![
        (
            "/activeDeadlineSeconds",
            json!(0),
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
        (
            "/serviceAccountName",
            json!("A"),
            "spec.serviceAccountName: Invalid value: \"A\"",
        ),
        (
            "/hostname",
            json!("a.b"),
            "spec.hostname: Invalid value: \"a.b\"",
        ),
        (
            "/dnsPolicy",
            json!("None"),
            "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
        ),
        (
            "/dnsConfig",
            json!({"nameservers": ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"]}),
            "spec.dnsConfig.nameservers: Invalid value",
        ),
    ]);
}

#[test]
fn problems_in_a_template_carry_its_path() {
    let template = json!({
        "metadata": {"labels": {"a": "b c"}},
        "spec": {"containers": [{"name": "c"}], "ephemeralContainers": [{"name": "e", "image": "i"}]},
    });
    let mut problems = Problems::new();
    validate_pod_template(&template, "spec.template", &mut problems);
    let paths: Vec<&str> = problems
        .iter()
        .map(|problem| problem.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "spec.template.labels",
            "spec.template.spec.containers[0].image",
            "spec.template.spec.ephemeralContainers",
        ]
    );
}

#[test]
fn images_that_may_change_are_always_pulled() {
    for (image, policy) in [
        ("x", "Always"),
        ("x:latest", "Always"),
        ("x:1", "IfNotPresent"),
        ("host:5000/x", "Always"),
        ("host:5000/x:1", "IfNotPresent"),
        (
            "x@sha256:0000000000000000000000000000000000000000000000000000000000000000",
            "IfNotPresent",
        ),
        (
            "x:latest@sha256:0000000000000000000000000000000000000000000000000000000000000000",
            "Always",
        ),
    ] {
        assert_eq!(defaults::pull_policy(image), policy, "{image}");
    }
}

#[test]
fn the_two_names_of_the_account_are_kept_equal() {
    for field in ["serviceAccount", "serviceAccountName"] {
        let spec = with(&format!("/{field}"), json!("robot"));
        assert_eq!(spec["serviceAccount"], "robot");
        assert_eq!(spec["serviceAccountName"], "robot");
    }
}
