use std::{net::IpAddr, sync::Arc, time::Duration};

use http::{HeaderMap, Request, Version, request::Parts};
use neap_kit::key::Key;

use crate::{
    api::Protocol,
    resolver::{
        http::{ProbeRules, headers},
        routes::{Route, RouteDefaults, RoutedPort, RoutedService},
    },
};

fn route() -> Route {
    let port = RoutedPort {
        number: 80,
        resolver_port: 20000,
        protocol: Protocol::Http,
        ignore_empty: false,
    };
    let service = RoutedService {
        key: Key::new("shop", "cart"),
        ports: vec![port.clone()],
        deadline: Duration::from_secs(1),
        limits: RouteDefaults::default().limits,
        probes: Arc::new(ProbeRules::default()),
        waiting_page: false,
        out_of_path: false,
        not_ready: None,
        unreconciled: false,
    };
    Route {
        service: Arc::new(service),
        port,
    }
}

fn sent(version: Version, uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().version(version).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (mut head, ()) = request.body(()).unwrap().into_parts();
    let source: IpAddr = "::ffff:10.1.2.3".parse().unwrap();
    let wanted = headers::requested_upgrade(head.version, &head.headers);
    headers::prepare_request(&mut head, source, &route(), wanted.as_ref());
    head
}

fn shown(headers: &HeaderMap) -> Vec<String> {
    let mut shown: Vec<_> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    shown.sort();
    shown
}

#[test]
fn hop_by_hop_headers_are_not_forwarded() {
    let head = sent(
        Version::HTTP_11,
        "http://shop.example.com/a?b",
        &[
            ("host", "shop.example.com"),
            ("connection", "keep-alive, X-Secret"),
            ("keep-alive", "timeout=5"),
            ("x-secret", "1"),
            ("te", "gzip, trailers"),
            ("upgrade", "h2c"),
            ("expect", "100-continue"),
            ("x-forwarded-host", "forged"),
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-for", "2.2.2.2"),
            ("cookie", "a=b"),
        ],
    );
    assert_eq!(head.uri, "/a?b");
    let expected = [
        "cookie: a=b",
        "host: shop.example.com",
        "te: trailers",
        "x-forwarded-for: 1.1.1.1, 2.2.2.2, 10.1.2.3",
        "x-forwarded-host: shop.example.com",
    ];
    assert_eq!(shown(&head.headers), expected);
}

#[test]
fn an_upgrade_request_is_forwarded() {
    let upgrade = [
        ("host", "a"),
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
    ];
    let head = sent(Version::HTTP_11, "/", &upgrade);
    assert_eq!(head.headers["connection"], "upgrade");
    assert_eq!(head.headers["upgrade"], "websocket");
    let head = sent(Version::HTTP_2, "http://a/", &upgrade);
    assert!(!head.headers.contains_key("upgrade"));
    let head = sent(Version::HTTP_11, "/", &upgrade[..2]);
    assert!(!head.headers.contains_key("connection"));
}

#[test]
fn a_client_without_a_host_header_requests_the_service() {
    let head = sent(Version::HTTP_10, "/", &[]);
    assert_eq!(head.headers["host"], "cart.shop");
    assert_eq!(head.version, Version::HTTP_11);
    let head = sent(Version::HTTP_2, "http://shop.example.com/a", &[]);
    assert_eq!(head.uri, "http://shop.example.com/a");
    assert!(!head.headers.contains_key("host"));
    assert_eq!(head.headers["x-forwarded-host"], "shop.example.com");
}

#[test]
fn the_trace_headers_of_a_client_are_forwarded_unchanged() {
    let parent = (
        "traceparent",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    );
    let state = ("tracestate", "shop=1");
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let head = sent(version, "http://shop/", &[parent, state]);
        for (name, value) in [parent, state] {
            assert_eq!(head.headers[name], value);
        }
    }
}
