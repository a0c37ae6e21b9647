//! Validation of probes and lifecycle handlers.

use serde_json::Value;

use super::check_not_negative;
use crate::{
    kinds::{
        field_rules::one_of,
        fields::{is_set, list, number, text},
        names,
        path::Path,
    },
    status::Problems,
};

const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

const HEADER_FORM: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

/// Validates the probes and the lifecycle of one container.
pub(super) fn check(container: &Value, spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let lifecycle = path.field("lifecycle");
    for moment in ["postStart", "preStop"] {
        let handler = &container["lifecycle"][moment];
        if !handler.is_null() {
            let path = lifecycle.field(moment);
            if check_handler(handler, &path, problems) == Some("sleep") {
                check_sleep(&handler["sleep"], spec, &path.field("sleep"), problems);
            }
        }
    }
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if is_set(container, field) {
            check_probe(field, &container[field], &path.field(field), problems);
        }
    }
}

/// A sleep may not be longer than the grace period: the container would be killed in it.
fn check_sleep(sleep: &Value, spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let seconds = number(sleep, "seconds");
    let most = number(spec, "terminationGracePeriodSeconds");
    if sleep.is_object() && !(0..=most).contains(&seconds) {
        let detail =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({most})");
        problems.invalid(path, seconds, detail);
    }
}

fn check_probe(kind: &str, probe: &Value, path: &Path<'_>, problems: &mut Problems) {
    check_handler(probe, path, problems);
    for field in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        check_not_negative(probe, field, path, problems);
    }
    check_grace(kind, probe, path, problems);
    let successes = number(probe, "successThreshold");
    let fixed = kind != "readinessProbe" && is_set(probe, "successThreshold");
    if fixed && successes != 1 {
        problems.invalid(path.field("successThreshold"), successes, "must be 1");
    }
}

fn check_grace(kind: &str, probe: &Value, path: &Path<'_>, problems: &mut Problems) {
    if !is_set(probe, "terminationGracePeriodSeconds") {
        return;
    }
    let grace = path.field("terminationGracePeriodSeconds");
    let seconds = number(probe, "terminationGracePeriodSeconds");
    if seconds < 1 {
        problems.invalid(grace, seconds, "must be greater than 0");
    }
    if kind == "readinessProbe" {
        problems.invalid(grace, seconds, "must not be set for readinessProbes");
    }
}

/// Validates the first handler present, and returns which it is.
fn check_handler(
    handler: &Value,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Option<&'static str> {
    let mut handlers = HANDLERS.into_iter().filter(|name| is_set(handler, name));
    let Some(first) = handlers.next() else {
        problems.required(path, "must specify a handler type");
        return None;
    };
    for other in handlers {
        let detail = "may not specify more than 1 handler type";
        problems.forbidden(path.field(other), detail);
    }
    let path = path.field(first);
    let handler = &handler[first];
    match first {
        "exec" if list(handler, "command").is_empty() => {
            problems.required(path.field("command"), "");
        }
        "httpGet" => {
            check_port(handler, &path, problems);
            check_request(handler, &path, problems);
        }
        "tcpSocket" | "grpc" => check_port(handler, &path, problems),
        _ => {}
    }
    Some(first)
}

fn check_request(get: &Value, path: &Path<'_>, problems: &mut Problems) {
    one_of(&["HTTP", "HTTPS"], get, path, "scheme", problems);
    let formed = |name: &str| {
        let inner = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
        !name.is_empty() && name.bytes().all(inner)
    };
    for header in list(get, "httpHeaders") {
        let name = text(header, "name");
        if !formed(name) {
            problems.invalid(path.field("httpHeaders"), name, HEADER_FORM);
        }
    }
}

/// A port by number, or by the name it has in the container.
fn check_port(handler: &Value, path: &Path<'_>, problems: &mut Problems) {
    let complaints = match &handler["port"] {
        Value::String(name) => names::port_name(name),
        _ => names::port_number(number(handler, "port")),
    };
    for complaint in complaints {
        let shown = match &handler["port"] {
            Value::String(name) => Value::from(name.as_str()),
            _ => Value::from(number(handler, "port")),
        };
        problems.invalid(path.field("port"), shown, complaint);
    }
}
