//! Webhooks that change what is written.

use serde_json::{Value, json};

use super::{
    cases::{Case, MAPS, map},
    webhooks::Reaction,
};

/// `/count/x` counts its calls in label x; `/once/x` sets label x unless it is there.
fn count(path: &str, request: &Value) -> Reaction {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let labels = &request["object"]["metadata"]["labels"];
    let mut operations = Vec::new();
    if labels.is_null() {
        operations.push(json!({"op": "add", "path": "/metadata/labels", "value": {}}));
    }
    match parts[..] {
        ["count", label] => {
            let before: u32 = labels[label]
                .as_str()
                .map_or(0, |text| text.parse().unwrap());
            let value = (before + 1).to_string();
            operations.push(
                json!({"op": "add", "path": format!("/metadata/labels/{label}"), "value": value}),
            );
        }
        ["once", label] if labels[label].is_null() => {
            operations.push(
                json!({"op": "add", "path": format!("/metadata/labels/{label}"), "value": "1"}),
            );
        }
        _ => return Reaction::allow(),
    }
    Reaction::patch(&json!(operations))
}

#[tokio::test(start_paused = true)]
async fn webhooks_are_asked_again_when_later_ones_changed_the_object() {
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let never = json!({});
    for (hooks, asked, labels) in [
        (
            vec![("once/a", &again), ("once/b", &never), ("once/c", &again)],
            vec!["/once/a", "/once/b", "/once/c", "/once/a"],
            json!({"a": "1", "b": "1", "c": "1"}),
        ),
        (
            vec![("count/a", &again), ("count/b", &again)],
            vec!["/count/a", "/count/b", "/count/a", "/count/b"],
            json!({"a": "2", "b": "2"}),
        ),
        (
            vec![("count/a", &again), ("count/b", &never), ("ok", &again)],
            vec!["/count/a", "/count/b", "/ok", "/count/a", "/ok"],
            json!({"a": "2", "b": "1"}),
        ),
    ] {
        let case = Case::new(count).await;
        let hooks: Vec<Value> = hooks
            .iter()
            .map(|(path, how)| case.hook(path, how))
            .collect();
        case.install("Mutating", "m", &hooks).await;
        let told = case.create("a").await;
        assert_eq!(case.webhooks.paths(), asked);
        assert_eq!(told.body["metadata"]["labels"], labels);
    }
}

#[tokio::test(start_paused = true)]
async fn configurations_are_asked_in_the_order_of_their_names() {
    let case = Case::new(count).await;
    for name in ["b", "a"] {
        let hook = case.hook(&format!("count/{name}"), &json!({}));
        case.install("Mutating", name, &[hook]).await;
    }
    case.create("x").await;
    assert_eq!(case.webhooks.paths(), ["/count/a", "/count/b"]);
}

