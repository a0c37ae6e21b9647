mod empty;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn run(kind: &str, value: &Value) -> Result<(Value, Vec<String>)> {
    let schema = builtin().named(&format!("io.k8s.api.{kind}")).unwrap();
    let (group_version, short) = kind.rsplit_once('.').unwrap();
    let api_version = group_version.replace('.', "/");
    let mut value = value.clone();
    let found = conform(schema, &mut value, short, &api_version)?;
    Ok((value, found.unknown))
}

fn conformed(kind: &str, value: &Value) -> Value {
    run(kind, value).unwrap_or_else(|e| panic!("{e}")).0
}

fn refusal(kind: &str, value: &Value) -> String {
    let error = run(kind, value).unwrap_err();
    assert_eq!((error.code.as_u16(), error.reason), (400, "BadRequest"));
    error.message
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_mismatch_names_the_kind_the_field_and_the_types() {
    for (body, expected) in [
        (
            json!({"spec": {"replicas": "3"}}),
            "string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"replicas": 1.5}}),
            "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"replicas": 1.0}}),
            "number 1.0 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"replicas": 2_147_483_648_i64}}),
            "number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"paused": "true"}}),
            "string into Go struct field DeploymentSpec.spec.paused of type bool",
        ),
        (
            json!({"spec": []}),
            "array into Go struct field Deployment.spec of type v1.DeploymentSpec",
        ),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            json!({"metadata": {"labels": ["a"]}}),
            "array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            json!({"metadata": {"finalizers": {}}}),
            "object into Go struct field ObjectMeta.metadata.finalizers of type []string",
        ),
        (
            json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}, {"name": 5}]}}}}),
            "number into Go struct field Container.spec.template.spec.containers.name of type string",
        ),
        (
            json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": true}}}}),
            "bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
        (
            json!({"metadata": {"generation": 9_223_372_036_854_775_808_u64}}),
            "number 9223372036854775808 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            json!({"metadata": {"name": 1}, "spec": {"replicas": 1}}),
            "number into Go struct field ObjectMeta.metadata.name of type string",
        ),
        (json!([]), "array into Go value of type Deployment"),
    ] {
        assert_eq!(
            refusal("apps.v1.Deployment", &body),
            format!(
                r#"Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal {expected}"#
            )
        );
    }
}

#[test]
fn unknown_fields_are_dropped_and_reported_with_their_paths() {
    let body = json!({
        "spec": {"bogus": 1, "template": {"spec": {"containers": [{"name": "a", "x": {"y": 1}}]}}},
        "metadata": {"labels": {"free": "form"}, "nope": null},
    });
    let (value, unknown) = run("apps.v1.Deployment", &body).unwrap();
    assert_eq!(
        unknown,
        [
            "metadata.nope",
            "spec.bogus",
            "spec.template.spec.containers[0].x"
        ]
    );
    let expected = json!({
        "spec": {"strategy": {}, "template": {"metadata": {}, "spec": {"containers": [{"name": "a", "resources": {}}]}}},
        "metadata": {"labels": {"free": "form"}},
        "status": {},
    });
    assert_eq!(value, expected);
}

#[test]
fn unknown_fields_are_reported_up_to_a_bound() {
    let body: Value = (0..1000)
        .map(|i| (format!("f{i}"), json!(1)))
        .collect::<Map<_, _>>()
        .into();
    let (value, unknown) = run("core.v1.Pod", &body).unwrap();
    let empty = json!({"metadata": {}, "spec": {"containers": null}, "status": {}});
    assert_eq!((value, unknown.len()), (empty, MAX_UNKNOWN));
}

#[test]
fn absent_is_one_thing() {
    let body = json!({
        "metadata": {"creationTimestamp": null, "labels": {}, "finalizers": [], "name": null},
        "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [], "securityContext": {}, "nodeSelector": {}},
        "status": {},
    });
    let expected = json!({
        "metadata": {},
        "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": null, "securityContext": {}},
        "status": {},
    });
    assert_eq!(conformed("core.v1.Pod", &body), expected);
}

