//! Warnings about conflicting container ports.

use std::collections::{HashMap, hash_map::Entry};

use serde_json::Value;

use crate::kinds::fields::{list, number, text};

/// Conflicts that are reported, at most: a response has room for a hundred warnings.
const MAX_CLASHES: usize = 200;
/// Ports of one number and protocol that later ones are compared with, at most.
const MAX_COMPARED: usize = 200;

/// A port and its field path.
#[derive(Clone)]
struct Port<'a> {
    place: String,
    container: usize,
    held: &'a Value,
}

pub(super) fn warn(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    // By number and protocol, and the first port of each name.
    let mut known: HashMap<(i64, &str), Vec<Port<'_>>> = HashMap::new();
    let mut named: HashMap<&str, Port<'_>> = HashMap::new();
    let mut names = Vec::new();
    let mut clashes = 0;
    for field in ["initContainers", "containers"] {
        for (index, container) in list(spec, field).iter().enumerate() {
            for (at, held) in list(container, "ports").iter().enumerate() {
                let port = Port {
                    place: format!("{path}.{field}[{index}].ports[{at}]"),
                    container: index,
                    held,
                };
                warn_address(&port, warnings);
                let number = (number(held, "containerPort"), text(held, "protocol"));
                let before = known.entry(number).or_default();
                let found = before.iter().filter_map(|before| clash(before, &port));
                let had = warnings.len();
                warnings.extend(found.take(MAX_CLASHES.saturating_sub(clashes)));
                clashes += warnings.len() - had;
                let name = text(held, "name");
                match named.entry(name) {
                    _ if name.is_empty() => {}
                    Entry::Occupied(first) => names.extend(same_name(first.get(), &port, field)),
                    Entry::Vacant(first) => {
                        first.insert(port.clone());
                    }
                }
                // With enough warnings there is nothing more to compare with.
                if clashes < MAX_CLASHES && before.len() < MAX_COMPARED {
                    before.push(port);
                }
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

/// The conflict of two ports with the same number and protocol, if there is one.
fn clash(before: &Port<'_>, port: &Port<'_>) -> Option<String> {
    let (old, new) = (before.held, port.held);
    let numbers = |name| (number(old, name), number(new, name));
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
fn same_name(first: &Port<'_>, port: &Port<'_>, field: &str) -> Option<String> {
    let name = text(port.held, "name");
    let (place, used) = (&port.place, &first.place);
    let same = first.container == port.container && used.contains(&format!(".{field}["));
    (!same).then(|| format!(
        "{place}: duplicate port name \"{name}\" with {used}, services and probes that select ports by name will use {used}"
    ))
}
