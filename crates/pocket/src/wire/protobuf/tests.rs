//! Tests with bodies that the Go client wrote (`tests/reference/protobuf-fixtures`), and with
//! arbitrary bytes.

use std::io::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::decode;

macro_rules! fixtures {
    ($($name:literal),* $(,)?) => {
        &[$((
            $name,
            include_bytes!(concat!("fixtures/", $name, ".pb")),
            include_str!(concat!("fixtures/", $name, ".json")),
        )),*]
    };
}

type Fixture = (&'static str, &'static [u8], &'static str);

const FIXTURES: &[Fixture] = fixtures![
    "configmap",
    "controllerrevision",
    "customresource",
    "deleteoptions",
    "deployment",
    "endpointslice",
    "event",
    "horizontalpodscaler",
    "lease",
    "namespace",
    "persistentvolume",
    "pod",
    "role",
    "secret",
    "selfsubjectreview",
    "service",
    "subjectaccessreview",
    "tokenrequest",
];

fn wire(name: &str) -> &'static [u8] {
    FIXTURES
        .iter()
        .find(|(known, ..)| *known == name)
        .unwrap()
        .1
}

fn decoded(name: &str) -> Value {
    decode(wire(name), None).unwrap()
}

/// Removes nulls, empty structs and the zero port, which Go's JSON shows and people do not write.
fn without_noise(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, inner)| (key.clone(), without_noise(inner)))
                .filter(|(key, inner)| {
                    !(inner.is_null() || *inner == json!({}) || (key == "targetPort" && inner == 0))
                })
                .collect(),
        ),
        Value::Array(list) => list.iter().map(without_noise).collect(),
        other => other.clone(),
    }
}

#[test]
fn bodies_of_the_go_client_decode_to_the_json_it_would_send() {
    for (name, wire, text) in FIXTURES {
        let object = decode(wire, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(without_noise(&object), without_noise(&expected), "{name}");
    }
}

#[test]
fn zero_behind_a_pointer_is_kept() {
    let table = [
        ("deployment", "/spec/replicas", json!(0)),
        (
            "deployment",
            "/spec/strategy/rollingUpdate/maxUnavailable",
            json!(0),
        ),
        ("configmap", "/immutable", json!(false)),
        ("pod", "/spec/volumes/0/emptyDir", json!({})),
        ("pod", "/spec/volumes/1/secret/defaultMode", json!(0)),
        ("pod", "/spec/volumes/1/secret/optional", json!(false)),
        (
            "pod",
            "/spec/containers/0/securityContext/runAsUser",
            json!(0),
        ),
        (
            "pod",
            "/metadata/ownerReferences/0/controller",
            json!(false),
        ),
        ("lease", "/spec/leaseTransitions", json!(0)),
        ("horizontalpodscaler", "/spec/minReplicas", json!(0)),
        ("endpointslice", "/ports/0/name", json!("")),
        ("tokenrequest", "/spec/expirationSeconds", json!(0)),
        (
            "customresource",
            "/spec/versions/0/subresources/status",
            json!({}),
        ),
    ];
    for (name, path, expected) in table {
        assert_eq!(
            decoded(name).pointer(path),
            Some(&expected),
            "{name} {path}"
        );
    }
}

#[test]
fn zero_of_a_plain_field_is_left_out_unless_json_shows_it() {
    let pod = decoded("pod");
    assert_eq!(pod["spec"]["containers"][0].get("workingDir"), None);
    assert_eq!(pod["spec"].get("hostNetwork"), None);
    assert_eq!(pod["status"]["containerStatuses"][0]["ready"], false);
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
    let crd = decoded("customresource");
    assert_eq!(crd["spec"]["versions"][0]["storage"], false);
}

#[test]
fn empty_structs_make_no_noise() {
    assert_eq!(
        decoded("namespace"),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tide"}})
    );
    let deployment = decoded("deployment");
    assert_eq!(deployment.get("status"), None);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(*container, json!({"name": "mill", "image": "mill:1"}));
    assert_eq!(
        decoded("service")["spec"]["ports"][1].get("targetPort"),
        None
    );
}

#[test]
fn special_types_take_their_json_form() {
    let table = [
        (
            "lease",
            "/spec/renewTime",
            json!("2026-03-04T05:06:07.891234Z"),
        ),
        (
            "pod",
            "/metadata/creationTimestamp",
            json!("2026-03-04T05:06:07Z"),
        ),
        (
            "pod",
            "/metadata/managedFields/0/fieldsV1",
            json!({"f:spec": {"f:nodeName": {}}}),
        ),
        (
            "pod",
            "/spec/containers/0/resources/limits/cpu",
            json!("250m"),
        ),
        (
            "pod",
            "/spec/containers/0/livenessProbe/httpGet/port",
            json!("web"),
        ),
    ];
    for (name, path, expected) in table {
        assert_eq!(
            decoded(name).pointer(path),
            Some(&expected),
            "{name} {path}"
        );
    }
}

#[test]
fn inlined_structs_lists_and_bytes_are_found_where_json_has_them() {
    let table = [
        (
            "pod",
            "/spec/securityContext/supplementalGroups",
            json!([7, 0, -9]),
        ),
        ("pod", "/spec/ephemeralContainers/0/name", json!("probe")),
        (
            "pod",
            "/spec/containers/0/envFrom/0/configMapRef/name",
            json!("chart"),
        ),
        ("secret", "/data/release", json!("U0RSelNVRkJRVUZCUVVGQg==")),
        ("secret", "/data/nothing", json!("")),
        (
            "controllerrevision",
            "/revision",
            json!(9_007_199_254_740_993_i64),
        ),
        (
            "controllerrevision",
            "/data/spec/template",
            json!({"x": null}),
        ),
        (
            "subjectaccessreview",
            "/spec/extra/scopes",
            json!(["a", "b"]),
        ),
    ];
    for (name, path, expected) in table {
        assert_eq!(
            decoded(name).pointer(path),
            Some(&expected),
            "{name} {path}"
        );
    }
}

#[test]
fn a_delete_is_understood_under_any_version() {
    let options = decoded("deleteoptions");
    assert_eq!(options["apiVersion"], "apps/v1");
    assert_eq!(options["gracePeriodSeconds"], 0);
}

/// An envelope as a client writes it; every part is shorter than 128 bytes.
fn envelope(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let meta = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &meta), field(2, raw)].concat()
}

