//! Adapts the headers of requests and responses to the next hop.

use std::net::IpAddr;

use http::{
    HeaderMap, HeaderValue, Uri, Version,
    header::{self, HeaderName},
    request, uri,
};

use crate::resolver::routes::Route;

const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// The protocol that a client wants to upgrade to. An upgrade to h2c is ignored: HTTP/2 needs prior
/// knowledge here.
pub(super) fn requested_upgrade(version: Version, headers: &HeaderMap) -> Option<HeaderValue> {
    let upgrade =
        list_items(headers, header::CONNECTION).any(|name| name.eq_ignore_ascii_case("upgrade"));
    let wanted = headers.get(header::UPGRADE)?;
    let other = !wanted.as_bytes().eq_ignore_ascii_case(b"h2c");
    (version == Version::HTTP_11 && upgrade && other).then(|| wanted.clone())
}

/// Prepares the head of a request for the pod.
pub(super) fn prepare_request(
    head: &mut request::Parts,
    source: IpAddr,
    route: &Route,
    wanted: Option<&HeaderValue>,
) {
    let trailers =
        list_items(&head.headers, header::TE).any(|te| te.eq_ignore_ascii_case("trailers"));
    remove_hop_by_hop(&mut head.headers);
    // The resolver reads the body, so it sends 100 Continue itself.
    head.headers.remove(header::EXPECT);
    if trailers {
        let value = HeaderValue::from_static("trailers");
        head.headers.insert(header::TE, value);
    }
    if let Some(wanted) = wanted {
        let upgrade = HeaderValue::from_static("upgrade");
        head.headers.insert(header::CONNECTION, upgrade);
        head.headers.insert(header::UPGRADE, wanted.clone());
    }
    let host = host(head, route);
    set_forwarded(&mut head.headers, source, host.as_ref());
    if head.version == Version::HTTP_2 {
        return;
    }
    head.version = Version::HTTP_11;
    if let (false, Some(host)) = (head.headers.contains_key(header::HOST), host) {
        head.headers.insert(header::HOST, host);
    }
    let path = head.uri.path_and_query().cloned();
    let path = path.unwrap_or_else(|| uri::PathAndQuery::from_static("/"));
    head.uri = Uri::from(path);
}

/// Prepares the headers of a pod's answer for the client.
pub(super) fn prepare_response(headers: &mut HeaderMap, switched: bool) {
    let upgrade = headers.get(header::UPGRADE).filter(|_| switched).cloned();
    remove_hop_by_hop(headers);
    if let Some(upgrade) = upgrade {
        let connection = HeaderValue::from_static("upgrade");
        headers.insert(header::CONNECTION, connection);
        headers.insert(header::UPGRADE, upgrade);
    }
}

/// The host that the client requested; the name of the service if it sent none.
fn host(head: &request::Parts, route: &Route) -> Option<HeaderValue> {
    let host = head.headers.get(header::HOST).cloned();
    let authority = || HeaderValue::from_str(head.uri.authority()?.as_str()).ok();
    let key = &route.service.key;
    let named = || HeaderValue::from_str(&format!("{}.{}", key.name(), key.namespace())).ok();
    host.or_else(authority).or_else(named)
}

fn set_forwarded(headers: &mut HeaderMap, source: IpAddr, host: Option<&HeaderValue>) {
    if let Some(host) = host {
        headers.insert(FORWARDED_HOST, host.clone());
    }
    let before = headers.get_all(FORWARDED_FOR).iter();
    let mut all: Vec<u8> = Vec::new();
    for value in before {
        all.extend_from_slice(value.as_bytes());
        all.extend_from_slice(b", ");
    }
    all.extend_from_slice(source.to_canonical().to_string().as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&all) {
        headers.insert(FORWARDED_FOR, value);
    }
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = list_items(headers, header::CONNECTION)
        .filter_map(|name| name.parse().ok())
        .collect();
    for name in listed {
        headers.remove(name);
    }
    for name in [
        header::CONNECTION,
        header::TE,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        HTTP2_SETTINGS,
    ] {
        headers.remove(name);
    }
}

fn list_items(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',').map(str::trim))
}
