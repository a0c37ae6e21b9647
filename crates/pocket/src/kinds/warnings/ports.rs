//! Warnings about conflicting container ports.

use serde_json::Value;

use crate::kinds::fields::{list, number, text};

/// A port and its field path.
struct Port<'a> {
    place: String,
    container: usize,
    held: &'a Value,
}

pub(super) fn warn(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    let mut known: Vec<Port<'_>> = Vec::new();
    let mut names = Vec::new();
    for field in ["initContainers", "containers"] {
        for (index, container) in list(spec, field).iter().enumerate() {
            for (at, held) in list(container, "ports").iter().enumerate() {
                let port = Port {
                    place: format!("{path}.{field}[{index}].ports[{at}]"),
                    container: index,
                    held,
                };
                warn_address(&port, warnings);
                for before in &known {
                    warnings.extend(clash(before, &port));
                }
                names.extend(same_name(&known, &port, field));
                known.push(port);
            }
        }
    }
    warnings.append(&mut names);
}

fn warn_address(port: &Port<'_>, warnings: &mut Vec<String>) {
    let held = port.held;
    let address = text(held, "hostIP");
    if number(held, "hostPort") == 0 && !address.is_empty() {
        warnings.push(format!(
            "{}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} HostIP:{address}}}",
            port.place,
            text(held, "name"),
            number(held, "containerPort"),
            text(held, "protocol"),
        ));
    }
}

/// The conflict of two ports with the same number, if there is one.
fn clash(before: &Port<'_>, port: &Port<'_>) -> Option<String> {
    let (old, new) = (before.held, port.held);
    let numbers = |name| (number(old, name), number(new, name));
    let (theirs, ours) = numbers("containerPort");
    if theirs != ours || text(old, "protocol") != text(new, "protocol") {
        return None;
    }
    let same_address = text(old, "hostIP") == text(new, "hostIP");
    let any_address = text(old, "hostIP").is_empty() || text(new, "hostIP").is_empty();
    let what = match numbers("hostPort") {
        (theirs, ours) if theirs == ours && same_address => "duplicate",
        (0, _) | (_, 0) => "overlapping",
        (theirs, ours) if theirs == ours && any_address => "dangerously ambiguous",
        _ => return None,
    };
    Some(format!(
        "{}: {what} port definition with {}",
        port.place, before.place
    ))
}

/// Warns of a repeated port name; within one container it is an error.
fn same_name(known: &[Port<'_>], port: &Port<'_>, field: &str) -> Option<String> {
    let name = text(port.held, "name");
    let first = known
        .iter()
        .find(|before| !name.is_empty() && text(before.held, "name") == name)?;
    let (place, used) = (&port.place, &first.place);
    let same = first.container == port.container && used.contains(&format!(".{field}["));
    (!same).then(|| format!(
        "{place}: duplicate port name \"{name}\" with {used}, services and probes that select ports by name will use {used}"
    ))
}
