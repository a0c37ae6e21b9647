//! O1: the state at the end of each step equals that of a run without faults.

use serde_json::Value;

use super::{Oracle, States, Violation};

pub(super) fn compare(wanted: &[States<Value>], found: &[States<&Value>]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (step, (wanted, found)) in wanted.iter().zip(found).enumerate() {
        let mut tell = |path: &str, problem: String| {
            let text = format!("step {step}: {path} {problem}");
            violations.push(Violation::new(Oracle::EndState, kind(path), text));
        };
        for (path, values) in wanted {
            match found.get(path) {
                None => tell(path, "is missing".to_owned()),
                Some(others) if others.len() != values.len() => {
                    let (there, wanted) = (others.len(), values.len());
                    tell(path, format!("is there {there} times instead of {wanted}"));
                }
                Some(others) => {
                    for (value, other) in values.iter().zip(others).filter(|(one, two)| one != *two)
                    {
                        let mut differences = Vec::new();
                        differ("", value, other, &mut differences);
                        tell(path, format!("differs: {}", differences.join("; ")));
                    }
                }
            }
        }
        for path in found.keys().filter(|path| !wanted.contains_key(*path)) {
            tell(path, "is there and should not be".to_owned());
        }
    }
    violations
}

fn kind(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

/// Appends the paths at which two values differ, at most a few.
pub(crate) fn differ(at: &str, wanted: &Value, found: &Value, differences: &mut Vec<String>) {
    if differences.len() > 4 || wanted == found {
        return;
    }
    match (wanted, found) {
        (Value::Object(one), Value::Object(other)) => {
            let mut fields: Vec<_> = one.keys().chain(other.keys()).collect();
            fields.sort_unstable();
            fields.dedup();
            for field in fields {
                let of = |fields: &serde_json::Map<String, Value>| {
                    fields.get(field).cloned().unwrap_or_default()
                };
                differ(&format!("{at}/{field}"), &of(one), &of(other), differences);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differ(&format!("{at}/{index}"), one, other, differences);
            }
        }
        _ => differences.push(format!("{at} is {found} and not {wanted}")),
    }
}
