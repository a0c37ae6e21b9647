//! The names of the fields of a configuration.
//!
//! The original ignores the case of field names and takes `null` for an absent field. [`conform`] makes both
//! so, and names the fields that are not there in the original, which `neap release validate` refuses.

use serde_json::{Map, Value};

use super::Problem;

#[derive(Debug)]
pub(super) enum Shape {
    Leaf,
    Struct(&'static [(&'static str, Shape)]),
    MapOf(&'static Shape),
    ListOf(&'static Shape),
}

use Shape::{Leaf, ListOf, MapOf, Struct};

const PROW_JOB: Shape = Struct(&[("name", Leaf)]);

const UPGRADE_FROM: Shape = Struct(&[
    (
        "candidate",
        Struct(&[("stream", Leaf), ("version", Leaf), ("relative", Leaf)]),
    ),
    (
        "prerelease",
        Struct(&[
            (
                "version_bounds",
                Struct(&[("lower", Leaf), ("upper", Leaf)]),
            ),
            ("stream", Leaf),
        ]),
    ),
    (
        "release",
        Struct(&[("version", Leaf), ("channel", Leaf), ("architecture", Leaf)]),
    ),
]);

const ESCALATION: Shape = Struct(&[
    ("name", Leaf),
    ("failures", Leaf),
    ("overLastRuns", Leaf),
    ("passPercentage", Leaf),
    ("overPeriod", Leaf),
    ("priority", Leaf),
    ("mentions", Leaf),
    ("needsInfo", Leaf),
]);

const QUALIFIER: Shape = Struct(&[
    ("enabled", Leaf),
    ("approval", Leaf),
    ("badgeName", Leaf),
    ("summary", Leaf),
    ("description", Leaf),
    ("payloadBadgeStatus", Leaf),
    ("failureLabels", Leaf),
    (
        "notifications",
        Struct(&[(
            "jira",
            Struct(&[
                ("project", Leaf),
                ("component", Leaf),
                ("assignee", Leaf),
                ("summary", Leaf),
                ("description", Leaf),
                ("thread", Leaf),
                ("escalations", ListOf(&ESCALATION)),
            ]),
        )]),
    ),
]);

const VERIFICATION: Shape = Struct(&[
    ("disabled", Leaf),
    ("optional", Leaf),
    ("async", Leaf),
    ("upgrade", Leaf),
    ("upgradeFrom", Leaf),
    ("upgradeFromRelease", UPGRADE_FROM),
    ("prowJob", PROW_JOB),
    ("maxRetries", Leaf),
    (
        "aggregatedProwJob",
        Struct(&[("prowJob", PROW_JOB), ("analysisJobCount", Leaf)]),
    ),
    ("multiJobAnalysis", Leaf),
    ("qualifiers", MapOf(&QUALIFIER)),
]);

const PERIODIC: Shape = Struct(&[
    ("interval", Leaf),
    ("cron", Leaf),
    ("upgrade", Leaf),
    ("upgradeFrom", Leaf),
    ("upgradeFromRelease", UPGRADE_FROM),
    ("prowJob", PROW_JOB),
]);

const PUBLISH: Shape = Struct(&[
    ("disabled", Leaf),
    ("tagRef", Struct(&[("name", Leaf)])),
    (
        "imageStreamRef",
        Struct(&[
            ("name", Leaf),
            ("namespace", Leaf),
            ("tags", Leaf),
            ("excludeTags", Leaf),
        ]),
    ),
    (
        "verifyIssues",
        Struct(&[(
            "previousReleaseTag",
            Struct(&[("namespace", Leaf), ("name", Leaf), ("tag", Leaf)]),
        )]),
    ),
]);

pub(super) const CONFIG: Shape = Struct(&[
    ("name", Leaf),
    ("message", Leaf),
    ("hide", Leaf),
    ("endOfLife", Leaf),
    ("as", Leaf),
    ("to", Leaf),
    ("maxUnreadyReleases", Leaf),
    ("minCreationIntervalSeconds", Leaf),
    ("referenceMode", Leaf),
    ("pullSecretName", Leaf),
    ("mirrorPrefix", Leaf),
    ("overrideCLIImage", Leaf),
    ("expires", Leaf),
    ("verify", MapOf(&VERIFICATION)),
    ("periodic", MapOf(&PERIODIC)),
    ("publish", MapOf(&PUBLISH)),
    (
        "check",
        MapOf(&Struct(&[(
            "consistentImages",
            Struct(&[("parent", Leaf)]),
        )])),
    ),
    (
        "upgrade",
        MapOf(&Struct(&[("disabled", Leaf), ("prowJob", PROW_JOB)])),
    ),
    ("alternateImageRepository", Leaf),
    ("alternateImageRepositorySecretName", Leaf),
    (
        "referenceRelease",
        Struct(&[
            ("pushRepository", Leaf),
            ("pullRepository", Leaf),
            ("secretName", Leaf),
        ]),
    ),
    ("disableManifestListMode", Leaf),
]);

const QUALIFIERS: Shape = Struct(&[("qualifiers", MapOf(&QUALIFIER))]);

/// Gives fields of `shape` their names, drops those that are `null`, and returns the paths of the fields
/// that `shape` does not have.
pub(super) fn conform(value: &mut Value, shape: &Shape) -> Vec<String> {
    let mut unknown = Vec::new();
    visit(value, shape, "", &mut unknown);
    unknown
}

fn visit(value: &mut Value, shape: &Shape, path: &str, unknown: &mut Vec<String>) {
    match (shape, value) {
        (Struct(known), Value::Object(fields)) => {
            name_fields(fields, known, path, unknown);
            for (name, inner) in fields.iter_mut() {
                let shape = known.iter().find(|(known, _)| known == name);
                if let Some((_, shape)) = shape {
                    visit(inner, shape, &below(path, name), unknown);
                }
            }
        }
        (MapOf(shape), Value::Object(fields)) => {
            for (name, inner) in fields.iter_mut() {
                // Go decodes `null` in a map as an entry with all fields absent.
                if inner.is_null() {
                    *inner = Value::Object(Map::new());
                }
                visit(inner, shape, &below(path, name), unknown);
            }
        }
        (ListOf(shape), Value::Array(items)) => {
            for (at, inner) in items.iter_mut().enumerate() {
                visit(inner, shape, &format!("{path}[{at}]"), unknown);
            }
        }
        _ => {}
    }
}

fn name_fields(
    fields: &mut Map<String, Value>,
    known: &[(&str, Shape)],
    path: &str,
    unknown: &mut Vec<String>,
) {
    for (name, value) in std::mem::take(fields) {
        let mut named = known.iter();
        let exact = named.find(|(known, _)| *known == name);
        let found = exact.or_else(|| {
            known
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(&name))
        });
        match found {
            None => unknown.push(below(path, &name)),
            Some(_) if value.is_null() => {}
            // A field that has its exact name wins over one that has not.
            Some((known, _)) if exact.is_some() || !fields.contains_key(*known) => {
                fields.insert((*known).to_owned(), value);
            }
            Some(_) => {}
        }
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

pub(super) fn unknown_qualifier_fields(value: &Value) -> Vec<Problem> {
    let unknown = conform(&mut value.clone(), &QUALIFIERS);
    let unknown = unknown.into_iter();
    unknown
        .map(|path| Problem::new(path, "there is no such field"))
        .collect()
}
