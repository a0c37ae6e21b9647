//! Texts that are valid request targets: with a scheme, or a path from the root.

use std::net::Ipv6Addr;

/// Whether `text` can be the target of a request.
pub(super) fn is_target(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    // The whole server, as in `OPTIONS *`.
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return false;
    };
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let path = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(after) => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            if !is_authority(scheme, authority) {
                return false;
            }
            path
        }
        None => rest,
    };
    is_escaped(path)
}

/// The scheme, empty if there is none, and the rest. A colon must follow something.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let end = text.bytes().position(|byte| !part(byte));
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    match end {
        Some(0) if text.starts_with(':') => None,
        Some(end) if begins && text[end..].starts_with(':') => {
            Some((&text[..end], &text[end + 1..]))
        }
        _ => Some(("", text)),
    }
}

fn is_authority(scheme: &str, authority: &str) -> bool {
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let part = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    user.chars().all(part) && is_escaped(user) && is_host(scheme, host)
}

fn is_host(scheme: &str, host: &str) -> bool {
    if let Some(literal) = host.strip_prefix('[') {
        let Some((address, port)) = literal.rsplit_once(']') else {
            return false;
        };
        let address = address.split("%25").next().unwrap_or_default();
        return is_port(port) && address.parse::<Ipv6Addr>().is_ok();
    }
    // Other schemes may list several hosts with their ports.
    let strict = ["http", "https"]
        .iter()
        .any(|name| scheme.eq_ignore_ascii_case(name));
    let port = if strict {
        host.find(':')
    } else {
        host.rfind(':')
    };
    let known = |byte: u8| {
        !byte.is_ascii()
            || byte.is_ascii_alphanumeric()
            || b"-_.~!$&'()*+,;=:]<>\"%".contains(&byte)
    };
    port.is_none_or(|at| is_port(&host[at..])) && host.bytes().all(known) && is_host_escaped(host)
}

/// Whether the text is empty, or a colon and digits.
fn is_port(text: &str) -> bool {
    let digits = text.strip_prefix(':');
    text.is_empty() || digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether two digits follow each percent sign.
fn is_escaped(text: &str) -> bool {
    let digits = |after: &str| {
        let code = after.as_bytes().get(..2);
        code.is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit))
    };
    text.split('%').skip(1).all(digits)
}

/// In a host only a percent sign and what is not ASCII may be escaped.
fn is_host_escaped(host: &str) -> bool {
    let beyond = |after: &str| after.starts_with("25") || !after.starts_with(|c| c < '8');
    is_escaped(host) && host.split('%').skip(1).all(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_scheme_or_begins_at_the_root() {
        for text in [
            "*",
            "/",
            "/a b",
            "//x y",
            "a:",
            "mailto:x y",
            "https://example.com/x?y",
            "http://user:p%40@example.com:80",
            "HTTP://example.com",
            "http://[::1]:80/x",
            "http://é",
            "http://%C3%A9",
            "postgres://a:1,b:2/x",
        ] {
            assert!(is_target(text), "{text}");
        }
        for text in [
            "",
            "x",
            "a/b",
            "::",
            ":a",
            "1a:b",
            "/%zz",
            "/a\tb",
            "http://a b",
            "http://a:b",
            "http://a:1:2",
            "http://[10.0.0.1]",
            "http://[::1",
            "http://%41",
            "http://u ser@a",
        ] {
            assert!(!is_target(text), "{text}");
        }
    }
}
