//! Values for a property: suitable ones and unsuitable ones.

use neap_load::rng::SeededRng;
use serde_json::{Value, json};

use crate::schema::Types;

/// Text that is invalid in most fields.
const BAD_TEXT: [&str; 14] = [
    "", "UPPER", "a b", "-x", "x-", "a/b", "a/b/c", "é", "1", "true", "..", "a_b", "a.b.", "*",
];
const GOOD_TEXT: [&str; 6] = ["a", "web", "main", "x1", "some-name", "a.b"];
const NUMBERS: [i64; 12] = [0, 1, 2, 3, 5, 80, 443, -1, 65535, 65536, 2_147_483_647, 30];
const QUANTITIES: [&str; 10] = [
    "1", "100m", "1Gi", "0", "1.5", "2e3", "500Mi", "-1", "1x", "0.0001",
];
const TIMES: [&str; 5] = [
    "2020-01-02T03:04:05Z",
    "2020-01-02T03:04:05.123456Z",
    "2020-01-02T03:04:05+02:00",
    "2020-01-02",
    "yesterday",
];

pub(super) fn pick<'a, T>(rng: &mut SeededRng, from: &'a [T]) -> &'a T {
    &from[rng.below(from.len())]
}

/// True one time in `n`.
pub(super) fn chance(rng: &mut SeededRng, n: usize) -> bool {
    rng.below(n) == 0
}

/// Text that is invalid in most fields; sometimes very long.
pub(super) fn bad_text(rng: &mut SeededRng) -> String {
    match rng.below(20) {
        0 => "a".repeat(64),
        1 => "b".repeat(254),
        _ => (*pick(rng, &BAD_TEXT)).to_owned(),
    }
}

/// A value of the property's type, often one that its rules accept.
pub(super) fn fitting(
    types: &Types,
    schema: &Value,
    key: &str,
    rng: &mut SeededRng,
    depth: usize,
) -> Value {
    let (name, schema) = types.resolve(schema);
    match name {
        Some(name) if name.ends_with("IntOrString") => return int_or_string(rng),
        Some(name) if name.ends_with("Quantity") => return (*pick(rng, &QUANTITIES)).into(),
        Some(name) if name.ends_with("MicroTime") => return TIMES[rng.below(5)].into(),
        Some(name) if name.ends_with("Time") => return TIMES[rng.below(5)].into(),
        _ => {}
    }
    if let Some(choices) = schema["enum"].as_array()
        && !chance(rng, 8)
    {
        return pick(rng, choices).clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return int_or_string(rng);
    }
    match schema["type"].as_str() {
        Some("boolean") => chance(rng, 2).into(),
        Some("integer") => number(key, rng).into(),
        Some("number") => json!(*pick(rng, &[0.5, 0.25, 1.0, 2.0, -0.1, 0.3])),
        Some("array") => array(types, schema, key, rng, depth),
        Some("object") | None => object(types, schema, rng, depth),
        _ if schema["format"] == "byte" => (*pick(rng, &["YQ==", "", "AAEC", "!", "YQ"])).into(),
        _ => text(key, rng).into(),
    }
}

fn int_or_string(rng: &mut SeededRng) -> Value {
    pick(
        rng,
        &[
            json!(1),
            json!("10%"),
            json!("http"),
            json!(0),
            json!("1"),
            json!(8080),
            json!(-1),
            json!("101%"),
            json!(70000),
            json!(""),
        ],
    )
    .clone()
}

fn number(key: &str, rng: &mut SeededRng) -> i64 {
    match key {
        "nodePort" | "healthCheckNodePort" => *pick(rng, &[0, 30001, 30002, 30003, 80, 40000]),
        "mode" | "defaultMode" => *pick(rng, &[0, 256, 420, 511, 512, -1]),
        "activeDeadlineSeconds" | "terminationGracePeriodSeconds" => *pick(rng, &[0, 1, 5, 30, -1]),
        _ => *pick(rng, &NUMBERS),
    }
}

fn array(types: &Types, schema: &Value, key: &str, rng: &mut SeededRng, depth: usize) -> Value {
    let length = if depth > 4 {
        1
    } else {
        *pick(rng, &[1, 1, 1, 2, 0])
    };
    let item = |rng: &mut SeededRng| fitting(types, &schema["items"], key, rng, depth + 1);
    (0..length).map(|_| item(rng)).collect()
}

