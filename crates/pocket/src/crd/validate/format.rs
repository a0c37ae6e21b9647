//! The string formats that are checked.
//!
//! A format that is not in [`is_valid`]'s table is documentation only, as for the API server. Not
//! checked although the server knows them: isbn, creditcard, ssn, bsonobjectid, password.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::LazyLock,
};

use base64::Engine as _;
use jiff::SignedDuration;
use regex::Regex;

use super::{FieldErrorKind, FieldPath, Findings, uri};

pub(super) fn check(format: &str, text: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    if is_valid(format, text) == Some(false) {
        let detail = format!("{at} in body must be of type {format}: \"{text}\"");
        findings.add(FieldErrorKind::TypeInvalid, at, Some(text.into()), detail);
    }
}

/// Removes leading zeros from the parts of an address, as old software writes them.
fn without_zeros(text: &str) -> String {
    let short = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    text.split('.').map(short).collect::<Vec<_>>().join(".")
}

/// Whether `text` has the format; `None` for formats that are not checked.
pub(crate) fn is_valid(format: &str, text: &str) -> Option<bool> {
    Some(match format {
        "date-time" | "datetime" => is_date_time(text),
        "date" => is_date(text),
        "duration" => go_duration(text).is_some() || is_loose_duration(text),
        "ipv4" => without_zeros(text).parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uri" => uri::is_target(text),
        "hostname" => text.len() <= 253 && HOSTNAME.as_ref().is_some_and(|r| r.is_match(text)),
        "email" => EMAIL.as_ref().is_some_and(|r| r.is_match(text)),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => is_uuid(format, text),
        "byte" => base64::engine::general_purpose::STANDARD
            .decode(text)
            .is_ok(),
        "hexcolor" => is_hex_color(text),
        "k8s-short-name" => text.len() <= 63 && LABEL.as_ref().is_some_and(|r| r.is_match(text)),
        "k8s-long-name" => {
            text.len() <= 253
                && text
                    .split('.')
                    .all(|part| LABEL.as_ref().is_some_and(|r| r.is_match(part)))
        }
        _ => return None,
    })
}

// The expressions are constant and a test uses each of them, so none is `None`.
static HOSTNAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$").ok()
});
static EMAIL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"^[^@\s<>"]+@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$"#).ok());
static LABEL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$").ok());

/// Any sign may precede a fraction, as in kube-apiserver.
static CLOCK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$")
        .ok()
});
static AMOUNT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[0-9]+\s*([A-Za-zµ]+)").ok());

fn is_date(text: &str) -> bool {
    let digits = |(at, byte): (usize, u8)| matches!(at, 4 | 7) == (byte == b'-');
    text.len() == 10
        && text.bytes().enumerate().all(digits)
        && text.parse::<jiff::civil::Date>().is_ok()
}

/// A date and, after a `T`, a time of day with a zone. Text after a second `T` is ignored, and the
/// zone may be any number.
fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let date = parts.next().is_some_and(is_date);
    let clock = |text| CLOCK.as_ref().is_some_and(|r| r.is_match(text));
    date && parts.next().is_some_and(clock)
}

/// Whether `text` contains a number with a unit of time, as people write durations.
fn is_loose_duration(text: &str) -> bool {
    const BEGINNINGS: [&str; 8] = [
        "nano", "micro", "milli", "sec", "min", "hour", "day", "week",
    ];
    const UNITS: [&str; 11] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    let mut amounts = AMOUNT.iter().flat_map(|amount| amount.captures_iter(text));
    amounts.any(|amount| {
        let unit = amount[1].to_lowercase();
        UNITS.contains(&unit.as_str()) || BEGINNINGS.iter().any(|word| unit.starts_with(word))
    })
}

/// RFC 3339 with a `T` and a zone.
pub(crate) fn date_time(text: &str) -> Option<jiff::Timestamp> {
    let separated = matches!(text.as_bytes().get(10), Some(b'T' | b't'));
    separated.then(|| text.parse().ok()).flatten()
}

/// A duration as Go writes it (`1h30m`, `250ms`, `-1.5h`), with days and weeks besides.
pub(crate) fn go_duration(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos: f64 = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        nanos += number * unit(&rest[..letters])?;
        rest = &rest[letters..];
    }
    let nanos = if negative { -nanos } else { nanos };
    (nanos.abs() < i64::MAX as f64).then(|| SignedDuration::from_nanos(nanos.round() as i64))
}

fn unit(name: &str) -> Option<f64> {
    Some(match name {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        "d" => 86_400e9,
        "w" => 604_800e9,
        _ => return None,
    })
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let Ok(length) = length.parse::<u8>() else {
        return false;
    };
    match address.parse() {
        Ok(std::net::IpAddr::V4(_)) => length <= 32,
        Ok(std::net::IpAddr::V6(_)) => length <= 128,
        Err(_) => false,
    }
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    matches!(parts.len(), 6 | 8 | 20)
        && parts
            .iter()
            .all(|part| part.len() == 2 && u8::from_str_radix(part, 16).is_ok())
}

fn is_uuid(format: &str, text: &str) -> bool {
    let Ok(uuid) = text.parse::<uuid::Uuid>() else {
        return false;
    };
    match format.strip_prefix("uuid") {
        Some("3") => uuid.get_version_num() == 3,
        Some("4") => uuid.get_version_num() == 4,
        Some("5") => uuid.get_version_num() == 5,
        _ => true,
    }
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_and_refuse() {
        for (format, good, bad) in [
            ("date-time", "2024-05-01T10:00:00Z", "2024-05-01"),
            (
                "date-time",
                "2024-05-01T10:00:00.5+02:00",
                "2024-05-01 10:00:00Z",
            ),
            ("date-time", "2024-05-01t10:00:00z", "2024-05-01T10:00:60Z"),
            (
                "date-time",
                "2024-05-01T10:00:00+99:00",
                "2024-05-01T24:00:00Z",
            ),
            ("date", "2024-02-29", "2023-02-29"),
            ("date", "0000-01-01", "+20240229"),
            ("duration", "2 days", "days"),
            ("uri", "*", "**"),
            ("duration", "1h30m", "1 fortnight"),
            ("duration", "-1.5h", "h"),
            ("duration", "0", ""),
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "fe80::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("mac", "01:23:45:67:89:ab", "01:23:45"),
            ("uri", "https://example.com/x?y", "example.com"),
            ("hostname", "a.example.com", "-a.example.com"),
            ("email", "a@example.com", "a.example.com"),
            ("uuid", "0188f6b8-8c1c-7c0e-8000-000000000000", "0188"),
            (
                "uuid4",
                "9b2c6f3e-6f7c-4f36-9f67-0b7e2f3b9b10",
                "9b2c6f3e-6f7c-1f36-9f67-0b7e2f3b9b10",
            ),
            ("byte", "aGVsbG8=", "a"),
            ("hexcolor", "#fff", "#ff"),
            ("k8s-short-name", "a-b", "a.b"),
            ("k8s-long-name", "a-b.c", "a-.c"),
        ] {
            assert_eq!(is_valid(format, good), Some(true), "{format} {good}");
            assert_eq!(is_valid(format, bad), Some(false), "{format} {bad}");
        }
    }

    #[test]
    fn an_unknown_format_is_only_a_note() {
        assert_eq!(is_valid("made-up", "anything"), None);
    }
}
