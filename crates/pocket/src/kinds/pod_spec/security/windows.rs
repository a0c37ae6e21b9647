//! Validation of the Windows security context.

use serde_json::Value;

use crate::{
    kinds::{field_rules::obeys, names, path::Path},
    status::Problems,
};

const MAX_CREDENTIAL_BYTES: usize = 64 * 1024;

pub(super) fn check(context: &Value, path: &Path<'_>, problems: &mut Problems) {
    let options = &context["windowsOptions"];
    let path = path.field("windowsOptions");
    if let Some(name) = options["gmsaCredentialSpecName"].as_str() {
        let path = path.field("gmsaCredentialSpecName");
        obeys(names::subdomain, name, &path, problems);
    }
    if let Some(credential) = options["gmsaCredentialSpec"].as_str() {
        let path = path.field("gmsaCredentialSpec");
        if credential.is_empty() {
            let detail = "gmsaCredentialSpec cannot be an empty string";
            problems.invalid(path, credential, detail);
        } else if credential.len() > MAX_CREDENTIAL_BYTES {
            let detail = "gmsaCredentialSpec size must be under 64 KiB";
            problems.invalid(path, credential, detail);
        }
    }
    if let Some(user) = options["runAsUserName"].as_str() {
        check_user(user, &path.field("runAsUserName"), problems);
    }
}

/// `user`, or `domain\user`.
fn check_user(name: &str, path: &Path<'_>, problems: &mut Problems) {
    let mut tell = |detail: &str| problems.invalid(path, name, detail);
    if name.is_empty() {
        return tell("runAsUserName cannot be an empty string");
    }
    if name.chars().any(char::is_control) {
        tell("runAsUserName cannot contain control characters");
    }
    let mut parts = name.split('\\');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    if parts.next().is_some() {
        return tell("runAsUserName cannot contain more than one backslash");
    }
    let user = second.unwrap_or(first);
    if user.is_empty() {
        return tell("runAsUserName's User cannot be empty");
    }
    if user.len() > 104 {
        tell("runAsUserName's User length must not be longer than 104 characters");
    }
    if user.chars().all(|c| matches!(c, '.' | ' ')) {
        tell("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(|c: char| "\"/\\:;|=,+*?<>@[]".contains(c)) {
        tell("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
}
