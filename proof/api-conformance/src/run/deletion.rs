//! Deleted objects: those that are no longer compared, and the cleanup after a seed.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Run, plain};
use crate::{
    call::{Body, Call},
    server_side::Answer,
};

/// Whether a call left a namespace terminating. What happens to it from then on, and when, is up to
/// the namespace controller.
pub(super) fn is_ending(call: &Call, answers: &[&Answer]) -> bool {
    let goes = |answer: &&Answer| answer.code < 300 && is_on_its_way_out(&answer.body);
    call.about.kind == "Namespace" && !call.is_dry_run() && answers.iter().any(goes)
}

fn is_on_its_way_out(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// A delete that changes the finalizers of a namespace shuffles them, because the reference keeps
/// them in a set, for this kind only.
pub(super) fn order_finalizers(call: &Call, body: &mut Value) {
    if call.about.kind == "Namespace"
        && call.about.verb == "delete"
        && let Some(Value::Array(finalizers)) = body.pointer_mut("/metadata/finalizers")
    {
        finalizers.sort_by_key(Value::to_string);
    }
}

impl Run {
    /// Removes retired objects from lists, and terminating namespaces, whose end depends on their
    /// server.
    pub(super) fn remove_retired(&self, call: &Call, body: &mut Value) {
        let namespaces = call.about.kind == "Namespace";
        for field in ["items", "rows"] {
            let Some(items) = body.get_mut(field).and_then(Value::as_array_mut) else {
                continue;
            };
            items.retain(|item| {
                let object = if item["object"].is_object() {
                    &item["object"]
                } else {
                    item
                };
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let ends = namespaces && is_on_its_way_out(object);
                !ends && !self.retired.contains(name)
            });
        }
    }

    /// Deletes an object from both servers, with its finalizers.
    pub(super) async fn remove(&mut self, path: &str) -> Result<()> {
        let without_finalizers = Body::Json(json!({"metadata": {"finalizers": null}}));
        let mut free = plain("PATCH", path, without_finalizers);
        free.content_type = "application/merge-patch+json".into();
        self.both(&free).await?;
        let path = format!("{path}?gracePeriodSeconds=0");
        self.both(&plain("DELETE", &path, Body::None)).await?;
        Ok(())
    }

    /// Deletes what the next seed would meet: cluster-scoped objects, services, which keep
    /// addresses and ports until they are gone, and the namespaces.
    pub(super) async fn clear(&mut self, namespaces: &[String]) -> Result<()> {
        let run = format!("?labelSelector=run%3Dr{}{}", self.seed, self.tag);
        let mut places = Vec::new();
        for kind in &self.world.kinds {
            if kind.name == "Service" {
                let all = namespaces
                    .iter()
                    .map(|namespace| kind.collection(namespace));
                places.extend(all.map(|place| (place, "")));
            } else if !kind.namespaced && kind.name != "CustomResourceDefinition" {
                let selected = if kind.custom { "" } else { run.as_str() };
                places.push((kind.collection(""), selected));
            }
        }
        for (place, selected) in places {
            for name in self.names(&format!("{place}{selected}")).await? {
                self.remove(&format!("{place}/{name}")).await?;
            }
        }
        for namespace in namespaces {
            let path = format!("/api/v1/namespaces/{namespace}");
            self.both(&plain("DELETE", &path, Body::None)).await?;
        }
        Ok(())
    }

    /// The names that either server lists.
    async fn names(&mut self, path: &str) -> Result<BTreeSet<String>> {
        let (theirs, ours) = self.both(&plain("GET", path, Body::None)).await?;
        let items = |answer: &Answer| answer.body["items"].as_array().cloned().unwrap_or_default();
        let all = items(&theirs).into_iter().chain(items(&ours));
        let names = all.filter_map(|item| Some(item["metadata"]["name"].as_str()?.to_owned()));
        Ok(names.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_delete_of_a_namespace_shuffles_finalizers() {
        for (kind, verb, first) in [
            ("Namespace", "delete", "a"),
            ("Namespace", "put", "b"),
            ("Pod", "delete", "b"),
        ] {
            let mut call = plain("DELETE", "/x", Body::None);
            call.about.kind = kind.into();
            call.about.verb = verb.into();
            let mut body = json!({"metadata": {"finalizers": ["b", "a"]}});
            order_finalizers(&call, &mut body);
            assert_eq!(body["metadata"]["finalizers"][0], first, "{call:?}");
        }
    }

    #[test]
    fn a_namespace_that_lives_or_would_end_is_not_ending() {
        let answer = |code: u16, body: Value| Answer {
            code,
            body,
            ..Answer::none()
        };
        let going = answer(200, json!({"metadata": {"deletionTimestamp": "t"}}));
        let living = answer(200, json!({"metadata": {}}));
        let refused = answer(409, json!({"kind": "Status"}));
        for (kind, query, answers, ends) in [
            ("Namespace", "", [&living, &going], true),
            ("Namespace", "", [&living, &refused], false),
            ("Namespace", "?dryRun=All", [&going, &going], false),
            ("Pod", "", [&going, &going], false),
        ] {
            let mut call = plain("DELETE", &format!("/x{query}"), Body::None);
            call.about.kind = kind.into();
            assert_eq!(is_ending(&call, &answers), ends, "{call:?} {answers:?}");
        }
    }
}
