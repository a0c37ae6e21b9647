use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use serde_json::{Value, json};

use crate::resolver::http::ProbeRules;

fn probes(spec: Value) -> ProbeRules {
    let spec: Vec<_> = serde_json::from_value(spec).unwrap();
    ProbeRules::compile(&spec)
}

fn answer(
    probes: &ProbeRules,
    method: &str,
    uri: &str,
    headers: &[(&str, &str)],
) -> Option<(u16, String)> {
    let method: Method = method.parse().unwrap();
    let uri: Uri = uri.parse().unwrap();
    let headers = headers.iter().map(|(name, value)| {
        let name: HeaderName = name.parse().unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    });
    let headers: HeaderMap = headers.collect();
    let canned = probes.answer(&method, &uri, &headers)?;
    Some((canned.status.as_u16(), canned.body.clone()))
}

#[test]
fn a_prefix_is_made_of_whole_segments() {
    let fits = |prefix: Option<&str>, path: &str| {
        let path_rule = match prefix {
            Some(prefix) => json!({"type": "PathPrefix", "value": prefix}),
            None => json!({}),
        };
        let probes = probes(json!([{"path": path_rule, "response": {"status": 200, "body": ""}}]));
        answer(&probes, "GET", path, &[]).is_some()
    };
    for (prefix, path, expected) in [
        (Some("/foo"), "/foo", true),
        (Some("/foo"), "/foo/x", true),
        (Some("/foo"), "/foobar", false),
        (Some("/foo/"), "/foo/x", true),
        (Some("/foo/"), "/foo", false),
        (Some("/a b"), "/a%20b/c", true),
        (Some("/"), "/anything", true),
        (Some(""), "/anything", true),
        (None, "/anything", true),
    ] {
        assert_eq!(fits(prefix, path), expected, "{prefix:?} {path}");
    }
}

#[test]
fn the_first_rule_that_matches_completely_answers() {
    let probes = probes(json!([
        {"method": "post", "path": {"type": "Exact", "value": "/hook"},
         "response": {"status": 204, "body": "hook"}},
        {"path": {"type": "RegularExpression", "value": "^/v[0-9]+/health"},
         "headers": [{"name": "X-Probe", "value": "^kube", "type": "RegularExpression"}],
         "queryParams": [{"name": "deep", "value": "no way"}],
         "response": {"status": 503, "body": "regex"}},
        {"path": {"value": "/"}, "headers": [{"name": "user-agent", "value": "prober"}],
         "response": {"status": 0, "body": "agent"}},
    ]));
    let answer = |method, uri, headers: &[(&str, &str)]| answer(&probes, method, uri, headers);
    assert_eq!(answer("POST", "/hook", &[]), Some((204, "hook".to_owned())));
    assert_eq!(answer("GET", "/hook", &[]), None);
    let probe = ("x-probe", "kubelet");
    let found = || Some((503, "regex".to_owned()));
    assert_eq!(
        answer(
            "GET",
            "/v1/healthz?deep=no+way",
            &[("x-probe", "other"), probe]
        ),
        found()
    );
    assert_eq!(
        answer("GET", "/v1/healthz?deep=yes&deep=no+way", &[probe]),
        found()
    );
    assert_eq!(answer("GET", "/v1/healthz", &[probe]), None);
    let agent = ("User-Agent", "prober");
    assert_eq!(
        answer("PUT", "/x", &[agent]),
        Some((200, "agent".to_owned()))
    );
    assert_eq!(answer("PUT", "/x", &[]), None);
}

#[test]
fn an_invalid_rule_matches_nothing() {
    let probes = probes(json!([
        {"path": {"type": "RegularExpression", "value": "("}, "response": {"status": 200, "body": "a"}},
        {"queryParams": [{"name": "q", "value": "(", "type": "RegularExpression"}],
         "response": {"status": 200, "body": "b"}},
        {"path": {"type": "Exact", "value": "/x"}, "response": {"status": 200, "body": "c"}},
    ]));
    assert_eq!(
        answer(&probes, "GET", "/x?q=(", &[]),
        Some((200, "c".to_owned()))
    );
    assert_eq!(answer(&probes, "GET", "/y?q=(", &[]), None);
}