#[test]
fn what_is_expected_fills_in_for_a_nameless_body() {
    let object = decode(&envelope("", "", &[]), Some(("v1", "Secret"))).unwrap();
    assert_eq!(object, json!({"apiVersion": "v1", "kind": "Secret"}));
    assert!(decode(&envelope("", "", &[]), None).is_err());
}

#[test]
fn a_message_in_two_pieces_is_one() {
    let pieces = [10, 3, 10, 1, b'a', 10, 3, 26, 1, b'n'];
    let object = decode(&envelope("v1", "ConfigMap", &pieces), None).unwrap();
    assert_eq!(object["metadata"], json!({"name": "a", "namespace": "n"}));
}

#[test]
fn packed_and_single_numbers_are_one_list() {
    // Pod.spec(2).securityContext(14).supplementalGroups(4)
    let raw = [18, 8, 114, 6, 34, 2, 7, 8, 32, 9];
    let object = decode(&envelope("v1", "Pod", &raw), None).unwrap();
    let groups = &object["spec"]["securityContext"]["supplementalGroups"];
    assert_eq!(*groups, json!([7, 8, 9]));
}

#[test]
fn refusals_say_why() {
    let table: [(&[u8], &str); 7] = [
        (b"{}", "does not start with"),
        (b"k8s\0\x12\x05a", "ends in the middle"),
        (
            &envelope("v1", "Ship", &[]),
            "no kind \"Ship\" is registered for version \"v1\"",
        ),
        (
            &envelope("v1", "ConfigMap", &[8, 1]),
            "wire type that is not its own",
        ),
        (&envelope("v1", "ConfigMap", &[11]), "does not use"),
        (
            &envelope("v1", "ConfigMap", &[10, 3, 10, 1, 255]),
            "name is not valid UTF-8",
        ),
        (b"k8s\0\x1a\x04gzip", "content encoding \"gzip\""),
    ];
    for (bytes, words) in table {
        let error = decode(bytes, None).unwrap_err();
        assert_eq!(error.reason, "BadRequest");
        assert!(error.message.contains(words), "{}", error.message);
    }
}

