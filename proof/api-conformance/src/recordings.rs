//! Compares the responses of two servers to the same scenario files.
//!
//! The files name what they expect; here everything else is compared, too. Each file was recorded
//! once per server: the steps are the same, so the responses are paired by position.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use regex::Regex;
use serde_json::{Value, json};

use crate::{
    compare::{self, Difference},
    mask::Labels,
    server_side::Answer,
};

/// A difference and its position.
#[derive(Debug)]
pub struct LocatedDifference {
    /// The scenario and the line of the step.
    pub place: String,
    /// The requested resource, or the kind of a stream's object.
    pub kind: String,
    pub difference: Difference,
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Files with a recording of both servers.
    pub files: usize,
    /// Responses and events compared.
    pub compared: usize,
    pub differences: Vec<LocatedDifference>,
    /// Scenarios with a recording of only one server.
    pub unpaired: Vec<String>,
}

/// Compares two folders of recordings. A file that only one of them has is reported, unless its
/// scenario is declared to concern only ours.
pub fn compare_folders(reference: &Path, pocket: &Path) -> Result<Comparison> {
    let mut found = Comparison::default();
    let (theirs, ours) = (names(reference)?, names(pocket)?);
    for name in theirs.union(&ours) {
        let read = |folder: &Path, names: &BTreeSet<PathBuf>| {
            let path = folder.join(name);
            names
                .contains(name)
                .then(|| Recording::read(&path))
                .transpose()
        };
        match (read(reference, &theirs)?, read(pocket, &ours)?) {
            (Some(theirs), Some(ours)) => {
                found.files += 1;
                theirs.compare(&ours, &mut found);
            }
            (None, Some(ours)) if ours.pocket_only => {}
            (theirs, ours) => found
                .unpaired
                .extend(theirs.or(ours).map(|one| one.scenario)),
        }
    }
    Ok(found)
}

fn names(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    entries
        .map(|entry| Ok(PathBuf::from(entry?.file_name())))
        .collect()
}

/// Values that a server chooses and then mentions in prose.
const CHOSEN: [(&str, &str); 4] = [
    (
        r#""targetPort":(6443|[1-6][0-9]{4})\b"#,
        r#""targetPort":"<port>""#,
    ),
    (r"current: [0-9]+", "current: <revision>"),
    (r"10\.(0|96)\.[0-9]+\.[0-9]+", "<address>"),
    (r"Invalid value: 3[0-2][0-9]{3}:", "Invalid value: <port>:"),
];

/// Generated names, and their labels.
fn generated(text: &str) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for line in text.lines() {
        let entry: Value = serde_json::from_str(line)?;
        for place in ["body", "object"] {
            let metadata = &entry[place]["metadata"];
            if let (Some(name), Some(base)) =
                (metadata["name"].as_str(), metadata["generateName"].as_str())
            {
                found.push((name.to_owned(), format!("{base}<generated>")));
            }
        }
        found.extend(refused_name(&entry["body"]));
    }
    Ok(found)
}

/// The name that was generated from an invalid base, as a refusal reports it.
fn refused_name(body: &Value) -> Option<(String, String)> {
    let causes = body["details"]["causes"].as_array()?;
    let cause = causes
        .iter()
        .find(|cause| cause["field"] == "metadata.generateName")?;
    let base = cause["message"].as_str()?.split('"').nth(1)?;
    let name = body["details"]["name"].as_str()?;
    let made = name.starts_with(base) && name != base;
    made.then(|| (name.to_owned(), format!("{base}<generated>")))
}

/// A file of one server.
struct Recording {
    scenario: String,
    pocket_only: bool,
    /// The entries of each line of the scenario file.
    steps: BTreeMap<u64, Vec<Value>>,
}

