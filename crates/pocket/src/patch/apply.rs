//! Server-side apply: a manager sends the fields it wants, and owns exactly those.
//!
//! The invariant: after an apply, the manager's Apply entry names the fields of its configuration
//! and nothing else, and the object has no field left that only this manager owned and no longer
//! claims.

mod check;
mod conflict;
mod merge;
mod prune;
mod takeover;
#[cfg(test)]
mod tests;
mod versions;

pub use check::ConfigProblem;
pub use conflict::Conflict;
pub use versions::track_versions;

use http::StatusCode;
use serde_json::{Map, Value};

use super::managed::{
    Comparison, Entry, FieldSet, InvalidEntry, ManagerOperation, Managers, Stamp, compare,
    put_managed_fields, same_but_entries, untracked,
};
use crate::{
    schema::Schema,
    status::{ApiError, MAX_PROBLEMS},
};

/// The manager of all fields that existed before the first apply to an untracked object.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Why an apply was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// Other managers own fields with other values. Grouped by owner.
    #[error("{}", conflict::message(.0))]
    Conflicts(Vec<Conflict>),
    /// The configuration has managed fields of its own.
    #[error("metadata.managedFields must be nil")]
    ManagedFields,
    /// The configuration has another version than the request.
    #[error(
        "Incorrect version specified in apply patch. Specified patch version: {given}, expected: {expected}"
    )]
    Version {
        /// The version in the configuration.
        given: String,
        /// The version of the request.
        expected: String,
    },
    /// The configuration does not fit its schema.
    #[error("failed to create typed patch object ({subject}): {}", list(problems))]
    Config {
        /// `namespace/name; group/version, Kind=kind`.
        subject: String,
        problems: Vec<ConfigProblem>,
    },
    /// The stored object does not fit its schema, so that its fields have no owners.
    #[error(
        "failed to create manager for existing fields: failed to convert new object ({subject}) to \
         smd typed: {}",
        list(problems)
    )]
    Untyped {
        /// `namespace/name; group/version, Kind=kind`.
        subject: String,
        problems: Vec<ConfigProblem>,
    },
    /// Items of the stored object are not unique, and managers of several versions own them.
    #[error("{}", list(.0))]
    Live(Vec<ConfigProblem>),
    /// The stored object's managed fields are invalid.
    #[error("failed to decode managed fields: {0}")]
    Stored(InvalidEntry),
}

/// The result of an apply, before defaulting and validation.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The merged object with its managed fields. Equal to the live object if nothing changed.
    pub object: Value,
    /// What the apply changed in the live object; empty on create.
    pub changes: Comparison,
}

/// Applies `config` over `live`, which is `None` when the object does not exist yet.
///
/// On create the caller still has to complete `metadata`. On update, a caller that changes the
/// object afterwards (defaults, reset fields) calls [`super::managed::keep_times`] at the end.
pub fn apply(
    schema: Schema<'_>,
    live: Option<&Value>,
    config: &Value,
    stamp: &Stamp<'_>,
    force: bool,
) -> Result<Applied, Error> {
    check_config(schema, config, stamp)?;
    let last_applied = takeover::last_applied(live, stamp);
    let mut managers = owners(schema, live, stamp)?;
    let claim = stamp.scope.keep(FieldSet::of_value(schema, config));
    let mut own = Entry::by(stamp, ManagerOperation::Apply, claim);
    let last = managers.take(&own);
    let mut object = merged(schema, live, config);
    let mut emptied = FieldSet::default();
    if let Some(last) = &last
        && !last.fields.is_subset(&own.fields)
    {
        let kept = kept(&managers, &own, last_applied.is_some());
        emptied = prune::prune(schema, &mut object, &last.fields, &kept);
    }
    let mut changes = Comparison::default();
    if let Some(live) = live {
        check_live(schema, live, &managers, stamp)?;
        changes = compare(schema, Some(live), &object)
            .map(|set| stamp.scope.keep(set.difference(untracked())));
        changes.removed = changes.removed.difference(&emptied);
        if !force {
            let yielding =
                last_applied.and_then(|text| takeover::unchanged(schema, live, text, stamp));
            refuse_conflicts(&managers, &changes, yielding.as_ref())?;
        }
        managers.give_up(&changes);
        if same_but_entries(live, &object) {
            // The time is that of the last change, not of the last request.
            own.time = last.and_then(|last| last.time);
        }
    }
    own.fields = own.fields.difference(untracked());
    managers.join(own);
    managers.drop_empty();
    put_managed_fields(&mut object, managers.encode());
    if last_applied.is_some() {
        takeover::refresh(&mut object, config);
    }
    prune::leave_nulls(&mut object, &emptied);
    Ok(Applied { object, changes })
}

fn check_live(
    schema: Schema<'_>,
    live: &Value,
    others: &Managers,
    stamp: &Stamp<'_>,
) -> Result<(), Error> {
    if !versions::is_of_others(others, stamp.api_version) {
        return Ok(());
    }
    match versions::doubles(schema, live) {
        doubles if doubles.is_empty() => Ok(()),
        doubles => Err(Error::Live(doubles)),
    }
}

/// Whether the fields of `object` have their declared types. Items of lists may be duplicates.
pub fn is_typed(schema: Schema<'_>, object: &Value) -> bool {
    mistyped(schema, object).is_empty()
}

