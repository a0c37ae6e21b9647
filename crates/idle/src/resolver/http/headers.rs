//! What of a request and its answer is for the next hop only.

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

/// What a client wants to speak from now on, if it is not HTTP/2: that is spoken from the beginning
/// or not at all.
pub(super) fn wanted(version: Version, headers: &HeaderMap) -> Option<HeaderValue> {
    let asked = named(headers, header::CONNECTION).any(|name| name.eq_ignore_ascii_case("upgrade"));
    let wanted = headers.get(header::UPGRADE)?;
    let other = !wanted.as_bytes().eq_ignore_ascii_case(b"h2c");
    (version == Version::HTTP_11 && asked && other).then(|| wanted.clone())
}

/// Makes the head of a request what a pod is to see.
pub(super) fn towards_pod(
    head: &mut request::Parts,
    source: IpAddr,
    route: &Route,
    wanted: Option<&HeaderValue>,
) {
    let trailers = named(&head.headers, header::TE).any(|te| te.eq_ignore_ascii_case("trailers"));
    next_hop_only(&mut head.headers);
    // The client is told to go on by whoever reads its body, which is here.
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
    forwarded(&mut head.headers, source, host.as_ref());
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

/// Makes the head of an answer what a client is to see.
pub(super) fn towards_client(headers: &mut HeaderMap, switched: bool) {
    let upgrade = headers.get(header::UPGRADE).filter(|_| switched).cloned();
    next_hop_only(headers);
    if let Some(upgrade) = upgrade {
        let connection = HeaderValue::from_static("upgrade");
        headers.insert(header::CONNECTION, connection);
        headers.insert(header::UPGRADE, upgrade);
    }
}

/// Whom the client asked for; the service where it did not say.
fn host(head: &request::Parts, route: &Route) -> Option<HeaderValue> {
    let said = head.headers.get(header::HOST).cloned();
    let authority = || HeaderValue::from_str(head.uri.authority()?.as_str()).ok();
    let key = &route.service.key;
    let named = || HeaderValue::from_str(&format!("{}.{}", key.name(), key.namespace())).ok();
    said.or_else(authority).or_else(named)
}

fn forwarded(headers: &mut HeaderMap, source: IpAddr, host: Option<&HeaderValue>) {
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

fn next_hop_only(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = named(headers, header::CONNECTION)
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

fn named(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',').map(str::trim))
}