/// A field with bytes of any length.
fn field(tag: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut field = tag.to_vec();
    let mut length = bytes.len();
    while length >= 0x80 {
        field.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    field.push(length as u8);
    field.extend(bytes);
    field
}

/// A schema inside a schema, `levels` deep, by the field with this tag.
fn nested(levels: usize, wrap: impl Fn(Vec<u8>) -> Vec<u8>) -> Result<(), super::Malformed> {
    let schema = (0..levels).fold(Vec::new(), |inner, _| wrap(inner));
    let descriptors = super::descriptors();
    let decoder = super::Decoder {
        descriptors,
        depth: 0,
    };
    let id = descriptors.schema().unwrap();
    decoder.message(id, &schema, &mut serde_json::Map::new())
}

#[test]
fn nesting_is_bounded_on_every_way_down() {
    let not = |inner: Vec<u8>| field(&[0xe2, 0x01], &inner);
    let property = |inner: Vec<u8>| field(&[0xea, 0x01], &field(&[18], &inner));
    let items = |inner: Vec<u8>| field(&[0xc2, 0x01], &field(&[10], &inner));
    for levels in [1, 100] {
        assert_eq!(nested(levels, not), Ok(()));
        assert_eq!(nested(levels, property), Ok(()));
        assert_eq!(nested(levels, items), Ok(()));
    }
    for levels in [200, 2_000] {
        assert_eq!(nested(levels, not), Err(super::Malformed::TooDeep));
        assert_eq!(nested(levels, property), Err(super::Malformed::TooDeep));
        assert_eq!(nested(levels, items), Err(super::Malformed::TooDeep));
    }
}

#[test]
fn objects_in_objects_are_decoded_and_bounded() {
    let revision = |inner: &[u8]| {
        // ControllerRevision.data(2).raw(1)
        let raw = field(&[18], &field(&[10], inner));
        let kind = [
            field(&[10], b"apps/v1"),
            field(&[18], b"ControllerRevision"),
        ]
        .concat();
        [b"k8s\0".to_vec(), field(&[10], &kind), field(&[18], &raw)].concat()
    };
    let twice = decode(&revision(&revision(b"{}")), None).unwrap();
    assert_eq!(twice["data"]["kind"], "ControllerRevision");
    let deep = (0..200).fold(b"{}".to_vec(), |inner, _| revision(&inner));
    assert!(
        decode(&deep, None)
            .unwrap_err()
            .message
            .contains("nested deeper")
    );
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = decode(&bytes, None);
        let wrapped = [b"k8s\0".as_slice(), &bytes].concat();
        let _ = decode(&wrapped, Some(("v1", "Pod")));
    }

    #[test]
    fn a_damaged_body_is_decoded_or_refused(
        which in 0..FIXTURES.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = FIXTURES[which].1.to_vec();
        for (index, byte) in damage {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = decode(&bytes, None);
        let _ = decode(&bytes[..cut.index(bytes.len())], None);
    }
}

/// Objects with every field set, as the `k8s.io/api` module carries them for its own tests.
/// `cargo xtask test` fetches them; without them the test says that it was skipped.
#[test]
fn fully_populated_objects_decode_exactly() {
    let Ok(folder) = std::env::var("NEAP_API_TESTDATA") else {
        skipped("fully_populated_objects_decode_exactly: NEAP_API_TESTDATA names no folder");
        return;
    };
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "pb") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        match decode(&bytes, None) {
            Err(error) => assert!(error.message.contains("no kind"), "{error}"),
            Ok(object) => {
                let text = std::fs::read_to_string(path.with_extension("json")).unwrap();
                let expected: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(object, expected, "{}", path.display());
                compared += 1;
            }
        }
    }
    assert!(compared > 45, "{compared}");
}

/// Records in the file that `NEAP_SKIPS` names that a test did not run, so that it is not counted
/// as passed.
fn skipped(line: &str) {
    if let Some(path) = std::env::var_os("NEAP_SKIPS") {
        let mut file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        writeln!(file, "SKIPPED {line}").unwrap();
    }
}
