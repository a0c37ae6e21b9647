//! `DeleteOptions`, from the body or from the query.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{FOREGROUND, ORPHAN, precondition};
use crate::{
    rest::{Request, Served, incoming::unregistered, metadata, request::option_error},
    status::{ApiError, Problems, Result},
};

/// What happens to the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They lose their owner reference and stay.
    Orphan,
    /// They are deleted after the owner.
    Background,
    /// They are deleted before the owner.
    Foreground,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) uid: Option<String>,
    pub(crate) revision: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) grace: Option<i64>,
    pub(crate) dry_run: bool,
    /// `orphanDependents` was given, and false.
    pub(crate) spares_nothing: bool,
}

impl DeleteOptions {
    /// The options of a request; the body takes precedence over the query.
    pub(in crate::rest) fn of(request: &Request) -> Result<Self> {
        let empty = Value::Null;
        let body = request
            .body
            .as_ref()
            .map_or(&empty, |payload| &payload.value);
        if !body.is_null() && !body.is_object() {
            return Err(ApiError::bad_request(
                "the body of a delete must be DeleteOptions",
            ));
        }
        let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
        if kind != "DeleteOptions" {
            let version = body["apiVersion"].as_str().unwrap_or("v1");
            return Err(ApiError::bad_request(unregistered(kind, version)));
        }
        let preconditions = &body["preconditions"];
        let text = |value: &Value| value.as_str().filter(|s| !s.is_empty()).map(str::to_owned);
        let grace = match body["gracePeriodSeconds"].as_i64() {
            None if body.is_null() => request.number("gracePeriodSeconds")?,
            seconds => seconds,
        };
        let orphans = body["orphanDependents"].as_bool();
        let spared = body.is_null() && request.parameter("orphanDependents").is_some();
        Ok(Self {
            spares_nothing: orphans == Some(false) || spared && !request.flag("orphanDependents"),
            uid: text(&preconditions["uid"]),
            revision: text(&preconditions["resourceVersion"]),
            propagation: propagation(request, body)?,
            // A negative period counts as one second.
            grace: grace.map(|seconds| if seconds < 0 { 1 } else { seconds }),
            // With a body, the query is ignored.
            dry_run: dry_run(body)? || body.is_null() && request.dry_run()?,
        })
    }

    /// The warning for deleting a job without a propagation policy.
    pub(super) fn warning(&self, served: &Served) -> Option<String> {
        let unsaid = self.propagation.is_none() && served.resource.group == "batch";
        (unsaid && served.traits().orphan_by_default).then(|| {
            "child pods are preserved by default when jobs are deleted; set \
             propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
             suppress this warning"
                .to_owned()
        })
    }

    /// Refuses a delete whose preconditions name another object, or another state of it.
    pub(super) fn check(&self, served: &Served, live: &Value, revision: u64) -> Result<()> {
        let name = metadata::text(live, "name");
        let uid = metadata::text(live, "uid");
        if let Some(meant) = self.uid.as_deref().filter(|meant| *meant != uid) {
            if served.is_namespace() {
                let why = format!(
                    "Precondition failed: UID in precondition: {meant}, UID in object meta: {uid}"
                );
                return Err(refused(served, name, &why));
            }
            let why = format!(
                "the UID in the precondition ({meant}) does not match the UID in record ({uid}). \
                 The object might have been deleted and then recreated"
            );
            return Err(precondition(served, name, &why));
        }
        let revision = revision.to_string();
        if let Some(meant) = self.revision.as_deref().filter(|meant| *meant != revision) {
            if served.is_namespace() {
                let why = format!(
                    "Precondition failed: ResourceVersion in precondition: {meant}, \
                     ResourceVersion in object meta: {revision}"
                );
                return Err(refused(served, name, &why));
            }
            let why = format!(
                "the ResourceVersion in the precondition ({meant}) does not match the \
                 ResourceVersion in record ({revision}). The object might have been modified"
            );
            return Err(precondition(served, name, &why));
        }
        Ok(())
    }

