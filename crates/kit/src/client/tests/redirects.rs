use http::{HeaderMap, Method, StatusCode, Uri};

use super::{Answer, Host};
use crate::client::{Body, Error, Redirects, redirect, resolve};

const URL: &str = "https://example.com/v2/blob";

fn to(status: u16, location: &str) -> Answer {
    Answer::WithHeaders(status, vec![("location", location.to_owned())])
}

#[tokio::test(start_paused = true)]
async fn credentials_follow_within_an_origin_and_never_to_another() {
    let script = [
        to(307, "/v2/elsewhere"),
        to(302, "https://cdn.example.net/blob?signature=1"),
        to(302, "https://example.com/back"),
    ];
    let host = Host::with(script);
    let client = host.client().build().unwrap();
    let request = client.get(URL).bearer("token").secret_header("x-key", "k");
    let request = request.header("cookie", "c").header("accept", "*/*");
    let response = request.send().await.unwrap();
    assert_eq!(response.uri(), "https://example.com/back");
    let seen = host.received();
    assert_eq!(seen[2].url, "https://cdn.example.net/blob?signature=1");
    let credentials: Vec<_> = seen
        .iter()
        .map(|seen| {
            let has = |name: &str| seen.headers.contains_key(name);
            (
                has("authorization"),
                has("x-key"),
                has("cookie"),
                has("accept"),
            )
        })
        .collect();
    let (all, none) = ((true, true, true, true), (false, false, false, true));
    // What was removed does not come back with the way.
    assert_eq!(credentials, [all, all, none, none]);
}

#[tokio::test(start_paused = true)]
async fn another_port_or_scheme_is_another_origin() {
    for location in [
        "https://example.com:8443/",
        "https://EXAMPLE.com.evil.example/",
    ] {
        let host = Host::with([to(302, location)]);
        let client = host.client().build().unwrap();
        client.get(URL).bearer("token").send().await.unwrap();
        assert!(
            !host.received()[1].headers.contains_key("authorization"),
            "{location}"
        );
    }
    let host = Host::with([to(302, "https://EXAMPLE.com:443/")]);
    let client = host.client().build().unwrap();
    client.get(URL).bearer("token").send().await.unwrap();
    assert!(host.received()[1].headers.contains_key("authorization"));
}

#[tokio::test(start_paused = true)]
async fn a_redirect_never_leaves_an_encrypted_connection() {
    let host = Host::with([to(302, "http://example.com/")]);
    let client = host.client().build().unwrap();
    let error = client.get(URL).send().await.unwrap_err();
    assert!(matches!(error, Error::Redirect { .. }), "{error}");
    assert_eq!(host.received().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_redirects_ends() {
    let host = Host::with(vec![to(302, URL); 20]);
    let client = host.client().build().unwrap();
    let error = client.get(URL).send().await.unwrap_err();
    assert!(matches!(error, Error::Redirect { .. }), "{error}");
    assert_eq!(host.received().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn the_caller_may_want_to_see_a_redirect() {
    let host = Host::with([to(302, "https://cdn.example.net/")]);
    let client = host.client().build().unwrap();
    let response = client.get(URL).redirects(Redirects::Return).send().await;
    assert_eq!(response.unwrap().status(), StatusCode::FOUND);
}

#[tokio::test(start_paused = true)]
async fn a_body_is_sent_again_where_the_status_says_so() {
    for (status, method, body) in [
        (307, "POST", "x"),
        (308, "POST", "x"),
        (303, "GET", ""),
        (302, "GET", ""),
    ] {
        let host = Host::with([to(status, "/next")]);
        let client = host.client().build().unwrap();
        client.post(URL).body("x").send().await.unwrap();
        let second = host.received().remove(1);
        assert_eq!(
            (second.method.as_str(), &*second.body),
            (method, body.as_bytes()),
            "{status}"
        );
    }
    let host = Host::with([to(307, "/next")]);
    let client = host.client().build().unwrap();
    let response = client
        .put(URL)
        .stream(Body::from("x"))
        .send()
        .await
        .unwrap();
    assert_eq!(
        response.status(),
        307,
        "a stream cannot be sent again, so the caller decides"
    );
}

#[test]
fn locations_are_resolved_as_browsers_do() {
    let base: Uri = "https://example.com:8443/v2/a/blobs?x=1".parse().unwrap();
    for (location, expected) in [
        (
            "https://other.example/p?q",
            Some("https://other.example/p?q"),
        ),
        ("//other.example/p", Some("https://other.example/p")),
        (
            "/p?q=https://x/y",
            Some("https://example.com:8443/p?q=https://x/y"),
        ),
        ("p", Some("https://example.com:8443/v2/a/p")),
        ("?y=2", Some("https://example.com:8443/v2/a/blobs?y=2")),
        ("/p#part", Some("https://example.com:8443/p")),
        ("ftp://other.example/", None),
        ("javascript://x", None),
        ("https://", None),
    ] {
        let resolved = resolve(&base, location).map(|uri| uri.to_string());
        assert_eq!(resolved.as_deref(), expected, "{location}");
    }
}

#[test]
fn a_redirect_without_a_usable_location_is_refused_or_returned() {
    let uri: Uri = URL.parse().unwrap();
    let decide = |headers: &HeaderMap| {
        let policy = Redirects::default();
        redirect::decide(policy, 0, (&Method::GET, &uri), StatusCode::FOUND, headers)
    };
    assert_eq!(
        decide(&HeaderMap::new()),
        redirect::RedirectDecision::Return
    );
    let mut headers = HeaderMap::new();
    headers.insert("location", "ftp://x/".parse().unwrap());
    let refused = redirect::RedirectRefusal::BadLocation;
    assert_eq!(
        decide(&headers),
        redirect::RedirectDecision::Refuse(refused)
    );
}