/// An object with its required fields, and some optional ones.
fn object(types: &Types, schema: &Value, rng: &mut SeededRng, depth: usize) -> Value {
    let mut out = serde_json::Map::new();
    let required: Vec<_> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let must = required.iter().any(|name| *name == key);
        if (must && !chance(rng, 25)) || (depth < 4 && chance(rng, 6)) {
            out.insert(key.clone(), fitting(types, property, key, rng, depth + 1));
        }
    }
    if schema["additionalProperties"].is_object() {
        let key = if chance(rng, 6) {
            bad_text(rng)
        } else {
            (*pick(rng, &GOOD_TEXT)).to_owned()
        };
        out.insert(
            key,
            fitting(types, &schema["additionalProperties"], "", rng, depth + 1),
        );
    }
    Value::Object(out)
}

fn text(key: &str, rng: &mut SeededRng) -> String {
    let pool = pool(key);
    if !pool.is_empty() && !chance(rng, 10) {
        return (*pick(rng, pool)).to_owned();
    }
    if chance(rng, 3) {
        bad_text(rng)
    } else {
        (*pick(rng, &GOOD_TEXT)).to_owned()
    }
}

/// Texts for fields of this name, valid and invalid.
fn pool(key: &str) -> &'static [&'static str] {
    match key {
        "image" => &["nginx", "busybox:1", " nginx", ""],
        "clusterIP" => &["None", "", "10.0.0.9", "10.0.0.8", "1.2.3.4", "x"],
        "clusterIPs" => &["None", "10.0.0.9", "", "::1"],
        "externalName" | "hostnames" => &["a.example.com", "A.b", "-", "x.y."],
        "ip" | "podIP" | "hostIP" | "externalIPs" | "loadBalancerIP" | "nameservers"
        | "addresses" => &[
            "10.1.1.1",
            "127.0.0.1",
            "::1",
            "fe80::1",
            "1.2.3",
            "0.0.0.0",
            "010.1.1.1",
        ],
        "loadBalancerSourceRanges" => &["10.0.0.0/8", "10.0.0.1/8", "x", " 10.0.0.0/8", "::/0"],
        "protocol" => &["TCP", "UDP", "SCTP", "tcp", ""],
        "operator" => &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Equal", "in"],
        "fieldPath" => &[
            "metadata.name",
            "metadata.labels['a']",
            "status.podIP",
            "spec.nodeName",
            "metadata.nope",
            "",
        ],
        "resource" => &["limits.cpu", "requests.memory", "limits.nope"],
        "path" | "mountPath" | "subPath" | "devicePath" | "workingDir" => {
            &["/a", "b", "../c", "/a/../b", "/a:b", ""]
        }
        "apiVersion" => &["v1", "apps/v1", "v2", ""],
        "verbs" => &["get", "*", "list", ""],
        "apiGroups" => &["", "apps", "*"],
        "resources" => &["pods", "*", "pods/log", ""],
        "nonResourceURLs" => &["/healthz", "*"],
        "finalizers" => &[
            "example.com/hold",
            "example.com/other",
            "plain",
            "a/b/c",
            "kubernetes",
        ],
        "nodeName" => &["node-1", "Node"],
        "name" => &["a", "b", "main", "web", "http"],
        "type" => &["Opaque", "ClusterIP", "Ready", "RuntimeDefault", "x"],
        "topologyKey" | "key" | "labelSelector" => &["zone", "example.com/zone", "bad key", ""],
        "trafficDistribution" => &["PreferClose", "PreferSameZone", "PreferSameNode", "Far"],
        "schedule" => &["hourly", "daily", "never"],
        "code" => &["AB-12", "ab", "CD-34"],
        "day" => &["2020-02-29", "2021-02-29", "x"],
        "span" => &["1h", "5m3s", "1d", "x"],
        "when" | "lastTransitionTime" => &TIMES,
        "email" => &["a@example.com", "a", "@"],
        "url" => &["https://a.example.com", "::", "x"],
        _ => &[],
    }
}

/// A value of another type than the current one.
pub(super) fn of_another_type(value: &Value, rng: &mut SeededRng) -> Value {
    let all = [
        json!("text"),
        json!(7),
        json!(true),
        json!({}),
        json!([]),
        json!({"a": "b"}),
        json!(["a"]),
        json!(1.5),
        json!([{"a": 1}]),
    ];
    let same = |other: &Value| std::mem::discriminant(other) == std::mem::discriminant(value);
    let others: Vec<_> = all.into_iter().filter(|other| !same(other)).collect();
    pick(rng, &others).clone()
}
