//! Records answers about a single object, or about a page of a list.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::StatusCode;
use serde_json::Value;

use super::{Observer, ParsedRequest, Verb, body::BodyCopy};
use crate::{
    fingerprint,
    history::{Action, Operation, Outcome},
    snapshot::Page,
    watch,
};

const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// A request in flight. One that is dropped without an answer has an unknown outcome.
pub(super) struct Pending {
    observer: Observer,
    request: ParsedRequest,
    called: u64,
    copy: BodyCopy,
    open: bool,
}

impl Pending {
    /// None if nothing can be learned from the answer.
    pub(super) fn new(
        observer: &Observer,
        request: ParsedRequest,
        called: u64,
        copy: BodyCopy,
    ) -> Option<Self> {
        if request.verb == Verb::Watch || request.flag("dryRun") {
            return None;
        }
        Some(Self {
            observer: observer.clone(),
            request,
            called,
            copy,
            open: true,
        })
    }

    pub(super) fn answered(mut self, status: StatusCode, body: &[u8]) {
        self.open = false;
        let Ok(answer) = serde_json::from_slice::<Value>(body) else {
            // The client did not read the answer to its end, so its content is unknown.
            self.record_operation(&Value::Null, Some(Outcome::Unknown), None);
            return;
        };
        if self.request.verb == Verb::List {
            self.page(status, &answer);
            return;
        }
        let revision = revision(&answer);
        let outcome = self.outcome(status, &answer, revision);
        self.record_operation(&answer, outcome, content(&answer));
    }

    fn record_operation(
        &self,
        answer: &Value,
        outcome: Option<Outcome>,
        content: Option<(u64, u64)>,
    ) {
        let request: Value = serde_json::from_slice(&self.copy.lock()).unwrap_or_default();
        // A delete may be declared a dry run in its body.
        if request.get("dryRun").is_some() {
            return;
        }
        let (Some(outcome), Some(name)) = (outcome, self.name(&request, answer)) else {
            return;
        };
        let path = match self.request.namespace.as_str() {
            "" => name,
            namespace => format!("{namespace}/{name}"),
        };
        if self.request.resource == DEFINITIONS
            && matches!(self.request.verb, Verb::Update | Verb::Patch)
        {
            self.observer.redefined(&path);
        }
        let answered = match outcome {
            Outcome::Unknown => u64::MAX,
            _ => self.observer.tick(),
        };
        let operation = Operation {
            action: self.action(&request),
            outcome,
            content,
            called: self.called,
            answered,
        };
        self.observer
            .record((self.request.resource.clone(), path), operation);
    }

    fn name(&self, request: &Value, answer: &Value) -> Option<String> {
        let given = [&request["metadata"]["name"], &answer["metadata"]["name"]];
        match self.request.verb {
            Verb::List | Verb::Watch => None,
            Verb::Create => given.iter().find_map(|name| name.as_str()).map(Into::into),
            _ => Some(self.request.name.clone()),
        }
    }

    fn action(&self, request: &Value) -> Action {
        let named = |at: &Value| {
            let expected = watch::revision(at).filter(|&revision| revision > 0);
            let other = at["uid"].as_str().is_some_and(|uid| !uid.is_empty());
            (expected, other)
        };
        match self.request.verb {
            Verb::Create => Action::Create,
            // The answer does not contain what was written, so the write explains whatever is read
            // next.
            Verb::Subresource => Action::Write {
                expected: None,
                other_preconditions: true,
            },
            Verb::Update | Verb::Patch => {
                let (expected, other) = named(&request["metadata"]);
                // A JSON patch has preconditions of its own; an apply may conflict over fields.
                let own = request.is_array() || self.request.parameter("fieldManager").is_some();
                Action::Write {
                    expected,
                    other_preconditions: other || own,
                }
            }
            Verb::Delete => {
                let (expected, other_preconditions) = named(&request["preconditions"]);
                Action::Delete {
                    expected,
                    other_preconditions,
                }
            }
            Verb::Get | Verb::List | Verb::Watch => Action::Get,
        }
    }

