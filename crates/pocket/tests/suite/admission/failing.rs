//! Refusals, and webhooks that cannot be called.

use serde_json::{Value, json};

use super::{
    cases::{Case, MAPS, map},
    webhooks::Reaction,
};

fn react(path: &str, _: &Value) -> Reaction {
    match path {
        "/refuse" => Reaction::refuse("no tides today"),
        "/silent" => Reaction::Answer(json!({"allowed": false})),
        "/full" => Reaction::Answer(json!({"allowed": false, "status": {
            "message": "no tides", "reason": "Conflict", "code": 409,
            "details": {"causes": [{"message": "m", "field": "f"}]},
        }})),
        "/warn" => Reaction::Answer(json!({"allowed": true, "warnings": ["w one", "w two"]})),
        "/hang" => Reaction::Hang,
        "/leave" => Reaction::Leave,
        "/garbage" => Reaction::Raw(200, "not json".into()),
        "/uid" => Reaction::Answer(json!({"allowed": true, "uid": "other"})),
        "/redirect" => Reaction::Raw(302, String::new()),
        "/broken" => Reaction::Raw(500, "boom".into()),
        _ => Reaction::allow(),
    }
}

async fn refused_by(path: &str) -> Value {
    let case = Case::new(react).await;
    case.validating(path, &json!({})).await;
    let told = case.create("a").await;
    assert_eq!(told.code, told.body["code"], "{path}");
    told.body
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_as_the_webhook_said_it() {
    let told = refused_by("refuse").await;
    assert_eq!(
        told,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 400,
            "message": "admission webhook \"one.tide.example\" denied the request: no tides today"})
    );
    let told = refused_by("silent").await;
    assert_eq!(
        told["message"],
        "admission webhook \"one.tide.example\" denied the request without explanation"
    );
    let told = refused_by("full").await;
    assert_eq!(
        (&told["code"], &told["reason"]),
        (&json!(409), &json!("Conflict"))
    );
    assert_eq!(
        told["details"]["causes"],
        json!([{"message": "m", "field": "f"}])
    );
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_fails_stops_the_write() {
    for (path, why) in [
        (
            "hang",
            "failed to call webhook: Post \"https://hooks.example/hang?timeout=2s\": context deadline exceeded",
        ),
        (
            "leave",
            "failed to call webhook: Post \"https://hooks.example/leave?timeout=2s\": EOF",
        ),
        (
            "redirect",
            "failed to call webhook: the server responded with the status code 302 but did not return more information",
        ),
        (
            "broken",
            "failed to call webhook: an error on the server (\"boom\") has prevented the request from succeeding",
        ),
    ] {
        let why = format!("failed calling webhook \"one.tide.example\": {why}");
        assert_eq!(
            refused_by(path).await,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 500,
                "reason": "InternalError", "message": format!("Internal error occurred: {why}"),
                "details": {"causes": [{"message": why}]}})
        );
    }
    for path in ["garbage", "uid"] {
        let told = refused_by(path).await;
        assert_eq!(told["code"], 500, "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_cannot_be_reached_or_trusted_has_failed() {
    let stranger = Case::new(react).await.webhooks.ca_bundle();
    let unknown =
        "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    let misnamed =
        "tls: failed to verify certificate: x509: certificate is not valid for other.example";
    for (target, authority, why) in [
        (
            json!({"url": "https://hooks.example:9/x"}),
            None,
            "dial tcp hooks.example:9: connect: connection refused",
        ),
        (
            json!({"url": "https://[::1]:9/x"}),
            None,
            "dial tcp [::1]:9: connect: connection refused",
        ),
        (json!({"url": "https://hooks.example/x"}), Some(""), unknown),
        (
            json!({"url": "https://hooks.example/x"}),
            Some(&*stranger),
            unknown,
        ),
        (json!({"url": "https://other.example/x"}), None, misnamed),
        (
            json!({"service": {"namespace": "default", "name": "hook", "path": "/x"}}),
            None,
            "service \"hook\" not found",
        ),
    ] {
        let case = Case::new(react).await;
        let mut client = target.clone();
        let authority = authority.map_or_else(|| case.webhooks.ca_bundle(), Into::into);
        client["caBundle"] = json!(authority);
        case.validating("x", &json!({ "clientConfig": client }))
            .await;
        let told = case.create("a").await;
        let url = target["url"]
            .as_str()
            .unwrap_or("https://hook.default.svc:443/x");
        let expected = format!(
            "Internal error occurred: failed calling webhook \"one.tide.example\": failed to call webhook: Post \"{url}?timeout=2s\": {why}"
        );
        assert_eq!(told.message(), expected);
        let dialled = case.webhooks.dialled();
        assert!(dialled.iter().all(|to| !to.host.contains('[')));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_webhook_may_be_passed_over_and_a_refusing_one_may_not() {
    for (path, code) in [
        ("hang", 201),
        ("garbage", 201),
        ("leave", 201),
        ("refuse", 400),
    ] {
        let case = Case::new(react).await;
        case.validating(path, &json!({"failurePolicy": "Ignore"}))
            .await;
        assert_eq!(case.create("a").await.code, code, "{path}");
        assert_eq!(case.webhooks.paths(), [format!("/{path}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn warnings_of_webhooks_reach_the_client() {
    let case = Case::new(react).await;
    case.validating("warn", &json!({})).await;
    let told = case.create("a").await;
    assert_eq!(told.warnings, ["299 - \"w one\"", "299 - \"w two\""]);
    let told = case
        .send("DELETE", &format!("{MAPS}/a"), &Value::Null)
        .await;
    assert_eq!(told.warnings, ["299 - \"w one\"", "299 - \"w two\""]);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_webhook_delays_no_other_request() {
    let case = Case::new(react).await;
    let services = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"], "operations": ["*"]}]);
    let selector = json!({"matchLabels": {"slow": "yes"}});
    case.validating(
        "hang",
        &json!({"rules": services, "objectSelector": selector, "timeoutSeconds": 30}),
    )
    .await;
    let service = |name: &str, slow: &str| json!({"metadata": {"name": name, "labels": {"slow": slow}}, "spec": {"ports": [{"port": 80}]}});
    let at = "/api/v1/namespaces/default/services";
    let began = tokio::time::Instant::now();
    let (slow, quick) = (service("slow", "yes"), service("quick", "no"));
    let slow = case.send("POST", at, &slow);
    let quick = async {
        // Only once the other request waits for its webhook.
        while case.webhooks.dialled().is_empty() {
            tokio::task::yield_now().await;
        }
        let told = case.send("POST", at, &quick).await;
        (told, began.elapsed())
    };
    let (slow, (quick, after)) = tokio::join!(slow, quick);
    assert_eq!((slow.code, quick.code), (500, 201));
    assert!(
        after.as_secs() < 1,
        "waited {after:?} for another's webhook"
    );
}

#[tokio::test(start_paused = true)]
async fn deletes_are_asked_about_one_by_one() {
    let case = Case::new(|_, request| {
        if request["operation"] == "DELETE" && request["oldObject"]["metadata"]["name"] == "b" {
            return Reaction::refuse("b stays");
        }
        Reaction::allow()
    })
    .await;
    for name in ["a", "b"] {
        case.create(name).await;
    }
    case.validating("x", &json!({})).await;
    let told = case
        .send("DELETE", &format!("{MAPS}/b"), &Value::Null)
        .await;
    assert_eq!(
        told.message(),
        "admission webhook \"one.tide.example\" denied the request: b stays"
    );
    let told = case.send("DELETE", MAPS, &Value::Null).await;
    assert_eq!(told.code, 400);
    assert_eq!(
        case.send("GET", &format!("{MAPS}/a"), &Value::Null)
            .await
            .code,
        404
    );
    assert_eq!(
        case.send("GET", &format!("{MAPS}/b"), &Value::Null)
            .await
            .code,
        200
    );
    let (_, request) = case.webhooks.asked().remove(0);
    assert_eq!(request["object"], Value::Null);
    assert_eq!(request["options"]["kind"], "DeleteOptions");
    assert_eq!(map("x")["kind"], request["oldObject"]["kind"]);
}

#[tokio::test(start_paused = true)]
async fn who_closes_a_kept_connection_is_asked_once_more_and_on_a_new_one() {
    let case = Case::new(|_, request| match request["name"].as_str() {
        Some("bad") => Reaction::Leave,
        _ => Reaction::allow(),
    })
    .await;
    case.validating("x", &json!({})).await;
    let writes = ["a", "b", "c", "d"].map(|name| case.create(name));
    for told in futures::future::join_all(writes).await {
        assert_eq!(told.code, 201);
    }
    assert_eq!(case.webhooks.asked().len(), 4);
    let lines = case.webhooks.dialled().len();
    assert!(lines > 2, "several connections are kept");
    assert_eq!(case.create("bad").await.code, 500);
    assert_eq!(case.webhooks.asked().len(), 2);
    assert_eq!(case.webhooks.dialled().len(), lines + 1);
}