    /// Sets the finalizers that implement the policy.
    pub(super) fn set_finalizers(&self, served: &Served, value: &mut Value) {
        if !served.is_collected() {
            return;
        }
        let listed = metadata::finalizers(value);
        // A namespace deleted with `orphanDependents: false` waits for its dependents.
        let waits = self.spares_nothing && served.is_namespace();
        let named = if waits {
            Some(Propagation::Foreground)
        } else {
            self.propagation
        };
        // Without a policy, the one given before stays.
        let policy = named.unwrap_or_else(|| {
            if listed.contains(&ORPHAN) {
                Propagation::Orphan
            } else if listed.contains(&FOREGROUND) {
                Propagation::Foreground
            } else if served.traits().orphan_by_default {
                Propagation::Orphan
            } else {
                Propagation::Background
            }
        });
        let mut finalizers: Vec<String> = listed
            .iter()
            .filter(|name| **name != ORPHAN && **name != FOREGROUND)
            .map(|name| (*name).to_owned())
            .collect();
        match policy {
            Propagation::Orphan => finalizers.push(ORPHAN.into()),
            Propagation::Foreground => finalizers.push(FOREGROUND.into()),
            Propagation::Background => {}
        }
        let unchanged = finalizers.len() == listed.len()
            && finalizers
                .iter()
                .all(|name| listed.contains(&name.as_str()));
        if unchanged {
            return;
        }
        if served.is_namespace() {
            keep_once(&mut finalizers);
        }
        if finalizers.is_empty() {
            metadata::of(value).remove("finalizers");
        } else {
            metadata::of(value).insert("finalizers".into(), json!(finalizers));
        }
    }
}

/// 409 in the name of the resource, and not of its kind as for most others.
fn refused(served: &Served, name: &str, why: &str) -> ApiError {
    let resource = &served.resource;
    ApiError::conflict(&resource.group, &resource.plural, name, why)
}

fn dry_run(body: &Value) -> Result<bool> {
    let words = body["dryRun"].as_array().map_or(&[][..], Vec::as_slice);
    if words.iter().any(|word| word != "All") {
        let mut problems = Problems::new();
        problems.not_supported("dryRun", json!(words), &["All"]);
        return Err(option_error("delete", &problems));
    }
    Ok(!words.is_empty())
}

fn propagation(request: &Request, body: &Value) -> Result<Option<Propagation>> {
    let asked = |name| request.parameter(name).filter(|_| body.is_null());
    let policy = body["propagationPolicy"]
        .as_str()
        .or_else(|| asked("propagationPolicy"));
    let legacy = match body["orphanDependents"].as_bool() {
        Some(orphan) => Some(orphan),
        None => asked("orphanDependents").map(|_| request.flag("orphanDependents")),
    };
    let mut problems = Problems::new();
    if let (Some(policy), Some(_)) = (policy, legacy) {
        let text = "orphanDependents and deletionPropagation cannot be both set";
        problems.invalid("propagationPolicy", policy, text);
        return Err(option_error("delete", &problems));
    }
    match policy {
        Some("Orphan") => Ok(Some(Propagation::Orphan)),
        Some("Background") => Ok(Some(Propagation::Background)),
        Some("Foreground") => Ok(Some(Propagation::Foreground)),
        Some(other) => {
            problems.not_supported(
                "propagationPolicy",
                other,
                &["Foreground", "Background", "Orphan", "nil"],
            );
            Err(option_error("delete", &problems))
        }
        None => Ok(legacy.map(|orphan| {
            if orphan {
                Propagation::Orphan
            } else {
                Propagation::Background
            }
        })),
    }
}

/// Deduplicates the finalizers of a namespace when they change.
fn keep_once(finalizers: &mut Vec<String>) {
    let mut seen = HashSet::new();
    finalizers.retain(|name| seen.insert(name.clone()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finalizer_that_comes_twice_is_kept_once() {
        let mut finalizers = ["a", "b", "a"].map(str::to_owned).to_vec();
        keep_once(&mut finalizers);
        assert_eq!(finalizers, ["a", "b"]);
    }
}
