//! Named formats: `!format.dns1123Label().validate(self).hasValue()`.

use super::{CallResult, Evaluator, Val};
use crate::crd::validate::has_format;

/// The formats by name, each with the message for a text that does not match.
const FORMATS: &[(&str, &str)] = &[
    (
        "dns1123Label",
        "must be a lower-case DNS label of letters, digits and '-'",
    ),
    (
        "dns1123Subdomain",
        "must be lower-case DNS labels separated by '.'",
    ),
    (
        "dns1035Label",
        "must be a lower-case DNS label that begins with a letter",
    ),
    (
        "qualifiedName",
        "must be a name, or a DNS subdomain and a name separated by '/'",
    ),
    (
        "dns1123LabelPrefix",
        "must be the beginning of a lower-case DNS label",
    ),
    (
        "dns1123SubdomainPrefix",
        "must be the beginning of lower-case DNS labels",
    ),
    (
        "dns1035LabelPrefix",
        "must be the beginning of a lower-case DNS label that begins with a letter",
    ),
    (
        "labelValue",
        "must be empty, or letters, digits, '-', '_' and '.' between letters or digits",
    ),
    ("uri", "must be a URI"),
    ("uuid", "must be a UUID"),
    ("byte", "must be base64"),
    ("date", "must be a date"),
    ("datetime", "must be a date and time"),
];

pub(super) fn global<'a>(name: &str, args: &[Val<'a>]) -> CallResult<'a> {
    let wanted = name.strip_prefix("format.")?;
    let find = |wanted: &str| {
        let found = FORMATS.iter().find(|(name, _)| *name == wanted);
        found.map(|(name, _)| Val::Format(name))
    };
    match (wanted, args) {
        ("named", [Val::Text(text)]) => Some(Ok(match find(text) {
            Some(format) => format.some(),
            None => Val::Optional(None),
        })),
        (wanted, []) => find(wanted).map(Ok),
        _ => None,
    }
}

/// `none` when the text matches the format, else what is wrong with it.
pub(super) fn validate<'a>(
    machine: &Evaluator<'_>,
    name: &str,
    format: &str,
    args: &[Val<'a>],
) -> CallResult<'a> {
    let ("validate", [Val::Text(text)]) = (name, args) else {
        return None;
    };
    if let Err(fault) = machine.meter.spend_text(text.len()) {
        return Some(Err(fault));
    }
    if has(format, text) {
        return Some(Ok(Val::Optional(None)));
    }
    let (_, complaint) = FORMATS.iter().find(|(name, _)| *name == format)?;
    Some(Ok(Val::list(vec![Val::text(*complaint)]).some()))
}

fn has(format: &str, text: &str) -> bool {
    match format {
        "dns1123Label" => has_format("k8s-short-name", text) == Some(true),
        "dns1123Subdomain" => is_subdomain(text),
        "dns1035Label" => {
            text.starts_with(|c: char| c.is_ascii_lowercase()) && has("dns1123Label", text)
        }
        "qualifiedName" => match text.split_once('/') {
            Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
            None => is_name(text),
        },
        "labelValue" => text.is_empty() || is_name(text),
        // A prefix may end in a dash, where the name would go on.
        "dns1123LabelPrefix" => has("dns1123Label", text.trim_end_matches('-')),
        "dns1035LabelPrefix" => has("dns1035Label", text.trim_end_matches('-')),
        "dns1123SubdomainPrefix" => is_subdomain(text.trim_end_matches(['-', '.'])),
        other => has_format(other, text) == Some(true),
    }
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253
        && text
            .split('.')
            .all(|part| has_format("k8s-short-name", part) == Some(true))
}

fn is_name(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    (1..=63).contains(&text.len())
        && text.starts_with(edge)
        && text.ends_with(edge)
        && text.chars().all(|c| edge(c) || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_and_refuse() {
        for (format, good, bad) in [
            ("dns1123Label", "0-a", "a.b"),
            ("dns1123Subdomain", "a.b-c", "a..b"),
            ("dns1035Label", "a0", "0a"),
            ("qualifiedName", "example.com/A_b", "a/b/c"),
            ("qualifiedName", "A", "-a"),
            ("dns1123LabelPrefix", "a-", "A-"),
            ("dns1123SubdomainPrefix", "a.b.", ".a"),
            ("dns1035LabelPrefix", "a-", "0-"),
            ("labelValue", "", "a b"),
            ("uri", "https://a/b", "a b"),
            ("uuid", "9b2c6f3e-6f7c-4f36-9f67-0b7e2f3b9b10", "9b"),
            ("byte", "aGk=", "*"),
            ("date", "2024-01-01", "2024-13-01"),
            ("datetime", "2024-01-01T00:00:00Z", "2024-01-01"),
        ] {
            assert!(has(format, good), "{format} {good}");
            assert!(!has(format, bad), "{format} {bad}");
        }
    }
}