impl Recording {
    fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)?;
        let mut lines = text.lines();
        let head: Value = serde_json::from_str(lines.next().context("an empty recording")?)?;
        let said = |field: &str| head[field].as_str().unwrap_or_default();
        let patterns =
            CHOSEN.map(|(pattern, label)| Regex::new(pattern).map(|found| (found, label)));
        let patterns: Vec<_> = patterns.into_iter().collect::<Result<_, _>>()?;
        let mut steps: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
        let mut line = 0;
        let generated = generated(&text)?;
        for text in lines {
            let mut text = text.to_owned();
            for (name, label) in &generated {
                text = text.replace(name, label);
            }
            for (pattern, label) in &patterns {
                text = pattern.replace_all(&text, *label).into_owned();
            }
            // The namespace contains the id, so it is replaced first.
            let text = text
                .replace(said("namespace"), "$ns")
                .replace(said("id"), "$id");
            let entry: Value = serde_json::from_str(&text)?;
            match entry["line"].as_u64() {
                Some(at) => line = at,
                None => steps.entry(line).or_default().push(entry),
            }
        }
        Ok(Self {
            scenario: said("scenario").to_owned(),
            pocket_only: head["pocketOnly"] == true,
            steps,
        })
    }

    fn compare(&self, pocket: &Self, found: &mut Comparison) {
        let mut labels = [Labels::default(), Labels::default()];
        let lines: BTreeSet<&u64> = self.steps.keys().chain(pocket.steps.keys()).collect();
        for line in lines {
            let at = |recording: &'_ Self| recording.steps.get(line).cloned().unwrap_or_default();
            let (theirs, ours) = (at(self), at(pocket));
            let place = format!("{}.md:{line}", self.scenario);
            if theirs.len() != ours.len() {
                let count = |entries: &[Value]| json!(entries.len());
                found.differences.push(LocatedDifference {
                    place: place.clone(),
                    kind: theirs
                        .first()
                        .or(ours.first())
                        .map(kind)
                        .unwrap_or_default(),
                    difference: Difference {
                        field: "events".into(),
                        rule: format!("{} not {}", theirs.len(), ours.len()),
                        reference: count(&theirs),
                        pocket: count(&ours),
                    },
                });
            }
            for (theirs, ours) in theirs.iter().zip(&ours) {
                found.compared += 1;
                for labels in &mut labels {
                    labels.begin(found.compared);
                }
                let [their_labels, our_labels] = &mut labels;
                let differences = differences(
                    &masked(theirs, ours, their_labels),
                    &masked(ours, theirs, our_labels),
                );
                found
                    .differences
                    .extend(differences.into_iter().map(|difference| LocatedDifference {
                        place: place.clone(),
                        kind: kind(theirs),
                        difference,
                    }));
            }
        }
    }
}

/// The plural of the path, or the kind of an event's object.
fn kind(entry: &Value) -> String {
    let Some(asked) = entry["asked"].as_str() else {
        return entry["object"]["kind"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
    };
    let path = asked.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let rest = match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        other => other,
    };
    let plural = match rest {
        ["namespaces", _, plural, ..] if !["status", "finalize"].contains(plural) => plural,
        [plural, ..] => plural,
        [] => parts.first().unwrap_or(&""),
    };
    (*plural).to_owned()
}

fn differences(reference: &Value, pocket: &Value) -> Vec<Difference> {
    if reference.get("asked").is_some() {
        return compare::differences(&answer(reference), &answer(pocket));
    }
    let mut out = Vec::new();
    compare::values("", reference, pocket, &mut out);
    out
}

fn answer(entry: &Value) -> Answer {
    let header = |name: &str| -> Vec<String> {
        let values = entry["headers"][name].as_array();
        values
            .into_iter()
            .flatten()
            .filter_map(|value| value.as_str().map(str::to_owned))
            .collect()
    };
    // Warnings are a set: the reference finds some of them by iterating over maps.
    let mut warnings = header("warning");
    warnings.sort();
    Answer {
        code: entry["status"].as_u64().unwrap_or_default() as u16,
        content_type: header("content-type").join(", "),
        warnings,
        body: entry["body"].clone(),
    }
}

