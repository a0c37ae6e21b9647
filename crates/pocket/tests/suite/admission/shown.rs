//! Which webhooks are called, and the reviews they are sent.

use serde_json::{Value, json};

use super::{
    cases::{Case, MAPS, map},
    webhooks::Reaction,
};

async fn case() -> Case {
    Case::new(|_, _| Reaction::allow()).await
}

const POD: &str = "/api/v1/namespaces/default/pods";

fn everything() -> Value {
    json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}]})
}

#[tokio::test(start_paused = true)]
async fn a_review_says_who_does_what_to_which_object() {
    let case = case().await;
    case.mutating("m", &json!({})).await;
    case.validating("v", &json!({})).await;
    case.send(
        "POST",
        &format!("{MAPS}?dryRun=All&fieldManager=f"),
        &map("a"),
    )
    .await;
    let asked = case.webhooks.asked();
    let (_, first) = &asked[0];
    let mut rest = first.clone();
    for field in ["uid", "object"] {
        rest.as_object_mut().unwrap().remove(field);
    }
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    assert_eq!(
        rest,
        json!({"kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": "a", "namespace": "default", "operation": "CREATE", "oldObject": null, "dryRun": true,
            "userInfo": {"username": "system:admin", "groups": ["system:masters", "system:authenticated"]},
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"], "fieldManager": "f"}})
    );
    let metadata = |request: &Value| -> Vec<String> {
        request["object"]["metadata"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(metadata(first), ["managedFields", "name", "namespace"]);
    let (_, second) = &asked[1];
    assert_eq!(
        metadata(second),
        [
            "creationTimestamp",
            "managedFields",
            "name",
            "namespace",
            "uid"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_generated_name_is_shown_when_it_is_there() {
    let case = case().await;
    case.mutating("m", &json!({})).await;
    case.validating("v", &json!({})).await;
    let told = case
        .send("POST", MAPS, &json!({"metadata": {"generateName": "g-"}}))
        .await;
    let asked = case.webhooks.asked();
    assert_eq!(asked[0].1.get("name"), None);
    assert_eq!(asked[1].1["name"], told.body["metadata"]["name"]);
}

#[tokio::test(start_paused = true)]
async fn subresources_are_asked_about_under_their_name() {
    let case = case().await;
    case.validating("v", &everything()).await;
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(case.send("POST", POD, &pod).await.code, 201);
    let path = |below: &str| format!("{POD}/p/{below}");
    case.send(
        "PATCH",
        &path("status"),
        &json!({"status": {"phase": "Running"}}),
    )
    .await;
    case.send("POST", &path("binding"), &json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}})).await;
    case.send(
        "POST",
        &path("eviction"),
        &json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}),
    )
    .await;
    let told: Vec<String> = case
        .webhooks
        .asked()
        .iter()
        .map(|(_, request)| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let below = text(&request["subResource"]);
            format!(
                "{} {} {below}",
                text(&request["operation"]),
                text(&request["kind"]["kind"])
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "CREATE Pod ",
            "UPDATE Pod status",
            "CREATE Binding binding",
            "CREATE Eviction eviction"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_never_stored_is_asked_about_too() {
    let case = case().await;
    case.mutating("m", &everything()).await;
    let authorization = |plural: &str| format!("/apis/authorization.k8s.io/v1/{plural}");
    let authentication = |plural: &str| format!("/apis/authentication.k8s.io/v1/{plural}");
    let pods = json!({"verb": "get", "resource": "pods"});
    let about = json!({"spec": {"user": "u", "resourceAttributes": pods}});
    for (path, body, told) in [
        (
            authorization("subjectaccessreviews"),
            about.clone(),
            "SubjectAccessReview subjectaccessreviews ",
        ),
        (
            authorization("selfsubjectaccessreviews"),
            about,
            "SelfSubjectAccessReview selfsubjectaccessreviews ",
        ),
        (
            authorization("selfsubjectrulesreviews"),
            json!({"spec": {"namespace": "default"}}),
            "SelfSubjectRulesReview selfsubjectrulesreviews ",
        ),
        (
            authentication("tokenreviews"),
            json!({"spec": {"token": "t"}}),
            "TokenReview tokenreviews ",
        ),
        (
            authentication("selfsubjectreviews"),
            json!({}),
            "SelfSubjectReview selfsubjectreviews ",
        ),
        (
            "/api/v1/namespaces/default/serviceaccounts/default/token".into(),
            json!({}),
            "TokenRequest serviceaccounts token",
        ),
    ] {
        let before = case.webhooks.asked().len();
        assert_eq!(case.send("POST", &path, &body).await.code, 201, "{path}");
        let asked = case.webhooks.asked();
        assert_eq!(asked.len(), before + 1, "{path}");
        let request = &asked[before].1;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, resource) = (
            text(&request["kind"]["kind"]),
            text(&request["resource"]["resource"]),
        );
        assert_eq!(
            format!("{kind} {resource} {}", text(&request["subResource"])),
            told
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_refused_before_validating_webhooks_are_asked() {
    let case = case().await;
    case.validating("v", &everything()).await;
    for (path, code) in [
        ("/apis/authorization.k8s.io/v1/subjectaccessreviews", 422),
        ("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", 400),
        ("/apis/authentication.k8s.io/v1/tokenreviews", 400),
        (
            "/api/v1/namespaces/default/serviceaccounts/missing/token",
            404,
        ),
    ] {
        let body = json!({"spec": {}});
        assert_eq!(case.send("POST", path, &body).await.code, code, "{path}");
    }
    assert_eq!(case.webhooks.asked().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn configurations_of_webhooks_and_the_servers_own_writes_are_not_asked_about() {
    let case = case().await;
    case.validating("v", &everything()).await;
    case.mutating("m", &everything()).await;
    let at = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/v";
    let told = case
        .send("PATCH", at, &json!({"metadata": {"labels": {"q": "1"}}}))
        .await;
    assert_eq!(told.code, 200);
    assert_eq!(case.webhooks.paths(), [""; 0]);
    // The default account of a namespace is the server's own write.
    case.send(
        "POST",
        "/api/v1/namespaces",
        &json!({"metadata": {"name": "new"}}),
    )
    .await;
    assert_eq!(case.webhooks.paths(), ["/m", "/v"]);
}

#[tokio::test(start_paused = true)]
async fn selectors_and_conditions_choose() {
    let labelled = |labels: Value| json!({"matchLabels": labels});
    let condition = |text: &str| json!([{"name": "c", "expression": text}]);
    for (changes, asked, code) in [
        (
            json!({"namespaceSelector": labelled(json!({"kubernetes.io/metadata.name": "default"}))}),
            true,
            201,
        ),
        (
            json!({"namespaceSelector": labelled(json!({"team": "x"}))}),
            false,
            201,
        ),
        (
            json!({"objectSelector": labelled(json!({"x": "1"}))}),
            false,
            201,
        ),
        (
            json!({"matchConditions": condition("object.metadata.name == 'a'")}),
            true,
            201,
        ),
        (
            json!({"matchConditions": condition("request.operation == 'DELETE'")}),
            false,
            201,
        ),
        (
            json!({"matchConditions": condition("object.nope == 1")}),
            false,
            403,
        ),
        (
            json!({"matchConditions": condition("object.nope == 1"), "failurePolicy": "Ignore"}),
            false,
            201,
        ),
    ] {
        let case = case().await;
        case.validating("v", &changes).await;
        let told = case.create("a").await;
        assert_eq!(told.code, code, "{changes}");
        assert_eq!(!case.webhooks.paths().is_empty(), asked, "{changes}");
        if code == 403 {
            assert_eq!(
                told.message(),
                "configmaps \"a\" is forbidden: expression 'object.nope == 1' resulted in error: no such key: nope"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_chosen_by_its_own_labels() {
    let case = case().await;
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["namespaces"], "operations": ["*"]}]);
    case.validating(
        "v",
        &json!({"rules": rules, "namespaceSelector": {"matchLabels": {"a": "b"}}}),
    )
    .await;
    let at = "/api/v1/namespaces";
    case.send("POST", at, &json!({"metadata": {"name": "one"}}))
        .await;
    case.send(
        "POST",
        at,
        &json!({"metadata": {"name": "two", "labels": {"a": "b"}}}),
    )
    .await;
    let asked = case.webhooks.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (&asked[0].1["name"], &asked[0].1["namespace"]),
        (&json!("two"), &json!("two"))
    );
}

#[tokio::test(start_paused = true)]
async fn objects_are_shown_in_the_version_a_webhook_knows() {
    let case = case().await;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema});
    let definition = json!({"metadata": {"name": "tides.t.example"}, "spec": {"group": "t.example", "scope": "Namespaced",
        "names": {"plural": "tides", "kind": "Tide"}, "versions": [version("v1", true), version("v1beta1", false)]}});
    case.send(
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &definition,
    )
    .await;
    let rules = json!([{"apiGroups": ["t.example"], "apiVersions": ["v1"], "resources": ["tides"], "operations": ["*"]}]);
    case.validating("v", &json!({ "rules": rules })).await;
    let tide =
        json!({"apiVersion": "t.example/v1beta1", "kind": "Tide", "metadata": {"name": "t"}});
    let told = case
        .send(
            "POST",
            "/apis/t.example/v1beta1/namespaces/default/tides",
            &tide,
        )
        .await;
    assert_eq!(told.code, 201, "{}", told.body);
    let (_, request) = case.webhooks.asked().remove(0);
    assert_eq!(request["object"]["apiVersion"], "t.example/v1");
    assert_eq!(
        (
            &request["kind"]["version"],
            &request["requestKind"]["version"]
        ),
        (&json!("v1"), &json!("v1beta1"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_leads_to_its_endpoint_and_connections_are_kept() {
    let case = case().await;
    let core = "/api/v1/namespaces/default";
    case.send(
        "POST",
        &format!("{core}/services"),
        &json!({"metadata": {"name": "hook"}, "spec": {"ports": [{"name": "https", "port": 443}]}}),
    )
    .await;
    let slice = json!({"metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}}, "addressType": "IPv4",
        "ports": [{"name": "https", "port": 9443}], "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": true}}]});
    let told = case
        .send(
            "POST",
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            &slice,
        )
        .await;
    assert_eq!(told.code, 201, "{}", told.body);
    let client = json!({"service": {"namespace": "default", "name": "hook", "path": "/deep/path"}, "caBundle": case.webhooks.ca_bundle()});
    case.validating("x", &json!({ "clientConfig": client }))
        .await;
    for name in ["a", "b"] {
        assert_eq!(case.create(name).await.code, 201);
    }
    assert_eq!(case.webhooks.paths(), ["/deep/path", "/deep/path"]);
    let dialled = case.webhooks.dialled();
    assert_eq!(dialled.len(), 1, "the connection was not used again");
    assert_eq!(dialled[0].endpoint.unwrap().to_string(), "10.1.2.3:9443");
    assert_eq!(dialled[0].host, "hook.default.svc");
}

#[tokio::test(start_paused = true)]
async fn removed_configurations_are_forgotten() {
    let case = case().await;
    case.validating("v", &json!({})).await;
    let at = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/v";
    case.send("DELETE", at, &Value::Null).await;
    case.create("a").await;
    assert_eq!(case.webhooks.paths(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_eviction_is_told_as_dry_only_by_the_request_itself() {
    let case = case().await;
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(case.send("POST", POD, &pod).await.code, 201);
    case.validating("v", &everything()).await;
    let options = json!({"dryRun": ["All"]});
    for (query, options, told) in [
        // As in kube-apiserver: the options of the delete are part of the object.
        ("", options, false),
        ("?dryRun=All", Value::Null, true),
    ] {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, "deleteOptions": options});
        let path = format!("{POD}/p/eviction{query}");
        assert_eq!(case.send("POST", &path, &eviction).await.code, 201);
        let (_, request) = case.webhooks.asked().remove(0);
        assert_eq!(request["dryRun"], told, "{query}");
        let kept = case.send("GET", &format!("{POD}/p"), &Value::Null).await;
        assert!(kept.body["metadata"]["deletionTimestamp"].is_null());
    }
}
