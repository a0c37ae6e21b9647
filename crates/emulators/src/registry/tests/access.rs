use std::time::Duration;

use http::Method;
use serde_json::Value;

use super::{MAX, Settings, Stage, code};
use crate::registry::{Access, User};

fn users() -> Vec<User> {
    vec![
        User::new("builder", "secret")
            .pushes("ocp/*")
            .pulls("base/*"),
        User::new("reader", "word").pulls("*"),
        User::anonymous().pulls("public/*"),
    ]
}

fn stage(access: Access) -> Stage {
    Stage::with(Settings {
        access,
        ..Settings::default()
    })
}

/// The parts of a challenge.
fn part(challenge: &str, name: &str) -> Option<String> {
    let (_, rest) = challenge.split_once(&format!("{name}=\""))?;
    Some(rest.split('"').next()?.to_owned())
}

#[tokio::test(start_paused = true)]
async fn with_basic_authentication_each_user_has_their_repositories() {
    let stage = stage(Access::Basic(users()));
    let begin = |path: &str| stage.request(Method::POST, &format!("/v2/{path}/blobs/uploads/"));
    let none = begin("ocp/release").fetch(MAX).await.unwrap();
    assert_eq!(
        (none.status.as_u16(), code(&none).as_str()),
        (401, "UNAUTHORIZED")
    );
    assert!(
        none.header("www-authenticate")
            .unwrap()
            .starts_with("Basic realm=")
    );
    for (user, password, path, status) in [
        ("builder", "secret", "ocp/release", 202),
        ("builder", "wrong", "ocp/release", 401),
        ("nobody", "secret", "ocp/release", 401),
        ("", "", "ocp/release", 401),
        ("builder", "secret", "base/rhel", 403),
        ("reader", "word", "ocp/release", 403),
    ] {
        let answer = begin(path).basic(user, password).fetch(MAX).await.unwrap();
        assert_eq!(answer.status.as_u16(), status, "{user} {path}");
    }
    let read = |path: &str| stage.request(Method::GET, &format!("/v2/{path}/tags/list"));
    assert_eq!(
        read("public/x").fetch(MAX).await.unwrap().status,
        404,
        "allowed, not there"
    );
    assert_eq!(read("base/x").fetch(MAX).await.unwrap().status, 401);
    assert_eq!(
        stage.get("/v2/").await.status,
        401,
        "a client learns how to sign in"
    );
    let signed_in = stage.request(Method::GET, "/v2/").basic("reader", "word");
    assert_eq!(signed_in.fetch(MAX).await.unwrap().status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_token_allows_what_its_user_may_and_asked_for() {
    let stage = stage(Access::Token(users()));
    let path = "/v2/ocp/release/blobs/uploads/";
    let refused = stage.post(path).await;
    assert_eq!(refused.status, 401);
    let challenge = refused.header("www-authenticate").unwrap().to_owned();
    assert_eq!(
        part(&challenge, "realm").unwrap(),
        "http://registry.example.com/token"
    );
    assert_eq!(
        part(&challenge, "scope").unwrap(),
        "repository:ocp/release:pull,push"
    );
    let service = part(&challenge, "service").unwrap();

    let token = |user: &'static str, password: &'static str, scope: &'static str| {
        let path = format!("/token?service={service}&scope={scope}");
        stage
            .request(Method::GET, &path)
            .basic(user, password)
            .fetch(MAX)
    };
    let granted = token("builder", "secret", "repository:ocp/release:pull,push")
        .await
        .unwrap();
    let granted: Value = granted.success().unwrap().json().unwrap();
    assert_eq!(granted["token"], granted["access_token"]);
    let bearer = granted["token"].as_str().unwrap().to_owned();
    let begin = |path: &str| stage.request(Method::POST, path).bearer(&bearer).fetch(MAX);
    assert_eq!(begin(path).await.unwrap().status, 202);
    let elsewhere = begin("/v2/ocp/other/blobs/uploads/").await.unwrap();
    let challenge = elsewhere.header("www-authenticate").unwrap();
    assert_eq!(part(challenge, "error").unwrap(), "insufficient_scope");

    stage.clock.sleep(Duration::from_mins(6)).await;
    let expired = begin(path).await.unwrap();
    let challenge = expired.header("www-authenticate").unwrap();
    assert_eq!(part(challenge, "error").unwrap(), "invalid_token");

    // A token is given for less than what was asked for, and then does not help.
    let less = token("reader", "word", "repository:ocp/release:pull,push")
        .await
        .unwrap();
    let less: Value = less.json().unwrap();
    let bearer = less["token"].as_str().unwrap();
    let push = stage
        .request(Method::POST, path)
        .bearer(bearer)
        .fetch(MAX)
        .await
        .unwrap();
    assert_eq!(push.status, 401);
    let pull = stage
        .request(Method::GET, "/v2/ocp/release/tags/list")
        .bearer(bearer);
    assert_eq!(
        pull.fetch(MAX).await.unwrap().status,
        404,
        "allowed, not there"
    );
    let wrong = token("builder", "wrong", "").await.unwrap();
    assert_eq!(wrong.status, 401);
    let other = stage.get("/token?service=other").await;
    assert_eq!(other.status, 403);
}

#[tokio::test(start_paused = true)]
async fn a_form_gets_a_token_and_a_refresh_token() {
    let stage = stage(Access::Token(users()));
    let scope = "repository:base/rhel:pull";
    let ask = |fields: Vec<(&'static str, String)>| {
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        stage
            .request(Method::POST, "/token")
            .form(&fields)
            .fetch(MAX)
    };
    let text = ToOwned::to_owned;
    let first = ask(vec![
        ("grant_type", text("password")),
        ("username", text("builder")),
        ("password", text("secret")),
        ("access_type", text("offline")),
        ("scope", text(scope)),
    ])
    .await
    .unwrap();
    let first: Value = first.success().unwrap().json().unwrap();
    let refresh = first["refresh_token"].as_str().unwrap().to_owned();
    let second = ask(vec![
        ("grant_type", text("refresh_token")),
        ("refresh_token", refresh),
        ("scope", text(scope)),
    ])
    .await
    .unwrap();
    let second: Value = second.success().unwrap().json().unwrap();
    let bearer = second["access_token"].as_str().unwrap();
    let pull = stage
        .request(Method::GET, "/v2/base/rhel/tags/list")
        .bearer(bearer);
    assert_eq!(
        pull.fetch(MAX).await.unwrap().status,
        404,
        "allowed, not there"
    );
    let unknown = ask(vec![("refresh_token", text("made up"))]).await.unwrap();
    assert_eq!(unknown.status, 401);
}

#[tokio::test(start_paused = true)]
async fn a_blob_is_mounted_only_from_where_the_caller_may_read() {
    let open = stage(Access::Basic(vec![
        User::new("root", "root").pushes("*"),
        User::new("builder", "secret").pushes("ocp/*"),
    ]));
    let digest = super::Digest::of(b"private");
    let path = format!("/v2/hidden/base/blobs/uploads/?digest={digest}");
    let pushed = open
        .request(Method::POST, &path)
        .basic("root", "root")
        .body("private");
    assert_eq!(pushed.fetch(MAX).await.unwrap().status, 201);
    let path = format!("/v2/ocp/app/blobs/uploads/?mount={digest}&from=hidden/base");
    let mount = open.request(Method::POST, &path).basic("builder", "secret");
    assert_eq!(
        mount.fetch(MAX).await.unwrap().status,
        202,
        "an upload instead"
    );
    let mount = open.request(Method::POST, &path).basic("root", "root");
    assert_eq!(mount.fetch(MAX).await.unwrap().status, 201);
}
