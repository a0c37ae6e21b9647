//! Routes for administrators about operations: list, show, cancel, retry.

use std::collections::HashMap;

use axum::extract::{Path, Request, State};
use http::StatusCode;
use neap_store::{AuditRow, Commit, Document, Precondition, QueueChange, Write};
use serde_json::{Value, json};

use super::{
    Frontend, Params,
    admin::not_found,
    answer::{json as json_answer, ok},
    clusters::{Answer, param},
    middleware::{query, split},
};
use crate::{
    backend::request_cancel,
    cloud_error::CloudError,
    cluster::{Request as Told, retried, states},
    documents::{OPERATIONS, QUEUE, TIMELINES, subscription_document, text, unique_keys},
    resource_id::ClusterId,
};

/// Operations, newest first, each with its timeline.
pub(super) async fn operations(State(frontend): State<Frontend>) -> Answer {
    let timelines = frontend.all(TIMELINES).await?;
    let timelines: HashMap<_, _> = timelines.iter().map(|it| (&it.key.id, &it.body)).collect();
    let operations = frontend.all(OPERATIONS).await?;
    let mut rows: Vec<_> = operations
        .iter()
        .map(|operation| {
            let timeline = timelines.get(&operation.key.id).copied();
            shown(&operation.body, timeline)
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(text(row, "/startTime").to_owned()));
    Ok(ok(&json!({ "value": rows })))
}

fn shown(operation: &Value, timeline: Option<&Value>) -> Value {
    let inner = &operation["asyncOperation"];
    json!({
        "id": operation["id"],
        "cluster": operation["openShiftClusterKey"],
        "work": inner["initialStatus"],
        "status": inner["status"],
        "startTime": inner["startTime"],
        "endTime": inner["endTime"],
        "error": inner["error"],
        "cancelRequested": operation["cancelRequested"],
        "stepsTotal": timeline.map(|it| it["total"].clone()),
        "timeline": timeline.map(|it| it["timeline"].clone()),
    })
}

async fn read(frontend: &Frontend, params: &Params) -> Result<Document, CloudError> {
    let (subscription, id) = (param(params, "subscription"), param(params, "operation"));
    let found = frontend.read(OPERATIONS, subscription, id).await?;
    found.ok_or_else(|| not_found("operation", id))
}

pub(super) async fn operation(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
) -> Answer {
    let operation = read(&frontend, &params).await?;
    let id = param(&params, "operation");
    let timeline = frontend
        .read(TIMELINES, param(&params, "subscription"), id)
        .await?;
    Ok(ok(&shown(
        &operation.body,
        timeline.as_ref().map(|it| &it.body),
    )))
}

pub(super) async fn cancel(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    let (request, _) = split(request);
    let operation = read(&frontend, &params).await?;
    if !operation.body["asyncOperation"]["endTime"].is_null() {
        let message = "The operation has ended.";
        return Err(CloudError::bad_request("RequestNotAllowed", "", message).into());
    }
    let reason = query(&request, "reason").filter(|it| !it.is_empty());
    let reason = reason.unwrap_or_else(|| "cancellation was requested".to_owned());
    let body = request_cancel(&operation.body, &reason);
    let commit = Commit::default()
        .put(
            operation.key.clone(),
            Precondition::Etag(operation.etag),
            body.clone(),
        )
        .audit(AuditRow {
            action: "cancel operation".to_owned(),
            target: operation.key.id.clone(),
            detail: reason,
            ..AuditRow::default()
        });
    frontend.store.commit(commit).await?;
    Ok(json_answer(StatusCode::ACCEPTED, &shown(&body, None)))
}

/// Runs a failed operation again: steps that are done are not repeated.
pub(super) async fn retry(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    let (request, _) = split(request);
    let operation = read(&frontend, &params).await?;
    let key = text(&operation.body, "/openShiftClusterKey").to_owned();
    let id = ClusterId::parse(&key).ok_or_else(|| not_found("cluster", &key))?;
    let cluster = frontend.read_cluster(&id).await?;
    let cluster = cluster.ok_or_else(|| not_found("cluster", &key))?;
    let timeline = frontend
        .read(TIMELINES, &id.subscription, &operation.key.id)
        .await?;
    let told: Told = frontend.request(&request, true, None);
    let location = &frontend.region.location;
    let (decision, kept) = retried(
        &cluster.body,
        &operation.body,
        timeline.as_ref().map(|it| &it.body),
        location,
        &told,
    )?;
    let new = text(&decision.operation, "/id").to_owned();
    let commit = Commit::default()
        .with(Write::Put {
            key: cluster.key.clone(),
            precondition: Precondition::Etag(cluster.etag),
            unique: unique_keys(&decision.document),
            body: decision.document.clone(),
            ttl: None,
            queue: QueueChange::Queue {
                name: QUEUE,
                delay: 0,
                reset: true,
            },
        })
        .create(
            subscription_document(OPERATIONS, &id.subscription, &new),
            decision.operation.clone(),
        )
        .create(
            subscription_document(TIMELINES, &id.subscription, &new),
            kept,
        )
        .audit(AuditRow {
            action: "retry operation".to_owned(),
            target: operation.key.id.clone(),
            detail: format!("as {new}"),
            ..AuditRow::default()
        });
    frontend.store.commit(commit).await?;
    let (state, _) = states(&decision.document);
    let mut seen = shown(&decision.operation, None);
    seen["provisioningState"] = state.name().into();
    Ok(json_answer(StatusCode::ACCEPTED, &seen))
}
