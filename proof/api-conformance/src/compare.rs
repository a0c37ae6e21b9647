//! The differences between two masked responses.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;
use serde_json::Value;

use crate::server_side::Answer;

/// A difference.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Difference {
    /// `code`, `warnings`, `content-type`, a cause's field, or a field of the body without list
    /// indexes.
    pub field: String,
    /// A description without the values that happened to be in it.
    pub rule: String,
    pub reference: Value,
    pub pocket: Value,
}

/// The differences between two masked responses; empty if they agree.
pub fn differences(reference: &Answer, pocket: &Answer) -> Vec<Difference> {
    let mut out = Vec::new();
    if reference.code != pocket.code {
        let rule = format!(
            "{} not {}: {}",
            reference.code,
            pocket.code,
            refusal(reference, pocket)
        );
        out.push(Difference {
            field: "code".into(),
            rule,
            reference: reference.body.clone(),
            pocket: pocket.body.clone(),
        });
        return out;
    }
    if reference.content_type != pocket.content_type {
        out.push(of(
            "content-type",
            &reference.content_type.clone().into(),
            &pocket.content_type.clone().into(),
        ));
    }
    if reference.warnings != pocket.warnings {
        let plain = |warnings: &[String]| {
            warnings
                .iter()
                .map(|text| {
                    text.trim_start_matches("299 - ")
                        .trim_matches('"')
                        .replace("\\\"", "\"")
                })
                .collect::<Vec<_>>()
        };
        let (theirs, ours) = (plain(&reference.warnings), plain(&pocket.warnings));
        lists(
            "warnings",
            &theirs,
            &ours,
            &(
                reference.warnings.clone().into(),
                pocket.warnings.clone().into(),
            ),
            &mut out,
        );
    }
    if reference.body["kind"] == "Status" && reference.code >= 400 {
        let (theirs, ours) = (
            sorted(without_object(reference.body.clone())),
            sorted(without_object(pocket.body.clone())),
        );
        refusals(&theirs, &ours, &mut out);
    } else {
        values("", &reference.body, &pocket.body, &mut out);
    }
    out
}

/// The message of the server that refused.
fn refusal(reference: &Answer, pocket: &Answer) -> String {
    let (who, answer) = if reference.code >= 400 {
        ("", reference)
    } else {
        ("only pocket: ", pocket)
    };
    let causes = answer.body["details"]["causes"].as_array();
    let first = causes.and_then(|causes| causes.first());
    let text = match first {
        Some(cause) if answer.code == 422 => {
            let field = general_path(cause["field"].as_str().unwrap_or_default());
            format!(
                "{field}: {}",
                general(cause["message"].as_str().unwrap_or_default())
            )
        }
        _ => general(answer.body["message"].as_str().unwrap_or_default()),
    };
    format!("{who}{text}")
}

fn refusals(reference: &Value, pocket: &Value, out: &mut Vec<Difference>) {
    let causes = |status: &Value| -> Vec<String> {
        let all = status["details"]["causes"].as_array().into_iter().flatten();
        all.map(|cause| {
            let text = |field: &str| cause[field].as_str().unwrap_or_default().to_owned();
            format!(
                "{}|{}: {}",
                text("reason"),
                general_path(&text("field")),
                general(&text("message"))
            )
        })
        .collect()
    };
    let before = out.len();
    let exactly = |status: &Value| -> Vec<String> {
        let all = status["details"]["causes"].as_array().into_iter().flatten();
        all.map(ToString::to_string).collect()
    };
    let (mut theirs, mut ours) = (exactly(reference), exactly(pocket));
    if theirs != ours {
        theirs.sort_unstable();
        ours.sort_unstable();
        if theirs == ours {
            let whole = (reference["message"].clone(), pocket["message"].clone());
            lists("causes", &theirs, &ours, &whole, out);
            return;
        }
    }
    let (theirs, ours) = (causes(reference), causes(pocket));
    if theirs != ours {
        lists(
            "causes",
            &theirs,
            &ours,
            &(reference["message"].clone(), pocket["message"].clone()),
            out,
        );
        return;
    }
    for field in ["reason", "message"] {
        if unordered(&reference[field]) != unordered(&pocket[field]) {
            let text = |status: &Value| general(status[field].as_str().unwrap_or_default());
            out.push(Difference {
                field: field.into(),
                rule: format!("{} not {}", text(reference), text(pocket)),
                reference: reference[field].clone(),
                pocket: pocket[field].clone(),
            });
        }
    }
    if out.len() == before {
        let mut ours = pocket.clone();
        ours["message"] = reference["message"].clone();
        values("", reference, &ours, out);
    }
}

