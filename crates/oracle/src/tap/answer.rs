//! What an answer tells about one object, or about a page of many.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::StatusCode;
use serde_json::Value;

use super::{Asked, Observer, Verb, body::Copy};
use crate::{
    fingerprint,
    history::{Action, Operation, Outcome},
    snapshot::Page,
    watch,
};

/// Where definitions are.
const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// A request on its way. One that is dropped without an answer has an unknown outcome.
pub(super) struct Pending {
    observer: Observer,
    asked: Asked,
    called: u64,
    copy: Copy,
    open: bool,
}

impl Pending {
    /// `None` if nothing can be learned from the answer.
    pub(super) fn new(observer: &Observer, asked: Asked, called: u64, copy: Copy) -> Option<Self> {
        if asked.verb == Verb::Watch || asked.flag("dryRun") {
            return None;
        }
        Some(Self {
            observer: observer.clone(),
            asked,
            called,
            copy,
            open: true,
        })
    }

    pub(super) fn answered(mut self, status: StatusCode, body: &[u8]) {
        self.open = false;
        let Ok(answer) = serde_json::from_slice::<Value>(body) else {
            // Not read to its end: what it would have said is not known.
            self.note(&Value::Null, Some(Outcome::Unknown), None);
            return;
        };
        if self.asked.verb == Verb::List {
            self.page(status, &answer);
            return;
        }
        let revision = revision(&answer);
        let outcome = self.outcome(status, &answer, revision);
        self.note(&answer, outcome, content(&answer));
    }

    fn note(&self, answer: &Value, outcome: Option<Outcome>, content: Option<(u64, u64)>) {
        let request: Value = serde_json::from_slice(&self.copy.lock()).unwrap_or_default();
        // A delete may say in its body that nothing is meant.
        if request.get("dryRun").is_some() {
            return;
        }
        let (Some(outcome), Some(name)) = (outcome, self.name(&request, answer)) else {
            return;
        };
        let path = match self.asked.namespace.as_str() {
            "" => name,
            namespace => format!("{namespace}/{name}"),
        };
        if self.asked.resource == DEFINITIONS
            && matches!(self.asked.verb, Verb::Update | Verb::Patch)
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
            .record((self.asked.resource.clone(), path), operation);
    }

    fn name(&self, request: &Value, answer: &Value) -> Option<String> {
        let given = [&request["metadata"]["name"], &answer["metadata"]["name"]];
        match self.asked.verb {
            Verb::List | Verb::Watch => None,
            Verb::Create => given.iter().find_map(|name| name.as_str()).map(Into::into),
            _ => Some(self.asked.name.clone()),
        }
    }

    fn action(&self, request: &Value) -> Action {
        let named = |at: &Value| {
            let expected = watch::revision(at).filter(|&revision| revision > 0);
            let other = at["uid"].as_str().is_some_and(|uid| !uid.is_empty());
            (expected, other)
        };
        match self.asked.verb {
            Verb::Create => Action::Create,
            // What it wrote is not told, and so explains whatever is seen next.
            Verb::Aside => Action::Write {
                expected: None,
                picky: true,
            },
            Verb::Update | Verb::Patch => {
                let (expected, other) = named(&request["metadata"]);
                // A JSON patch says in its own way what it expects; an apply conflicts over fields.
                let own = request.is_array() || self.asked.parameter("fieldManager").is_some();
                Action::Write {
                    expected,
                    picky: other || own,
                }
            }
            Verb::Delete => {
                let (expected, picky) = named(&request["preconditions"]);
                Action::Delete { expected, picky }
            }
            Verb::Get | Verb::List | Verb::Watch => Action::Get,
        }
    }

    /// `None` if the request was refused before anything was looked at.
    fn outcome(
        &self,
        status: StatusCode,
        answer: &Value,
        revision: Option<u64>,
    ) -> Option<Outcome> {
        let reason = answer["reason"].as_str().unwrap_or_default();
        match (status.as_u16(), reason, self.asked.verb) {
            (200..300, _, Verb::Aside) => Some(Outcome::Unknown),
            (_, _, Verb::Aside) => None,
            (200, _, Verb::Get) => revision.map(Outcome::Found),
            (201, ..) => revision.map(Outcome::Created),
            (200 | 202, _, _) if ended(answer, self.asked.verb) => Some(Outcome::Gone),
            (200 | 202, ..) => revision.map(Outcome::Written),
            (404, "NotFound", _) if self.is_about_the_object(answer) => Some(Outcome::NotFound),
            (409, "AlreadyExists", _) => Some(Outcome::Exists),
            (409, "Conflict", _) => Some(Outcome::Conflict),
            (500.. | 408, ..) => Some(Outcome::Unknown),
            _ => None,
        }
    }

    /// A namespace or a resource may be missing too.
    fn is_about_the_object(&self, answer: &Value) -> bool {
        let plural = self.asked.resource.rsplit('/').next();
        answer["details"]["name"].as_str() == Some(&self.asked.name)
            && answer["details"]["kind"].as_str() == plural
    }

    fn page(&self, status: StatusCode, answer: &Value) {
        let token = self.asked.parameter("continue");
        let mut tokens = self.observer.seen.tokens.lock();
        let after = match token {
            None => None,
            Some(token) => match tokens.get(token) {
                Some(key) => Some(key.clone()),
                // Its first page did not pass here.
                None => return,
            },
        };
        let next = answer["metadata"]["continue"].as_str();
        if status != StatusCode::OK {
            // A place that expired may be renewed: the same place in a newer state.
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
            name: self.asked.text.clone(),
            resource: self.asked.resource.clone(),
            filter: self.asked.filter(),
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
            self.note(&Value::Null, Some(Outcome::Unknown), None);
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

/// What a whole object says.
fn content(answer: &Value) -> Option<(u64, u64)> {
    let kind = answer["kind"].as_str()?;
    if matches!(kind, "Status" | "Table" | "PartialObjectMetadata") {
        return None;
    }
    let mut version = DefaultHasher::new();
    answer["apiVersion"].as_str()?.hash(&mut version);
    Some((version.finish(), fingerprint(answer)))
}

/// Whether an answer says that its object is gone with it.
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
