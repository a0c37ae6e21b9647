//! URLs in rules: `url(…)`. Absolute URLs and absolute paths, as the API server accepts them.

/// The parts of a URL that rules can access, as written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) scheme: Box<str>,
    /// With the port.
    pub(super) host: Box<str>,
    pub(super) path: Box<str>,
    pub(super) query: Vec<(Box<str>, Box<str>)>,
}

impl Url {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.contains(|c: char| c.is_control() || c == ' ') {
            return None;
        }
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let (before, query) = text.split_once('?').unwrap_or((text, ""));
        let (scheme, rest) = if before.starts_with('/') {
            ("", before)
        } else {
            let (scheme, rest) = before.split_once(':')?;
            (valid_scheme(scheme).then_some(scheme)?, rest)
        };
        let (host, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        valid_host(host).then(|| Self {
            scheme: scheme.into(),
            host: host.into(),
            path: path.into(),
            query: form_urlencoded::parse(query.as_bytes())
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        })
    }

    /// Without the port, and without the brackets of an IPv6 address.
    pub(super) fn hostname(&self) -> &str {
        let (name, _) = split_port(&self.host);
        name.strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .unwrap_or(name)
    }

    pub(super) fn port(&self) -> &str {
        split_port(&self.host).1
    }
}

fn split_port(host: &str) -> (&str, &str) {
    let after_brackets = host.rfind(']').map_or(0, |at| at + 1);
    match host[after_brackets..].rfind(':') {
        Some(at) => (
            &host[..after_brackets + at],
            &host[after_brackets + at + 1..],
        ),
        None => (host, ""),
    }
}

fn valid_scheme(scheme: &str) -> bool {
    let mut chars = scheme.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn valid_host(host: &str) -> bool {
    let (name, port) = split_port(host);
    let bracketed = name.starts_with('[') == name.ends_with(']');
    bracketed && port.bytes().all(|b| b.is_ascii_digit()) && !name.contains(['<', '>', '"'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_written() {
        let url = Url::parse("https://user@example.com:8443/a%20b?k=1&k=2#top").unwrap();
        assert_eq!(&*url.scheme, "https");
        assert_eq!(&*url.host, "example.com:8443");
        assert_eq!(url.hostname(), "example.com");
        assert_eq!(url.port(), "8443");
        assert_eq!(&*url.path, "/a%20b");
        assert_eq!(url.query.len(), 2);
        let six = Url::parse("http://[::1]:80/").unwrap();
        assert_eq!((six.hostname(), six.port()), ("::1", "80"));
    }

    #[test]
    fn what_is_not_absolute_is_not_a_url() {
        for text in [
            "",
            "example.com",
            "../a",
            "http://a b/",
            "http://a:x/",
            "1http://a",
        ] {
            assert_eq!(Url::parse(text), None, "{text}");
        }
        assert!(Url::parse("/only/a/path").is_some());
    }
}
