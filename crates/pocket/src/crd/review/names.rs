//! Validation of a resource's names.

use serde_json::Value;

use super::FieldPath;
use crate::status::Problems;

const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Characters of a label, at most.
const MAX_NAME_LENGTH: usize = 63;

fn begins_with_letter(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase()) && is_part(text)
}

fn is_part(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    !text.is_empty()
        && text.starts_with(plain)
        && text.ends_with(plain)
        && text.chars().all(|c| plain(c) || c == '-')
}

pub(super) fn group(group: &str, problems: &mut Problems) {
    let path = "spec.group";
    if group.is_empty() {
        problems.required(path, "");
    } else if group.len() > 253 || !group.split('.').all(is_part) {
        problems.invalid(path, group, SUBDOMAIN);
    } else if !group.contains('.') {
        problems.invalid(path, group, "should be a domain with at least one dot");
    }
}

/// Reports `text` unless it is a label.
pub(super) fn label(text: &str, at: &FieldPath<'_>, problems: &mut Problems) {
    for complaint in complaints(text) {
        problems.invalid(at.to_string(), text, complaint);
    }
}

/// Why a text is not a label: length and characters are separate errors.
fn complaints(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > MAX_NAME_LENGTH {
        complaints.push(format!("must be no more than {MAX_NAME_LENGTH} characters"));
    }
    if !begins_with_letter(text) {
        complaints.push(LABEL.to_owned());
    }
    complaints
}

pub(super) fn names(names: &Value, at: &FieldPath<'_>, problems: &mut Problems) {
    let text = |name: &str| names[name].as_str().unwrap_or_default();
    for name in ["plural", "singular"] {
        match text(name) {
            "" => problems.required(at.field(name).to_string(), ""),
            given => label(given, &at.field(name), problems),
        }
    }
    for name in ["kind", "listKind"] {
        let given = text(name);
        let place = at.field(name);
        if given.is_empty() {
            problems.required(place.to_string(), "");
            continue;
        }
        let complaints = complaints(&given.to_ascii_lowercase());
        if !complaints.is_empty() {
            let all = complaints.join(",");
            let detail = format!("may have mixed case, but should otherwise match: {all}");
            problems.invalid(place.to_string(), given, detail);
        }
    }
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let path = at.field("listKind").to_string();
        problems.invalid(path, text("kind"), "kind and listKind may not be the same");
    }
    for name in ["shortNames", "categories"] {
        let place = at.field(name);
        let given = names[name].as_array().map(Vec::as_slice);
        for (index, entry) in given.unwrap_or_default().iter().enumerate() {
            label(
                entry.as_str().unwrap_or_default(),
                &place.index(index),
                problems,
            );
        }
    }
}