/// Conflicts, and problems of map entries, come in the random order of a map.
fn sorted(mut status: Value) -> Value {
    let causes = status.pointer_mut("/details/causes");
    let Some(causes) = causes.and_then(Value::as_array_mut) else {
        return status;
    };
    if causes
        .iter()
        .all(|cause| cause["reason"] == "FieldManagerConflict")
    {
        causes.sort_by_key(Value::to_string);
        return status;
    }
    let before = told(causes);
    let same_map =
        |one: &Value, other: &Value| map_of(one).is_some() && map_of(one) == map_of(other);
    for of_map in causes.chunk_by_mut(same_map) {
        of_map.sort_by_key(Value::to_string);
    }
    let after = told(causes);
    if let Some(message) = status["message"].as_str() {
        status["message"] = message.replace(&before, &after).into();
    }
    status
}

/// The map whose entry a cause is about.
fn map_of(cause: &Value) -> Option<&str> {
    const MAPS: [&str; 7] = [
        "labels",
        "annotations",
        "selector",
        "matchLabels",
        "nodeSelector",
        "data",
        "binaryData",
    ];
    let field = cause["field"].as_str()?;
    // Some causes also name the entry.
    let map = field.split_once('[').map_or(field, |(map, _)| map);
    let name = map.rsplit('.').next()?;
    MAPS.contains(&name).then_some(map)
}

/// Causes as a message lists them: each once.
fn told(causes: &[Value]) -> String {
    let mut all: Vec<String> = Vec::new();
    for cause in causes {
        let text = |field: &str| cause[field].as_str().unwrap_or_default();
        let cause = format!("{}: {}", text("field"), text("message"));
        if !all.contains(&cause) {
            all.push(cause);
        }
    }
    all.join(", ")
}

/// The problems of an applied configuration are in the random order of the reference's maps, and
/// are omitted once an undeclared field is found.
fn unordered(message: &Value) -> (String, Vec<String>) {
    let text = message.as_str().unwrap_or_default();
    let typed = text.starts_with("failed to create typed patch object");
    let split = if typed { "): " } else { ": errors:\n" };
    let Some((subject, problems)) = text.split_once(split) else {
        return (text.to_owned(), Vec::new());
    };
    let lines = problems.trim_start_matches("errors:\n").lines();
    let mut lines: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
    lines.sort();
    if lines
        .iter()
        .any(|line| line.ends_with("not declared in schema"))
    {
        // Which of several such fields comes first is random, too.
        lines = vec!["field not declared in schema".to_owned()];
    }
    (subject.to_owned(), lines)
}

/// What one list has and the other lacks, one by one, or that their order differs.
fn lists(
    field: &str,
    reference: &[String],
    pocket: &[String],
    whole: &(Value, Value),
    out: &mut Vec<Difference>,
) {
    let mut rules = Vec::new();
    for (word, these, those) in [("missing", reference, pocket), ("extra", pocket, reference)] {
        let lacking = these.iter().filter(|item| !those.contains(item));
        rules.extend(lacking.map(|item| format!("{word} {}", general(item))));
    }
    rules.dedup();
    if rules.is_empty() {
        let sorted = |list: &[String]| {
            let mut sorted = list.to_vec();
            sorted.sort_unstable();
            sorted
        };
        rules.push(if sorted(reference) == sorted(pocket) {
            "in another order".into()
        } else {
            "told another number of times".into()
        });
    }
    out.extend(rules.into_iter().map(|rule| Difference {
        field: field.into(),
        rule,
        reference: whole.0.clone(),
        pocket: whole.1.clone(),
    }));
}

/// Differences that are reported for one response.
const MAX_DIFFERENCES: usize = 6;