/// The normalized entry.
fn masked(entry: &Value, other: &Value, labels: &mut Labels) -> Value {
    let mut entry = entry.clone();
    let body = &mut entry["body"];
    if body.get("openapi").is_some() || body.get("paths").is_some() {
        *body = json!("<openapi>");
    }
    if body.get("gitVersion").is_some() {
        *body = json!({"gitVersion": body["gitVersion"], "major": body["major"], "minor": body["minor"]});
    }
    if body["kind"]
        .as_str()
        .is_some_and(|kind| kind.starts_with("API"))
    {
        keep_served(body, &other["body"]);
    } else if is_shared(&entry["asked"]) {
        let body = &mut entry["body"];
        *body = json!({"kind": body["kind"], "apiVersion": body["apiVersion"]});
    }
    for place in ["body", "object"] {
        remove_controller_writes(&mut entry[place]);
    }
    normalize_random_order(&mut entry);
    if entry["object"].is_object() || entry["body"].is_object() {
        return labels.mask(&entry);
    }
    entry
}

/// Removes what controllers of the reference write under their own name, and what they write a
/// moment after a definition was created while ours writes it at once: the status and its revision.
fn remove_controller_writes(value: &mut Value) {
    if let Some(items) = value.get_mut("items").and_then(Value::as_array_mut) {
        items.retain(|item| item["metadata"]["name"] != "kube-root-ca.crt");
    }
    if let Some(entries) = value
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut)
    {
        entries.retain(|entry| entry["manager"] != "kube-controller-manager");
    }
    if value["kind"] != "CustomResourceDefinition" {
        return;
    }
    value["status"] = Value::Null;
    value["metadata"]["resourceVersion"] = json!("<set>");
    if let Some(entries) = value["metadata"]["managedFields"].as_array_mut() {
        entries.retain(|entry| entry["subresource"] != "status");
    }
}

/// The fields of a custom object, and so its problems, are in the random order of a map.
fn normalize_refusal(body: &mut Value) {
    let Some(causes) = body["details"]["causes"].as_array_mut() else {
        return;
    };
    causes.sort_by_key(Value::to_string);
    if causes.len() > 1
        && let Some((about, _)) = body["message"].as_str().and_then(|m| m.split_once(": ["))
    {
        body["message"] = json!(about);
    }
}

/// Normalizes what the reference leaves to chance: conflicts of managers are in the order of a map,
/// and a bookmark has the revision of the last write, also by other scenarios.
fn normalize_random_order(entry: &mut Value) {
    if let Some(causes) = entry
        .pointer_mut("/body/details/causes")
        .and_then(Value::as_array_mut)
        && causes
            .iter()
            .all(|cause| cause["reason"] == "FieldManagerConflict")
    {
        causes.sort_by_key(Value::to_string);
    }
    if entry["body"]["details"]["group"]
        .as_str()
        .is_some_and(|group| group.ends_with("$id.example.com"))
    {
        normalize_refusal(&mut entry["body"]);
    }
    if entry["type"] == "BOOKMARK" {
        entry["object"]["metadata"]["resourceVersion"] = json!("<set>");
    }
}

/// Whether the response also contains objects of other scenarios.
fn is_shared(asked: &Value) -> bool {
    let path = asked
        .as_str()
        .and_then(|asked| asked.strip_prefix("GET /api"));
    path.is_some_and(|path| {
        let path = path.split('?').next().unwrap_or_default();
        !path.contains("$ns") && !path.contains("$id") && path.ends_with("/configmaps")
    })
}

/// Removes what the other server does not have, because we do not serve every group, and values
/// that each chooses: addresses and hashes.
fn keep_served(value: &mut Value, other: &Value) {
    const NAMES: [&str; 6] = [
        "/name",
        "/metadata/name",
        "/version",
        "/resource",
        "/subresource",
        "/groupVersion",
    ];
    match value {
        Value::Array(items) => {
            let same = |item: &Value, other: &Value| {
                NAMES
                    .iter()
                    .all(|name| item.pointer(name) == other.pointer(name))
            };
            let others = other.as_array().map_or(&[][..], Vec::as_slice);
            items.retain(|item| !item.is_object() || others.iter().any(|other| same(item, other)));
            for item in items {
                if let Some(other) = others.iter().find(|other| same(item, other)) {
                    keep_served(item, other);
                }
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "storageVersionHash" | "serverAddress" => *field = json!("<set>"),
                    _ => keep_served(field, &other[name]),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