/// Refuses to apply anything to an object whose fields do not have their declared types.
pub fn check_typed(schema: Schema<'_>, live: &Value) -> Result<(), Error> {
    let problems = mistyped(schema, live);
    if problems.is_empty() {
        return Ok(());
    }
    let subject = subject(live);
    Err(Error::Untyped { subject, problems })
}

fn mistyped(schema: Schema<'_>, object: &Value) -> Vec<ConfigProblem> {
    let known = |problem: &ConfigProblem| {
        problem.message.starts_with("duplicate entries")
            || problem.message == "field not declared in schema"
    };
    let mut problems = check::check(schema, object);
    problems.retain(|problem| !known(problem));
    problems
}

/// The fields that stay, whatever the applier owned before. An applier whose configuration lacks
/// `metadata` altogether would otherwise remove it with the last label, and with it the name.
fn kept(others: &Managers, own: &Entry, took_over: bool) -> FieldSet {
    let kept = others.all().union(own.fields.clone());
    if took_over {
        kept.union(takeover::annotation())
    } else {
        kept
    }
}

fn check_config(schema: Schema<'_>, config: &Value, stamp: &Stamp<'_>) -> Result<(), Error> {
    let given = config["apiVersion"].as_str().unwrap_or_default();
    if given != stamp.api_version {
        return Err(Error::Version {
            given: given.into(),
            expected: stamp.api_version.into(),
        });
    }
    if !config["metadata"]["managedFields"].is_null() {
        return Err(Error::ManagedFields);
    }
    let problems = check::check(schema, config);
    if problems.is_empty() {
        return Ok(());
    }
    let subject = subject(config);
    Err(Error::Config { subject, problems })
}

/// The owners of the live object. If none were ever recorded, one entry stands in for all of them,
/// so that the first apply meets conflicts.
fn owners(schema: Schema<'_>, live: Option<&Value>, stamp: &Stamp<'_>) -> Result<Managers, Error> {
    let Some(live) = live else {
        return Ok(Managers::default());
    };
    let mut managers = Managers::of(live).map_err(Error::Stored)?;
    if managers.is_empty() {
        let present = compare(schema, None, live);
        let fields = present.added.union(present.modified);
        let fields = stamp.scope.keep(fields.difference(untracked()));
        let stamp = Stamp {
            manager: BEFORE_FIRST_APPLY,
            ..*stamp
        };
        managers.join(Entry::by(&stamp, ManagerOperation::Update, fields));
    }
    Ok(managers)
}

/// The configuration merged into the live object, without its managed fields.
fn merged(schema: Schema<'_>, live: Option<&Value>, config: &Value) -> Value {
    let Some(live) = live.and_then(Value::as_object) else {
        return config.clone();
    };
    let without_entries = |metadata: &Map<String, Value>| {
        let kept = metadata.iter().filter(|(name, _)| *name != "managedFields");
        kept.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let fields = live.iter().map(|(name, value)| match value {
        Value::Object(metadata) if name == "metadata" => {
            (name.clone(), Value::Object(without_entries(metadata)))
        }
        _ => (name.clone(), value.clone()),
    });
    let mut object = Value::Object(fields.collect());
    merge::merge(Some(schema), &mut object, config);
    object
}

/// Refuses to change fields of other owners, except for those in `yielding`.
fn refuse_conflicts(
    managers: &Managers,
    changes: &Comparison,
    yielding: Option<&FieldSet>,
) -> Result<(), Error> {
    let taken = changes.taken();
    let mut conflicts = Vec::new();
    for entry in managers.iter() {
        let mut fields = entry.fields.intersection(&taken);
        if let Some(yielding) = yielding {
            fields = fields.difference(yielding);
        }
        conflicts.extend(Conflict::over(entry, &fields));
    }
    if conflicts.is_empty() {
        return Ok(());
    }
    // Stable, and not by path: the paths of an owner are in the order of the set.
    conflicts.sort_by(|a, b| a.owner_order().cmp(&b.owner_order()));
    Err(Error::Conflicts(conflicts))
}

fn subject(config: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &config["metadata"];
    let version = text(&config["apiVersion"]);
    // The core group is written as an empty one.
    let slash = if version.contains('/') { "" } else { "/" };
    format!(
        "{}/{}; {slash}{version}, Kind={}",
        text(&metadata["namespace"]),
        text(&metadata["name"]),
        text(&config["kind"]),
    )
}

fn list(problems: &[ConfigProblem]) -> String {
    if let [only] = problems {
        return only.to_string();
    }
    let shown = problems.iter().take(MAX_PROBLEMS);
    let lines = shown.map(|problem| format!("\n  {problem}"));
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    let more = (more > 0).then(|| format!("\n  and {more} more"));
    std::iter::once("errors:".to_owned())
        .chain(lines)
        .chain(more)
        .collect()
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Conflicts(conflicts) => {
                let refusal = Self::new(StatusCode::CONFLICT, "Conflict", message);
                conflicts.iter().fold(refusal, |refusal, conflict| {
                    let text = format!("conflict with {}", conflict.owner());
                    refusal.caused_by("FieldManagerConflict", &conflict.path, text)
                })
            }
            Error::ManagedFields | Error::Version { .. } => Self::bad_request(message),
            // An invalid configuration is the client's mistake, but kube-apiserver answers 500 with
            // no reason, and clients match that.
            Error::Config { .. } | Error::Untyped { .. } | Error::Live(_) | Error::Stored(_) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
            }
        }
    }
}
