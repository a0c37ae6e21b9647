//! The life of a subscription, as ARM tells it.

use axum::extract::{Path, Request, State};
use http::StatusCode;
use neap_store::{AuditRow, Commit, Precondition, QueueChange, Write};
use serde_json::{Value, json};

use super::{
    Frontend, Params,
    answer::json as json_answer,
    clusters::{Answer, param},
    middleware::{actor, audited, body},
};
use crate::{
    cloud_error::CloudError,
    documents::{QUEUE, SUBSCRIPTIONS, subscription_document, text},
    resource_id::check_subscription,
};

const STATES: [&str; 5] = [
    "Registered",
    "Unregistered",
    "Warned",
    "Suspended",
    "Deleted",
];

/// The document of a subscription after ARM said `body`. Pure.
pub(crate) fn decide(
    id: &str,
    existing: Option<&Value>,
    body: &Value,
) -> Result<Value, CloudError> {
    let state = text(body, "/state");
    if !STATES.contains(&state) {
        let message =
            format!("The provided state '{state}' is invalid: it can be one of {STATES:?}.");
        return Err(CloudError::invalid("state", message));
    }
    let was = existing.map_or("", |it| text(it, "/subscription/state"));
    if was == "Deleted" && state != "Deleted" {
        return Err(CloudError::bad_request(
            "InvalidSubscriptionState",
            "",
            "Request is not allowed in subscription in state 'Deleted'.",
        ));
    }
    let mut document = existing.cloned().unwrap_or_else(|| json!({}));
    document["id"] = id.into();
    // Everything that ARM says is kept, known or not.
    document["subscription"] = body.clone();
    if state == "Deleted" {
        document["deleting"] = true.into();
    }
    Ok(document)
}

pub(super) async fn put(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    let id = param(&params, "subscription").to_owned();
    check_subscription(&id)?;
    let (request, body) = body(request).await?;
    let existing = frontend.read(SUBSCRIPTIONS, &id, &id).await?;
    let document = decide(&id, existing.as_ref().map(|it| &it.body), &body)?;
    let queue = if document["deleting"] == true {
        QueueChange::Queue {
            name: QUEUE,
            delay: 0,
            reset: true,
        }
    } else {
        QueueChange::Keep
    };
    let is_new = existing.is_none();
    let precondition = existing.map_or(Precondition::Absent, |it| Precondition::Etag(it.etag));
    let commit = Commit::default()
        .with(Write::Put {
            key: subscription_document(SUBSCRIPTIONS, &id, &id),
            precondition,
            body: document.clone(),
            unique: Vec::new(),
            ttl: None,
            queue,
        })
        .audit(AuditRow {
            actor: actor(&request, false, &Value::Null),
            action: format!("subscription {}", text(&body, "/state")),
            target: id.clone(),
            detail: audited(&request),
        });
    frontend.store.commit(commit).await?;
    let mut seen = document["subscription"].clone();
    if let Some(owner) = seen.pointer_mut("/properties/accountOwner")
        && let Some(owner) = owner.as_object_mut()
    {
        owner.remove("email");
    }
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(json_answer(status, &seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_subscription_stays_deleted_and_unknown_members_survive() {
        let said = json!({"state": "Deleted", "properties": {"new": [1]}, "x": null});
        let document = decide("s", None, &said).unwrap();
        assert_eq!(
            (&document["deleting"], &document["subscription"]),
            (&json!(true), &said)
        );
        let again = decide("s", Some(&document), &json!({"state": "Registered"})).unwrap_err();
        assert_eq!(again.code, "InvalidSubscriptionState");
        let unknown = decide("s", None, &json!({"state": "Asleep"})).unwrap_err();
        assert_eq!(
            (&*unknown.code, &*unknown.target),
            ("InvalidParameter", "state")
        );
    }
}