/// Compares two values field by field.
pub fn values(path: &str, reference: &Value, pocket: &Value, out: &mut Vec<Difference>) {
    if out.len() >= MAX_DIFFERENCES || reference == pocket {
        return;
    }
    match (reference, pocket) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (key, value) in theirs {
                let path = join(path, key);
                match ours.get(key) {
                    Some(other) => values(&path, value, other, out),
                    None => out.push(of(&path, value, &Value::Null)),
                }
            }
            for (key, value) in ours.iter().filter(|(key, _)| !theirs.contains_key(*key)) {
                out.push(of(&join(path, key), &Value::Null, value));
            }
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            for (value, other) in theirs.iter().zip(ours) {
                values(&format!("{path}[]"), value, other, out);
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            let path = format!("{path}[]");
            let lacks = |these: &[Value], from: &[Value]| {
                these.iter().find(|item| !from.contains(item)).cloned()
            };
            let (missing, extra) = (lacks(theirs, ours), lacks(ours, theirs));
            out.push(of(
                &path,
                &missing.unwrap_or_default(),
                &extra.unwrap_or_default(),
            ));
        }
        _ => out.push(of(path, reference, pocket)),
    }
}

fn join(path: &str, key: &str) -> String {
    let maps = [
        "labels",
        "annotations",
        "data",
        "stringData",
        "binaryData",
        "matchLabels",
        "nodeSelector",
        "limits",
        "requests",
        "selector",
        "options",
    ];
    let last = path.rsplit('.').next().unwrap_or_default();
    if maps.contains(&last) {
        return format!("{path}.*");
    }
    if key.contains(':') {
        // Managed fields name what they own.
        return if path.contains("fieldsV1") {
            format!("{}{}", path, short(key))
        } else {
            format!("{path}.*")
        };
    }
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn short(key: &str) -> String {
    if let Some(field) = key.strip_prefix("f:") {
        format!(".{field}")
    } else {
        format!("[{}]", &key[..1])
    }
}

fn of(field: &str, reference: &Value, pocket: &Value) -> Difference {
    let rule = match (reference, pocket) {
        (Value::Null, value) => format!("extra {}", brief(value)),
        (value, Value::Null) => format!("missing {}", brief(value)),
        (theirs, ours) => format!("{} not {}", brief(theirs), brief(ours)),
    };
    Difference {
        field: field.into(),
        rule,
        reference: reference.clone(),
        pocket: pocket.clone(),
    }
}

fn brief(value: &Value) -> String {
    match value {
        Value::String(text) => general(text),
        Value::Object(fields) if fields.is_empty() => "{}".into(),
        Value::Object(_) => "{…}".into(),
        Value::Array(items) if items.is_empty() => "[]".into(),
        Value::Array(_) => "[…]".into(),
        other => general(&other.to_string()),
    }
}

static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#""(?:[^"\\]|\\.)*""#).ok());
static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[0-9]+").ok());
static NAME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b[a-z]{3,4}-N-N(-<generated>)?").ok());

static PATCHED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"patch: Invalid value: "(?:[^"\\]|\\.)*": "#).ok());

/// The refusal of a patch without the resulting object or the patch itself.
fn without_object(mut status: Value) -> Value {
    let shorten = |text: &str| match PATCHED.as_ref() {
        Some(patched) => patched.replace(text, "patch: Invalid value: ").into_owned(),
        None => text.to_owned(),
    };
    if let Some(text) = status["message"].as_str() {
        status["message"] = shorten(text).into();
    }
    let causes = status
        .pointer_mut("/details/causes")
        .and_then(Value::as_array_mut);
    for cause in causes
        .into_iter()
        .flatten()
        .filter(|cause| cause["field"] == "patch")
    {
        let whole = format!("patch: {}", cause["message"].as_str().unwrap_or_default());
        cause["message"] = shorten(&whole).trim_start_matches("patch: ").into();
    }
    status
}

/// A message without the values in it.
pub fn general(text: &str) -> String {
    let mut text = text.to_owned();
    for (regex, with) in [(&QUOTED, "\"…\""), (&NUMBER, "N"), (&NAME, "NAME")] {
        if let Some(regex) = regex.as_ref() {
            text = regex.replace_all(&text, with).into_owned();
        }
    }
    text.chars().take(260).collect()
}

static PLACE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\[[^\]]*\]").ok());

fn general_path(path: &str) -> String {
    let text = PLACE
        .as_ref()
        .map_or(path.into(), |place| place.replace_all(path, "[]"));
    text.into_owned()
}

#[cfg(test)]
mod tests;