#[test]
fn null_in_a_map_or_a_list_is_the_zero_of_the_type() {
    assert_eq!(
        conformed("core.v1.ConfigMap", &json!({"data": {"a": null}})),
        json!({"metadata": {}, "data": {"a": ""}})
    );
    assert_eq!(
        conformed(
            "core.v1.Pod",
            &json!({"spec": {"containers": [null, {"args": [null]}]}})
        ),
        json!({"metadata": {}, "status": {}, "spec": {"containers": [
            {"name": "", "resources": {}},
            {"name": "", "args": [""], "resources": {}},
        ]}})
    );
}

#[test]
fn quantities_become_canonical_strings() {
    let limits = |limits: Value| json!({"metadata": {}, "status": {}, "spec": {"containers": [{"name": "a", "resources": {"limits": limits}}]}});
    let body = limits(json!({"cpu": 1, "memory": "1024Mi", "x": 0.5, "y": " 1000m ", "z": null}));
    let expected = limits(json!({"cpu": "1", "memory": "1Gi", "x": "500m", "y": "1", "z": "0"}));
    assert_eq!(conformed("core.v1.Pod", &body), expected);
    for bad in [json!("1 core"), json!(true)] {
        assert_eq!(
            refusal("core.v1.Pod", &limits(json!({"cpu": bad}))),
            r#"Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"#
        );
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn times_are_read_and_kept_in_utc() {
    for (written, kept) in [
        ("2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z"),
        ("2020-01-02T03:04:05+02:00", "2020-01-02T01:04:05Z"),
        ("2020-01-02T03:04:05.999999Z", "2020-01-02T03:04:05Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ] {
        let value = conformed(
            "core.v1.Pod",
            &json!({"metadata": {"creationTimestamp": written}}),
        );
        assert_eq!(value["metadata"]["creationTimestamp"], kept, "{written}");
    }
    for (bad, expected) in [
        (
            "",
            r#" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006""#,
        ),
        (
            "now",
            r#" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006""#,
        ),
        (
            "2020-01-02",
            r#" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#,
        ),
        (
            "2020-01-02 03:04:05Z",
            r#" as "2006-01-02T15:04:05Z07:00": cannot parse " 03:04:05Z" as "T""#,
        ),
        (
            "2020-01-02T03:04:05",
            r#" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00""#,
        ),
        ("2020-13-02T03:04:05Z", ": month out of range"),
        (
            "2020-01-02T03:04Z",
            r#" as "2006-01-02T15:04:05Z07:00": cannot parse "Z" as ":""#,
        ),
        ("2020-01-02T03:04:60Z", ": second out of range"),
        (
            "2020-01-02T03:04:05.Z",
            r#" as "2006-01-02T15:04:05Z07:00": cannot parse ".Z" as "Z07:00""#,
        ),
        ("2020-01-02T03:04:05Z[UTC]", r#": extra text: "[UTC]""#),
        (
            "2020-01-02T03:04:05+0200",
            r#" as "2006-01-02T15:04:05Z07:00": cannot parse "+0200" as "Z07:00""#,
        ),
        (
            "2020-1-2T03:04:05Z",
            r#" as "2006-01-02T15:04:05Z07:00": cannot parse "1-2T03:04:05Z" as "01""#,
        ),
    ] {
        assert_eq!(
            refusal(
                "core.v1.Pod",
                &json!({"metadata": {"creationTimestamp": bad}}),
            ),
            format!(
                r#"Pod in version "v1" cannot be handled as a Pod: parsing time "{bad}"{expected}"#
            )
        );
    }
}

#[test]
fn micro_times_keep_their_microseconds() {
    let lease = |time: &str| json!({"metadata": {}, "spec": {"renewTime": time}});
    for (written, kept) in [
        ("2020-01-02T03:04:05.123456Z", "2020-01-02T03:04:05.123456Z"),
        (
            "2020-01-02T03:04:05.500000+01:00",
            "2020-01-02T02:04:05.500000Z",
        ),
    ] {
        assert_eq!(
            conformed("coordination.v1.Lease", &lease(written)),
            lease(kept)
        );
    }
    for (bad, expected) in [
        ("2020-01-02T03:04:05Z", r#"cannot parse "Z" as ".000000""#),
        (
            "2020-01-02T03:04:05.5+01:00",
            r#"cannot parse ".5+01:00" as ".000000""#,
        ),
        (
            "2020-01-02T03:04:05.1234567Z",
            r#"cannot parse "7Z" as "Z07:00""#,
        ),
        ("", r#"cannot parse "" as "2006""#),
    ] {
        assert_eq!(
            refusal("coordination.v1.Lease", &lease(bad)),
            format!(
                r#"Lease in version "v1" cannot be handled as a Lease: parsing time "{bad}" as "2006-01-02T15:04:05.000000Z07:00": {expected}"#
            )
        );
    }
}

#[test]
fn bytes_must_be_base64() {
    let secret = |text: &str| json!({"metadata": {}, "data": {"k": text}});
    assert_eq!(conformed("core.v1.Secret", &secret("aGk=")), secret("aGk="));
    assert_eq!(
        conformed("core.v1.Secret", &secret("aG\nk=\r\n")),
        secret("aGk=")
    );
    assert_eq!(conformed("core.v1.Secret", &secret("aGl=")), secret("aGk="));
    for (bad, at) in [("!!", 0), ("aGk", 0), ("a", 0), ("aGk=x", 4), ("aG=k", 2)] {
        assert_eq!(
            refusal("core.v1.Secret", &secret(bad)),
            format!(
                r#"Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte {at}"#
            )
        );
    }
}

#[test]
fn numbers_at_the_edge_of_their_range_fit() {
    for n in [i64::from(i32::MIN), i64::from(i32::MAX)] {
        let body = json!({"spec": {"replicas": n, "strategy": {"rollingUpdate": {"maxSurge": n}}}});
        assert_eq!(
            conformed("apps.v1.Deployment", &body)["spec"],
            json!({"replicas": n, "strategy": {"rollingUpdate": {"maxSurge": n}},
                "template": {"metadata": {}, "spec": {"containers": null}}})
        );
    }
    let metadata = json!({"generation": i64::MIN, "deletionGracePeriodSeconds": i64::MAX});
    assert_eq!(
        conformed("apps.v1.Deployment", &json!({"metadata": metadata}))["metadata"],
        metadata
    );
}

#[test]
fn what_is_free_form_is_kept_as_it_is() {
    let body = json!({"metadata": {}, "data": {"anything": [null, {}, 1.0]}, "revision": 1});
    assert_eq!(conformed("apps.v1.ControllerRevision", &body), body);
    let crd = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
    let schema = builtin().named(crd).unwrap();
    let mut value = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {
        "type": "object", "default": {"a": []}, "properties": {"x": {"type": "string", "bogus": 1}},
    }}}]}});
    let found = conform(
        schema,
        &mut value,
        "CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
    )
    .unwrap();
    assert_eq!(
        found.unknown,
        ["spec.versions[0].schema.openAPIV3Schema.properties.x.bogus"]
    );
    assert_eq!(
        value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["default"],
        json!({"a": []})
    );
}

