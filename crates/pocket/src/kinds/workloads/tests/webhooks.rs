use super::*;

fn webhook(over: Value) -> Value {
    let mut all = json!({
        "name": "a.b.c",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://x.y/z"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}],
    });
    merge(&mut all, over);
    json!({"metadata": {"name": "x"}, "webhooks": [all]})
}

#[test]
fn webhooks_get_the_defaults_of_their_kind() {
    let service = json!({"clientConfig": {"service": {"name": "s", "namespace": "n"}}});
    let object = created("mutatingwebhookconfigurations", &webhook(service));
    let webhook = &object["webhooks"][0];
    assert_eq!(webhook["reinvocationPolicy"], json!("Never"));
    assert_eq!(webhook["clientConfig"]["service"]["port"], json!(443));
}

#[test]
fn webhooks_refuse_what_makes_no_sense() {
    let client = |client: Value| json!({"clientConfig": client});
    let rule = |key: &str, value: Value| {
        let mut rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
        rule[key] = value;
        json!({"rules": [rule]})
    };
    for (over, errors) in [
        (json!({}), None),
        (
            rule("resources", json!(["pods", "pods/status", "deployments/*"])),
            None,
        ),
        (
            json!({"name": "a.b"}),
            Some(
                "name: Invalid value: \"a.b\": should be a domain with at least three segments separated by dots",
            ),
        ),
        (
            client(json!({})),
            Some("clientConfig: Required value: exactly one of url or service is required"),
        ),
        (
            client(json!({"url": "https://x", "service": {"name": "s", "namespace": "n"}})),
            Some("clientConfig: Required value: exactly one of url or service is required"),
        ),
        (
            client(json!({"url": "http://x.y"})),
            Some(
                "clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            ),
        ),
        (
            client(json!({"url": "https://u@x.y"})),
            Some(
                "clientConfig.url: Invalid value: \"u\": user information is not permitted in the URL",
            ),
        ),
        (
            client(json!({"url": "https:///z"})),
            Some(
                "clientConfig.url: Required value: url must be a valid URL: desired format: https://host[/path]",
            ),
        ),
        (
            client(json!({"url": "https://x.y/?q=1"})),
            Some(
                "clientConfig.url: Invalid value: \"q=1\": query parameters are not permitted in the URL",
            ),
        ),
        (
            client(json!({"service": {"name": "s", "namespace": "n", "port": 0}})),
            Some(
                "clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
            ),
        ),
        (
            client(json!({"service": {"name": "s", "namespace": "n", "path": "/a//b"}})),
            Some(
                "clientConfig.service.path: Invalid value: \"/a//b\": segment[1] may not be empty",
            ),
        ),
        (
            json!({"matchConditions": [{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]}),
            Some("matchConditions[1].name: Duplicate value: \"a\""),
        ),
        (
            json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            Some(
                "objectSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ),
        ),
        (
            client(json!({"url": "https://x.y#f"})),
            Some("clientConfig.url: Invalid value: \"f\": fragments are not permitted in the URL"),
        ),
        (
            client(json!({"service": {"name": "s", "namespace": "n", "path": "x"}})),
            Some("clientConfig.service.path: Invalid value: \"x\": must start with a '/'"),
        ),
        (
            json!({"sideEffects": "Some"}),
            Some(
                "sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
            ),
        ),
        (
            json!({"timeoutSeconds": 31}),
            Some(
                "timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            ),
        ),
        (
            json!({"admissionReviewVersions": ["v7"]}),
            Some(
                "admissionReviewVersions: Invalid value: [\"v7\"]: must include at least one of v1, v1beta1",
            ),
        ),
        (
            rule("operations", json!(["*", "CREATE"])),
            Some(
                "rules[0].operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify other operations",
            ),
        ),
        (
            rule("apiGroups", json!(["*", "apps"])),
            Some(
                "rules[0].apiGroups: Invalid value: [\"*\",\"apps\"]: if '*' is present, must not specify other API groups",
            ),
        ),
        (
            rule("resources", json!([])),
            Some("rules[0].resources: Required value"),
        ),
        (
            rule("resources", json!(["pods/*", "pods/log"])),
            Some(
                "rules[0].resources[1]: Invalid value: \"pods/log\": if 'pods/*' is present, must not specify pods/log",
            ),
        ),
    ] {
        let expected = errors.map(|errors| format!("webhooks[0].{errors}"));
        let found = refusals("validatingwebhookconfigurations", &webhook(over));
        assert_eq!(found, Vec::from_iter(expected));
    }
}

#[test]
fn webhooks_of_one_configuration_have_names_of_their_own() {
    let mut object = webhook(json!({}));
    let twin = object["webhooks"][0].clone();
    object["webhooks"] = json!([twin, twin]);
    assert_eq!(
        refusals("validatingwebhookconfigurations", &object),
        ["webhooks[1].name: Duplicate value: \"a.b.c\""]
    );
}
