//! Impersonation.

use std::sync::Arc;

use super::client::{TestClient, user, whole};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use neap_pocket::identity::{Authenticate, User, Verdict};
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use tower::ServiceExt;

const RULES: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";

/// Takes every token for the name of its user.
struct TrustingAuthenticator;

impl Authenticate for TrustingAuthenticator {
    fn certificate(&self, _: &[CertificateDer<'_>]) -> Verdict {
        Verdict::Silent
    }

    fn token(&self, token: &str) -> Option<User> {
        Some(User {
            name: token.into(),
            ..User::default()
        })
    }
}

/// The response to a rules review by `caller` with these headers.
async fn rules_review(server: &TestClient, caller: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let service = server
        .pocket
        .service()
        .authenticated_by(Arc::new(TrustingAuthenticator));
    let mut request = Request::post(RULES).header("authorization", format!("Bearer {caller}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = json!({"spec": {"namespace": "default"}}).to_string();
    let request = request.body(Full::<Bytes>::from(body)).unwrap();
    let (parts, body) = service.oneshot(request).await.unwrap().into_parts();
    let bytes = whole(body).await;
    (
        parts.status.as_u16(),
        serde_json::from_slice(&bytes).unwrap(),
    )
}

async fn refused(server: &TestClient, caller: &str, headers: &[(&str, &str)]) -> String {
    let (code, status) = rules_review(server, caller, headers).await;
    assert_eq!(code, 403, "{headers:?}: {status}");
    status["message"].as_str().unwrap().to_owned()
}

const USER: (&str, &str) = ("Impersonate-User", "x");
const ACCOUNT: (&str, &str) = ("Impersonate-User", "system:serviceaccount:default:acc");
const NODE: (&str, &str) = ("Impersonate-User", "system:node:n1");
const GROUP: (&str, &str) = ("Impersonate-Group", "g");
const UID: (&str, &str) = ("Impersonate-Uid", "u");
const EXTRA: (&str, &str) = ("Impersonate-Extra-a.b%2fc", "v");

fn forbidden(what: &str, verb: &str, resource: &str, group: &str, place: &str) -> String {
    format!(
        "{what} is forbidden: User \"bob\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {place}"
    )
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_the_missing_permission() {
    let server = TestClient::new().await;
    let on = |sort: &str| {
        let verb = format!("impersonate-on:{sort}:create");
        let what = "selfsubjectrulesreviews.authorization.k8s.io";
        forbidden(
            what,
            &verb,
            "selfsubjectrulesreviews",
            "authorization.k8s.io",
            "at the cluster scope",
        )
    };
    for (header, sort) in [
        (USER, "user-info"),
        (ACCOUNT, "serviceaccount"),
        (NODE, "arbitrary-node"),
    ] {
        assert_eq!(refused(&server, "bob", &[header]).await, on(sort));
    }
    // A service account with further attributes can only be impersonated without constraints.
    let wide = forbidden(
        "serviceaccounts \"acc\"",
        "impersonate",
        "serviceaccounts",
        "",
        "in the namespace \"default\"",
    );
    assert_eq!(refused(&server, "bob", &[ACCOUNT, GROUP]).await, wide);
}

#[tokio::test(start_paused = true)]
async fn details_without_a_name_are_bad_requests() {
    let server = TestClient::new().await;
    for (header, shown) in [
        (
            GROUP,
            "UID:\"\", Groups:[]string{\"g\"}, Extra:map[string][]string(nil)",
        ),
        (
            UID,
            "UID:\"u\", Groups:[]string(nil), Extra:map[string][]string(nil)",
        ),
        (
            EXTRA,
            "UID:\"\", Groups:[]string(nil), Extra:map[string][]string{\"a.b/c\":[]string{\"v\"}}",
        ),
    ] {
        let (code, status) = rules_review(&server, "bob", &[header]).await;
        let message = format!(
            "requested &user.DefaultInfo{{Name:\"\", {shown}}} without impersonating a user name"
        );
        assert_eq!((code, &status["message"]), (400, &json!(message)));
    }
    for header in [("Impersonate-User", ""), ("Impersonate-Foo", "x")] {
        assert_eq!(
            rules_review(&server, "bob", &[header]).await.0,
            201,
            "{header:?} asks for nothing"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_wide_way_needs_leave_for_every_detail() {
    let server = TestClient::new().await;
    let all = [USER, GROUP, UID, EXTRA];
    let mut resources = Vec::new();
    for (group, resource) in [
        ("", "users"),
        ("", "groups"),
        ("authentication.k8s.io", "uids"),
        ("authentication.k8s.io", "userextras/a.b/c"),
    ] {
        assert_eq!(
            rules_review(&server, "bob", &all).await.0,
            403,
            "without {resource}"
        );
        let name = format!("imp-{}", resources.len());
        server
            .cluster_role(
                &name,
                json!([{"apiGroups": [group], "resources": [resource], "verbs": ["impersonate"]}]),
            )
            .await;
        server.bind(&name, &name, user("bob")).await;
        resources.push(resource);
    }
    assert_eq!(rules_review(&server, "bob", &all).await.0, 201);
}

/// A server where `bob` may review rules while impersonating any user, if he may impersonate at
/// all.
async fn narrow() -> TestClient {
    let server = TestClient::new().await;
    let verbs = ["user-info", "serviceaccount", "arbitrary-node"]
        .map(|sort| format!("impersonate-on:{sort}:create"));
    let rules = json!([{"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectrulesreviews"], "verbs": verbs}]);
    server.cluster_role("on", rules).await;
    server.bind("on", "on", user("bob")).await;
    server
}

/// The error for missing constrained impersonation.
fn missing(name: &str, sort: &str, resource: &str, place: &str) -> String {
    let what = format!("{resource}.authentication.k8s.io \"{name}\"");
    let verb = format!("impersonate:{sort}");
    forbidden(&what, &verb, resource, "authentication.k8s.io", place)
}

const EVERYWHERE: &str = "at the cluster scope";

#[tokio::test(start_paused = true)]
async fn the_narrow_way_needs_leave_for_whom_beside_what() {
    let server = narrow().await;
    let here = "in the namespace \"default\"";
    for (header, message) in [
        (USER, missing("x", "user-info", "users", EVERYWHERE)),
        (
            ACCOUNT,
            missing("acc", "serviceaccount", "serviceaccounts", here),
        ),
        (NODE, missing("n1", "arbitrary-node", "nodes", EVERYWHERE)),
    ] {
        assert_eq!(refused(&server, "bob", &[header]).await, message);
    }
}

#[tokio::test(start_paused = true)]
async fn the_narrow_way_needs_leave_for_every_detail_and_never_leads_to_masters() {
    let server = narrow().await;
    let group = "authentication.k8s.io";
    let rules = json!([
        {"apiGroups": [group], "resources": ["users", "groups"], "verbs": ["impersonate:user-info"]},
        {"apiGroups": [group], "resources": ["serviceaccounts"], "verbs": ["impersonate:serviceaccount"]},
        {"apiGroups": [group], "resources": ["nodes"], "verbs": ["impersonate:arbitrary-node"]},
    ]);
    server.cluster_role("whom", rules).await;
    server.bind("whom", "whom", user("bob")).await;
    for headers in [vec![USER], vec![USER, GROUP], vec![ACCOUNT], vec![NODE]] {
        assert_eq!(
            rules_review(&server, "bob", &headers).await.0,
            201,
            "{headers:?}"
        );
    }
    let uid = missing("u", "user-info", "uids", EVERYWHERE);
    assert_eq!(refused(&server, "bob", &[USER, UID]).await, uid);
    let masters = missing("system:masters", "user-info", "groups", EVERYWHERE);
    let masters = format!("{masters}: impersonating the system:masters group is not allowed");
    let headers = [USER, ("Impersonate-Group", "system:masters")];
    assert_eq!(refused(&server, "bob", &headers).await, masters);
}

/// The groups of an impersonated user, found by the permissions these groups have.
async fn groups(server: &TestClient, headers: &[(&str, &str)]) -> Vec<String> {
    let admin = server.pocket.service();
    let mut request = Request::post(RULES);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = json!({"spec": {"namespace": "default"}}).to_string();
    let answer = admin
        .oneshot(request.body(Full::<Bytes>::from(body)).unwrap())
        .await
        .unwrap();
    let bytes = whole(answer.into_body()).await;
    let review: Value = serde_json::from_slice(&bytes).unwrap();
    let rules = review["status"]["resourceRules"].as_array().unwrap().iter();
    let probes = rules.filter(|rule| rule["apiGroups"] == json!(["probe"]));
    probes
        .map(|rule| rule["resources"][0].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn they_have_the_groups_that_such_users_always_have() {
    let server = TestClient::new().await;
    for (at, group) in [
        "g",
        "system:authenticated",
        "system:nodes",
        "system:serviceaccounts",
        "system:serviceaccounts:default",
    ]
    .iter()
    .enumerate()
    {
        let name = format!("probe-{at}");
        let rules = json!([
            {"apiGroups": ["probe"], "resources": [group], "verbs": ["get"]},
            {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectrulesreviews"], "verbs": ["create"]},
        ]);
        server.cluster_role(&name, rules).await;
        let subject =
            json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": group});
        server.bind(&name, &name, subject).await;
    }
    for (headers, expected) in [
        (vec![USER], vec!["system:authenticated"]),
        (vec![USER, GROUP], vec!["g", "system:authenticated"]),
        (
            vec![USER, GROUP, ("Impersonate-Group", "system:unauthenticated")],
            vec!["g"],
        ),
        (
            vec![ACCOUNT],
            vec![
                "system:authenticated",
                "system:serviceaccounts",
                "system:serviceaccounts:default",
            ],
        ),
        (vec![ACCOUNT, GROUP], vec!["g", "system:authenticated"]),
        (vec![NODE], vec!["system:authenticated", "system:nodes"]),
    ] {
        assert_eq!(groups(&server, &headers).await, expected, "{headers:?}");
    }
}

/// Bytes that are not ASCII arrive unchanged.
async fn review_with_bytes(server: &TestClient, name: &str, value: &[u8]) -> (u16, String) {
    let value = http::HeaderValue::from_bytes(value).unwrap();
    let request = Request::get("/api/v1/namespaces/default/secrets").header(name, value);
    let request = request.body(Full::<Bytes>::default()).unwrap();
    let service = server.pocket.service();
    let (parts, body) = service.oneshot(request).await.unwrap().into_parts();
    let status: Value = serde_json::from_slice(&whole(body).await).unwrap();
    let message = status["message"].as_str().unwrap_or_default();
    (parts.status.as_u16(), message.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_name_in_any_script_is_stood_in_for_and_what_is_no_text_is_refused() {
    let server = TestClient::new().await;
    let (code, message) =
        review_with_bytes(&server, "impersonate-user", "b\u{f6}b".as_bytes()).await;
    assert_eq!(code, 403, "{message}");
    assert!(
        message.contains("User \"b\u{f6}b\" cannot list"),
        "{message}"
    );
    for name in [
        "impersonate-user",
        "impersonate-uid",
        "impersonate-group",
        "impersonate-extra-a",
    ] {
        let expected = format!("the value of header {name} is not valid UTF-8");
        assert_eq!(
            review_with_bytes(&server, name, b"b\xf6b").await,
            (400, expected)
        );
    }
    assert_eq!(
        review_with_bytes(&server, "impersonate-user", b"").await.0,
        200
    );
}