#[test]
fn field_validation_warns_refuses_or_is_silent() {
    let (unknown, twice) = (
        vec!["spec.bogus".to_owned()],
        vec!["spec.replicas".to_owned()],
    );
    let check = |mode: FieldValidation| mode.check(&unknown, &twice, "Deployment", "apps/v1");
    assert_eq!(
        check(FieldValidation::Ignore).unwrap(),
        Vec::<String>::new()
    );
    assert_eq!(
        check(FieldValidation::Warn).unwrap(),
        [
            r#"unknown field "spec.bogus""#,
            r#"duplicate field "spec.replicas""#
        ]
    );
    let error = check(FieldValidation::Strict).unwrap_err();
    assert_eq!(error.code.as_u16(), 400);
    assert_eq!(
        error.message,
        r#"Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.bogus", duplicate field "spec.replicas""#
    );
    assert!(
        FieldValidation::Strict
            .check(&[], &[], "Pod", "v1")
            .unwrap()
            .is_empty()
    );
}

#[test]
fn what_a_patch_made_is_refused_as_invalid() {
    let schema = builtin().named("io.k8s.api.apps.v1.Deployment").unwrap();
    let mut value = json!({"spec": {"replicas": "3"}});
    let mismatch = conform_patched(schema, &mut value, "Deployment").unwrap_err();
    let bogus = ["spec.bogus".to_owned()];
    let strict = FieldValidation::Strict
        .check_patch(&bogus, &[])
        .unwrap_err();
    for (error, expected) in [
        (
            mismatch,
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            strict,
            "strict decoding error: unknown field \"spec.bogus\"",
        ),
    ] {
        assert_eq!((error.code.as_u16(), error.reason), (422, "Invalid"));
        assert_eq!(
            error.message,
            format!(" \"\" is invalid: patch: Invalid value: {expected}")
        );
    }
    assert_eq!(
        FieldValidation::Warn
            .check_patch(&bogus, &[])
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn the_parameter_has_four_values() {
    for (text, expected) in [
        (None, Some(FieldValidation::Warn)),
        (Some(""), Some(FieldValidation::Warn)),
        (Some("Warn"), Some(FieldValidation::Warn)),
        (Some("Ignore"), Some(FieldValidation::Ignore)),
        (Some("Strict"), Some(FieldValidation::Strict)),
        (Some("strict"), None),
    ] {
        assert_eq!(FieldValidation::parse(text), expected, "{text:?}");
    }
}

/// Values shaped somewhat like a pod, right and wrong.
fn podlike() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!({})),
        Just(json!([])),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
        Just(json!("1024Mi")),
        Just(json!("2020-01-02T03:04:05+01:00")),
    ];
    let names = [
        "metadata",
        "spec",
        "status",
        "labels",
        "containers",
        "name",
        "resources",
        "limits",
        "env",
        "volumes",
        "emptyDir",
        "bogus",
        "creationTimestamp",
        "nodeSelector",
        "priority",
    ];
    leaf.prop_recursive(6, 48, 5, move |inner| {
        let key = prop::sample::select(names.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map(key, inner, 0..6)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn conforming_twice_is_conforming_once(body in podlike()) {
        if let Ok((once, _)) = run("core.v1.Pod", &body) {
            let (twice, unknown) = run("core.v1.Pod", &once).unwrap();
            prop_assert_eq!(twice, once);
            prop_assert!(unknown.is_empty());
        }
    }
}

#[test]
fn numbers_that_a_merge_has_put_lose_their_upper_bits_but_no_fraction() {
    let schema = builtin().named("io.k8s.api.apps.v1.Deployment").unwrap();
    for (given, expected) in [
        (json!(15), Ok(json!(15))),
        (json!(2.0), Ok(json!(2))),
        (json!(1e3), Ok(json!(1000))),
        (json!(2_147_483_648_i64), Ok(json!(-2_147_483_648_i64))),
        (json!(4_294_967_297_i64), Ok(json!(1))),
        // A number beyond all integers becomes the least of them, of which the lower bits are kept.
        (json!(1e20), Ok(json!(0))),
        (json!(1.5), Err("cannot convert float64 to int32")),
        (json!("3"), Err("unrecognized type: int32")),
    ] {
        let mut value = json!({"spec": {"replicas": given}});
        let found = conform_merged(schema, &mut value, "Deployment");
        let found = found.map(|_| value["spec"]["replicas"].clone());
        assert_eq!(found, expected.map_err(str::to_owned), "{given}");
    }
}
