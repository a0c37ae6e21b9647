//! The syntax of label keys and values in selectors; the texts are those of object validation.

const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, \
    '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
    'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must \
    start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
    regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const NAMELESS: &str = "name part must be non-empty; name part must consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const PREFIX: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
    (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const SLASHES: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an \
    optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";

/// The error of a label key, if it is invalid.
pub(super) fn key_problem(key: &str) -> Option<&'static str> {
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => return Some(SLASHES),
        Some(("", _)) => return Some("prefix part must be non-empty"),
        Some((prefix, _)) if prefix.len() > 253 => {
            return Some("prefix part must be no more than 253 bytes");
        }
        Some((prefix, _)) if !subdomain(prefix) => return Some(PREFIX),
        Some((_, name)) => name,
    };
    match name.len() {
        0 => Some(NAMELESS),
        64.. => Some("name part must be no more than 63 bytes"),
        _ if !word(name) => Some(NAME),
        _ => None,
    }
}

/// The error of a label value, if it is invalid.
pub(super) fn value_problem(value: &str) -> Option<&'static str> {
    match value.len() {
        0 => None,
        64.. => Some("must be no more than 63 bytes"),
        _ if !word(value) => Some(VALUE),
        _ => None,
    }
}

fn word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

fn subdomain(text: &str) -> bool {
    let small = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.split('.').all(|part| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(small)
            && bytes.last().is_some_and(small)
            && bytes.iter().all(|b| small(b) || *b == b'-')
    })
}
