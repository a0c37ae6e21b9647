//! The `Host` of a request: exactly one, and the same as in the target (RFC 9112, 3.2).

use http::{
    HeaderMap, Uri, Version,
    header::HOST,
    uri::{Authority, Scheme},
};

/// Why a request is refused.
type Reason = &'static str;

/// Refuses a request whose host is missing, ambiguous or invalid: two readers of one request must not
/// disagree about whom it is for.
pub fn check_host(version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), Reason> {
    let mut hosts = headers.get_all(HOST).iter();
    let refuse = |why: Reason| Err(why);
    let Some(host) = hosts.next() else {
        return match version {
            Version::HTTP_11 => refuse("the request has no Host header"),
            _ => Ok(()),
        };
    };
    if hosts.next().is_some() {
        return refuse("the request has more than one Host header");
    }
    let host = host.to_str().unwrap_or("invalid host");
    let named = match host {
        "" => None,
        host => match host.parse::<Authority>() {
            Ok(named) if !host.contains('@') => Some(named),
            _ => return refuse("the Host header is invalid"),
        },
    };
    match (uri.authority(), named) {
        (Some(target), Some(named)) if is_same(target, &named, uri.scheme()) => Ok(()),
        (Some(_), _) => refuse("the Host header and the target of the request differ"),
        (None, _) => Ok(()),
    }
}

fn is_same(target: &Authority, named: &Authority, scheme: Option<&Scheme>) -> bool {
    let usual = if scheme == Some(&Scheme::HTTP) {
        80
    } else {
        443
    };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(usual);
    target.host().eq_ignore_ascii_case(named.host()) && port(target) == port(named)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_request_names_its_host_once_and_as_its_target_does() {
        let (old, new, two) = (Version::HTTP_10, Version::HTTP_11, Version::HTTP_2);
        for (version, target, hosts, fine) in [
            (new, "/version", &["a"][..], true),
            (new, "/version", &["a:6443"], true),
            (new, "/version", &[""], true),
            (new, "/version", &[], false),
            (old, "/version", &[], true),
            (new, "/version", &["a", "a"], false),
            (new, "/version", &["a", "b"], false),
            (new, "/version", &["a b"], false),
            (new, "/version", &["u@a"], false),
            (new, "https://a/version", &["a"], true),
            (new, "https://a/version", &["A:443"], true),
            (new, "http://a/version", &["a:80"], true),
            (new, "https://a/version", &["b"], false),
            (new, "https://a/version", &[""], false),
            (new, "https://a:1/version", &["a:2"], false),
            (two, "https://a/version", &[], true),
            (two, "https://a/version", &["a"], true),
            (two, "https://a/version", &["b"], false),
        ] {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, HeaderValue::from_static(host));
            }
            let checked = check_host(version, &target.parse().unwrap(), &headers);
            assert_eq!(checked.is_ok(), fine, "{version:?} {target} {hosts:?}");
        }
    }
}
