//! The syntax of names, labels, keys and ports, with kube-apiserver's messages.
//!
//! Each check returns the errors of one string; an empty list means it is valid. Nothing here knows
//! which field the string came from.

/// Errors of one string.
pub type Complaints = Vec<String>;

/// Characters of a DNS label, of the name part of a qualified name, and of a label value, at most.
pub const MAX_LABEL_LENGTH: usize = 63;
/// Characters of a DNS subdomain and of a key of a ConfigMap, at most.
pub const MAX_SUBDOMAIN_LENGTH: usize = 253;

const LABEL_FORM: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SEARCH_PATH_FORM: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const SUBDOMAIN_FORM: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035_FORM: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_FORM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_FORM: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const KEY_FORM: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const VARIABLE_FORM: &str = "a valid environment variable name must consist only of printable ASCII characters other than '='";

/// `must be no more than N bytes`: the message for labels.
pub fn too_long(most: usize) -> String {
    format!("must be no more than {most} bytes")
}

/// `must be no more than N characters`: the message for names and keys.
fn too_many_characters(most: usize) -> String {
    format!("must be no more than {most} characters")
}

/// A prefix of generated names, in a form that the syntax checks accept.
pub fn without_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        // The generated suffix starts with a letter or digit; so does this placeholder.
        Some(start) if !start.is_empty() => format!("{start}a"),
        _ => prefix.to_owned(),
    }
}

fn is_label(name: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let bytes = name.as_bytes();
    bytes.iter().all(|&c| inner(c))
        && bytes.first().is_some_and(|&c| c != b'-')
        && bytes.last().is_some_and(|&c| c != b'-')
}

fn is_mixed(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes
        .iter()
        .all(|&c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

fn judge(name: &str, most: usize, formed: bool, form: &str) -> Complaints {
    let mut complaints = Vec::new();
    if name.len() > most {
        complaints.push(too_many_characters(most));
    }
    if !formed {
        complaints.push(form.to_owned());
    }
    complaints
}

/// DNS label of RFC 1123.
pub fn label(name: &str) -> Complaints {
    let labels = name.contains('.') && name.split('.').all(is_label);
    let form = if labels {
        "must not contain dots"
    } else {
        LABEL_FORM
    };
    judge(name, MAX_LABEL_LENGTH, is_label(name), form)
}

/// DNS subdomain of RFC 1123.
pub fn subdomain(name: &str) -> Complaints {
    let formed = name.split('.').all(is_label);
    judge(name, MAX_SUBDOMAIN_LENGTH, formed, SUBDOMAIN_FORM)
}

/// A DNS search domain: a subdomain that may have underscores.
pub fn search_path(name: &str) -> Complaints {
    let alone = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part);
        part.starts_with(alone)
            && part.ends_with(alone)
            && part.chars().all(|c| alone(c) || matches!(c, '-' | '_'))
    };
    let formed = name.split('.').all(part);
    judge(name, MAX_SUBDOMAIN_LENGTH, formed, SEARCH_PATH_FORM)
}

/// DNS label of RFC 1035: starts with a letter.
pub fn label_1035(name: &str) -> Complaints {
    let formed = is_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase());
    judge(name, MAX_LABEL_LENGTH, formed, LABEL_1035_FORM)
}

/// One segment of a URL path.
pub fn path_segment(name: &str) -> Complaints {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    path_segment_prefix(name)
}

/// The beginning of a path segment.
pub fn path_segment_prefix(name: &str) -> Complaints {
    let contained = ['/', '%'].into_iter().filter(|&c| name.contains(c));
    contained
        .map(|c| format!("may not contain '{c}'"))
        .collect()
}

/// The error of a name in a path, if there is one.
pub fn path_problem(name: &str) -> Option<String> {
    path_segment(name).into_iter().next()
}

/// `name` or `prefix/name`: keys of labels, annotations, taints and finalizers.
pub fn qualified(key: &str) -> Complaints {
    let mut complaints = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                complaints.push("prefix part must be non-empty".to_owned());
            } else {
                let mut wrong = subdomain(prefix);
                if prefix.len() > MAX_SUBDOMAIN_LENGTH {
                    wrong[0] = too_long(MAX_SUBDOMAIN_LENGTH);
                }
                complaints.extend(wrong.into_iter().map(|text| format!("prefix part {text}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {QUALIFIED_FORM} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        complaints.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_LABEL_LENGTH {
        complaints.push(format!("name part {}", too_long(MAX_LABEL_LENGTH)));
    }
    if !is_mixed(name) {
        complaints.push(format!("name part {QUALIFIED_FORM}"));
    }
    complaints
}

/// The value of a label.
pub fn label_value(value: &str) -> Complaints {
    let mut complaints = Vec::new();
    if value.len() > MAX_LABEL_LENGTH {
        complaints.push(too_long(MAX_LABEL_LENGTH));
    }
    if !value.is_empty() && !is_mixed(value) {
        complaints.push(LABEL_VALUE_FORM.to_owned());
    }
    complaints
}

/// A key of a ConfigMap or Secret: it becomes a file name.
pub fn config_key(key: &str) -> Complaints {
    let formed = !key.is_empty()
        && key
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'));
    let mut complaints = judge(key, MAX_SUBDOMAIN_LENGTH, formed, KEY_FORM);
    if key == "." || key == ".." {
        complaints.push(format!("must not be '{key}'"));
    } else if key.starts_with("..") {
        complaints.push("must not start with '..'".to_owned());
    }
    complaints
}

/// The name of an environment variable.
pub fn variable(name: &str) -> Complaints {
    let formed = name
        .bytes()
        .all(|c| (b' '..=b'~').contains(&c) && c != b'=');
    judge(name, usize::MAX, formed && !name.is_empty(), VARIABLE_FORM)
}

/// The name of a container's port: an IANA service name.
pub fn port_name(name: &str) -> Complaints {
    let mut complaints = Vec::new();
    if name.len() > 15 {
        complaints.push(too_many_characters(15));
    }
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    if name.is_empty() || !name.bytes().all(inner) {
        let text = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
        complaints.push(text.to_owned());
    }
    if !name.bytes().any(|c| c.is_ascii_lowercase()) {
        complaints.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        complaints.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        complaints.push("must not begin or end with a hyphen".to_owned());
    }
    complaints
}

/// The number of a port.
pub fn port_number(port: i64) -> Complaints {
    if (1..=65535).contains(&port) {
        Vec::new()
    } else {
        vec!["must be between 1 and 65535, inclusive".to_owned()]
    }
}

#[cfg(test)]
mod tests;