    /// None if the request was refused before the object was read.
    fn outcome(
        &self,
        status: StatusCode,
        answer: &Value,
        revision: Option<u64>,
    ) -> Option<Outcome> {
        let reason = answer["reason"].as_str().unwrap_or_default();
        match (status.as_u16(), reason, self.request.verb) {
            (200..300, _, Verb::Subresource) => Some(Outcome::Unknown),
            (_, _, Verb::Subresource) => None,
            (200, _, Verb::Get) => revision.map(Outcome::Found),
            (201, ..) => revision.map(Outcome::Created),
            (200 | 202, _, _) if ended(answer, self.request.verb) => Some(Outcome::Gone),
            (200 | 202, ..) => revision.map(Outcome::Written),
            (404, "NotFound", _) if self.is_about_the_object(answer) => Some(Outcome::NotFound),
            (409, "AlreadyExists", _) => Some(Outcome::Exists),
            (409, "Conflict", _) => Some(Outcome::Conflict),
            (500.. | 408, ..) => Some(Outcome::Unknown),
            _ => None,
        }
    }

    /// A 404 may also mean that the namespace or the resource is missing.
    fn is_about_the_object(&self, answer: &Value) -> bool {
        let plural = self.request.resource.rsplit('/').next();
        answer["details"]["name"].as_str() == Some(&self.request.name)
            && answer["details"]["kind"].as_str() == plural
    }

    fn page(&self, status: StatusCode, answer: &Value) {
        let token = self.request.parameter("continue");
        let mut tokens = self.observer.seen.tokens.lock();
        let after = match token {
            None => None,
            Some(token) => match tokens.get(token) {
                Some(key) => Some(key.clone()),
                // The first page was not observed.
                None => return,
            },
        };
        let next = answer["metadata"]["continue"].as_str();
        if status != StatusCode::OK {
            // An expired token may be renewed: the same position in a newer state.
            if let (Some(next), Some(after)) = (next, after) {
                tokens.insert(next.into(), after);
            }
            return;
        }
        let Some(items) = items(answer) else { return };
        if let (Some(next), Some((last, _))) = (next, items.last()) {
            tokens.insert(next.into(), last.clone());
        }
        let Some(revision) = watch::revision(&answer["metadata"]) else {
            return;
        };
        self.observer.seen.pages.lock().push(Page {
            name: self.request.text.clone(),
            resource: self.request.resource.clone(),
            filter: self.request.filter(),
            revision,
            after,
            items,
            more: next.is_some(),
        });
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.open {
            self.record_operation(&Value::Null, Some(Outcome::Unknown), None);
        }
    }
}

fn items(answer: &Value) -> Option<Vec<(String, u64)>> {
    let metadata = |item: &Value| {
        let metadata = item.get("object").unwrap_or(item).get("metadata")?;
        Some((watch::path(metadata)?, watch::revision(metadata)?))
    };
    let items = answer.get("items").or_else(|| answer.get("rows"))?;
    items.as_array()?.iter().map(metadata).collect()
}

fn revision(answer: &Value) -> Option<u64> {
    let row = answer.pointer("/rows/0/object/metadata");
    watch::revision(row.unwrap_or(&answer["metadata"]))
}

/// Hashes of the version and the content of a complete object.
fn content(answer: &Value) -> Option<(u64, u64)> {
    let kind = answer["kind"].as_str()?;
    if matches!(kind, "Status" | "Table" | "PartialObjectMetadata") {
        return None;
    }
    let mut version = DefaultHasher::new();
    answer["apiVersion"].as_str()?.hash(&mut version);
    Some((version.finish(), fingerprint(answer)))
}

/// Whether the answer means that the object no longer exists.
fn ended(answer: &Value, verb: Verb) -> bool {
    if answer["kind"] == "Status" {
        return true;
    }
    let metadata = &answer["metadata"];
    let kept = metadata["finalizers"]
        .as_array()
        .is_some_and(|f| !f.is_empty())
        || metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0;
    let marked = metadata["deletionTimestamp"].is_string();
    match verb {
        Verb::Delete => !(marked && kept),
        _ => marked && !kept,
    }
}