/// A config map after these patch operations.
async fn patched(operations: Value) -> super::cases::HttpReply {
    let case = Case::new(move |_, _| Reaction::patch(&operations)).await;
    case.mutating("x", &json!({})).await;
    case.create("a").await
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_adds_has_no_owner() {
    let told = patched(json!([{"op": "add", "path": "/data/more", "value": "1"}])).await;
    assert_eq!(told.body["data"], json!({"k": "v", "more": "1"}));
    let entries = told.body["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        entries[0]["fieldsV1"],
        json!({"f:data": {".": {}, "f:k": {}}})
    );
}

#[tokio::test(start_paused = true)]
async fn a_patched_object_is_read_anew() {
    let told = patched(json!([{"op": "add", "path": "/zork", "value": 1}])).await;
    assert_eq!((told.code, told.body.get("zork")), (201, None));
    let told = patched(json!([{"op": "add", "path": "/data/a b", "value": "1"}])).await;
    assert_eq!(told.code, 422);
    let told = patched(json!([{"op": "add", "path": "/data/q", "value": 1}])).await;
    assert_eq!(
        (told.code, told.body["reason"].as_str()),
        (500, Some("InternalError"))
    );
    let told =
        patched(json!([{"op": "replace", "path": "/metadata/name", "value": "other"}])).await;
    assert_eq!(
        (told.code, told.body["metadata"]["name"].as_str()),
        (201, Some("other"))
    );
    let told =
        patched(json!([{"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}]))
            .await;
    assert_eq!(
        (told.code, told.message()),
        (
            400,
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    );
    let told = patched(json!([{"op": "replace", "path": "/kind", "value": "Secret"}])).await;
    assert_eq!(told.code, 500);
    let told = patched(json!([{"op": "add", "path": "/metadata/uid", "value": "u"}])).await;
    assert_ne!(told.body["metadata"]["uid"], "u");
    let told = patched(json!([{"op": "test", "path": "/data/k", "value": "nope"}])).await;
    assert_eq!(
        (told.code, told.body["reason"].as_str()),
        (500, Some("InternalError"))
    );
}

#[tokio::test(start_paused = true)]
async fn nonsense_in_managed_fields_is_put_right() {
    let told = patched(
        json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{"bad": 1}]}]),
    )
    .await;
    assert_eq!(told.body["metadata"]["managedFields"][0]["manager"], "test");
    assert!(
        told.warnings[0]
            .contains(".metadata.managedFields was in an invalid state after admission")
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_and_its_retry_are_changed_too() {
    let case = Case::new(|_, request| {
        let before = request["oldObject"]["data"]["k"].as_str().unwrap_or("none");
        Reaction::patch(&json!([{"op": "add", "path": "/data/before", "value": before}]))
    })
    .await;
    case.create("a").await;
    case.mutating("x", &json!({})).await;
    let mut new = map("a");
    new["data"]["k"] = json!("2");
    let told = case.send("PUT", &format!("{MAPS}/a"), &new).await;
    assert_eq!(told.body["data"], json!({"k": "2", "before": "v"}));
    let told = case
        .send("PATCH", &format!("{MAPS}/a"), &json!({"data": {"k": "3"}}))
        .await;
    assert_eq!(told.body["data"], json!({"k": "3", "before": "2"}));
}

#[tokio::test(start_paused = true)]
async fn a_delete_cannot_be_changed() {
    let case =
        Case::new(|_, _| Reaction::patch(&json!([{"op": "add", "path": "/data/q", "value": "1"}])))
            .await;
    case.create("a").await;
    case.mutating("x", &json!({})).await;
    let told = case
        .send("DELETE", &format!("{MAPS}/a"), &Value::Null)
        .await;
    assert_eq!(
        told.message(),
        "Internal error occurred: admission webhook \"one.tide.example\" attempted to modify the object, which is not supported for this operation"
    );
}

#[tokio::test(start_paused = true)]
async fn a_scale_is_shown_and_changed_as_a_scale() {
    let case = Case::new(|_, request| {
        if request["object"]["spec"]["replicas"].as_i64() > Some(3) {
            return Reaction::patch(
                &json!([{"op": "replace", "path": "/spec/replicas", "value": 3}]),
            );
        }
        Reaction::Answer(json!({"allowed": true, "warnings": ["few"]}))
    })
    .await;
    let at = "/apis/apps/v1/namespaces/default/deployments";
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}});
    case.send(
        "POST",
        at,
        &json!({"metadata": {"name": "d"}, "spec": spec}),
    )
    .await;
    let rules = json!([{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/scale"], "operations": ["UPDATE"]}]);
    case.mutating("x", &json!({"rules": rules})).await;
    let told = case
        .send(
            "PATCH",
            &format!("{at}/d/scale"),
            &json!({"spec": {"replicas": 9}}),
        )
        .await;
    assert_eq!(told.body["spec"]["replicas"], 3, "{}", told.body);
    let (_, request) = case.webhooks.asked().remove(0);
    assert_eq!(
        request["kind"],
        json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
    );
    assert_eq!(request["subResource"], "scale");
    assert_eq!(request["oldObject"]["kind"], "Scale");
    let fewer = json!({"spec": {"replicas": 2}});
    let told = case.send("PATCH", &format!("{at}/d/scale"), &fewer).await;
    assert_eq!(told.warnings, ["299 - \"few\""]);
}
