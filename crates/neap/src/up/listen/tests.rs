use super::*;

fn listen(host: &str, port: u16) -> Listen {
    Listen {
        host: host.to_owned(),
        port,
    }
}

#[test]
fn listen_addresses_are_parsed() {
    for (text, expected) in [
        ("127.0.0.1:6443", listen("127.0.0.1", 6443)),
        ("127.0.0.1:0", listen("127.0.0.1", 0)),
        ("0.0.0.0", listen("0.0.0.0", 6443)),
        ("localhost:80", listen("localhost", 80)),
        ("7000", listen("127.0.0.1", 7000)),
        ("::1", listen("::1", 6443)),
        ("[::1]", listen("::1", 6443)),
        ("[::1]:0", listen("::1", 0)),
        ("[0:0:0::1]:0", listen("::1", 0)),
    ] {
        assert_eq!(text.parse(), Ok(expected), "{text}");
    }
}

#[test]
fn invalid_addresses_are_refused_with_the_reason() {
    for (text, expected) in [
        ("", ParseError::NoHost),
        (":6443", ParseError::NoHost),
        ("localhost:", ParseError::BadPort(String::new())),
        ("localhost:66000", ParseError::BadPort("66000".into())),
        ("70000", ParseError::BadPort("70000".into())),
        ("[::1", ParseError::BadHost("[::1".into())),
        ("[::1]6443", ParseError::BadHost("[::1]6443".into())),
        ("[localhost]:1", ParseError::BadHost("[localhost]:1".into())),
        ("a b:1", ParseError::BadHost("a b".into())),
    ] {
        assert_eq!(text.parse::<Listen>(), Err(expected), "{text}");
    }
}

#[test]
fn display_and_parsing_agree() {
    for text in ["127.0.0.1:6443", "[::1]:0", "localhost:1"] {
        assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
    }
}

#[test]
fn url_of_a_wildcard_address_is_loopback() {
    for (host, local, url) in [
        ("0.0.0.0", "0.0.0.0:1", "https://127.0.0.1:1"),
        ("::", "[::]:1", "https://[::1]:1"),
        ("localhost", "127.0.0.1:1", "https://localhost:1"),
        ("::1", "[::1]:1", "https://[::1]:1"),
    ] {
        let address = Address {
            host: host.into(),
            local: local.parse().unwrap(),
        };
        assert_eq!(address.url(), url);
    }
}

#[test]
fn certificate_covers_the_host_but_no_wildcard() {
    let names = |host: &str, local: &str| {
        Address {
            host: host.into(),
            local: local.parse().unwrap(),
        }
        .certificate_names(Ipv4Addr::new(10, 0, 0, 1))
    };
    let named = names("devbox", "192.0.2.7:1");
    for name in [
        "devbox",
        "192.0.2.7",
        "localhost",
        "::1",
        "10.0.0.1",
        "kubernetes.default.svc",
    ] {
        assert!(named.iter().any(|known| known == name), "{name}");
    }
    assert!(!names("0.0.0.0", "0.0.0.0:1").contains(&"0.0.0.0".to_owned()));
}
