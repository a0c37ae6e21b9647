//! Routes for administrators about operations: list, show, cancel, retry.

use std::time::Duration;

use axum::extract::{Path, Request, State};
use futures::{StreamExt, stream};
use http::StatusCode;
use neap_store::{AuditRow, Commit, Document, DocumentKey, Precondition, QueueChange, Write};
use serde_json::{Value, json};

use super::{
    Frontend, Params,
    admin::{audit_row, not_found},
    answer::{json as json_answer, ok, store_error},
    clusters::{Answer, param},
    listing::{Rows, answered},
    middleware::{Head, query, split},
};
use crate::{
    backend::request_cancel,
    cloud_error::CloudError,
    cluster::{Request as Told, retried, states},
    documents::{OPERATIONS, QUEUE, TIMELINES, subscription_document, text, unique_keys},
    resource_id::ClusterId,
};

/// The number of operations that are read at once.
const ROWS: usize = 50;
/// The time in which the database gives them.
const ROWS_TIMEOUT: Duration = Duration::from_secs(30);

/// Operations, newest first, each with its timeline. Only their times are in memory at once.
pub(super) async fn operations(State(frontend): State<Frontend>) -> Answer {
    let (mut times, mut pages) = (Vec::new(), Box::pin(frontend.pages(OPERATIONS)));
    while let Some(page) = pages.next().await {
        times.extend(page?.into_iter().map(|it| {
            let started = text(&it.body, "/asyncOperation/startTime").to_owned();
            (started, it.key)
        }));
    }
    // The first of those that began at the same time stays the first.
    times.sort_by(|(one, _), (other, _)| other.cmp(one));
    let keys: Vec<_> = times.into_iter().map(|(_, key)| key).collect();
    let chunks: Vec<Vec<_>> = keys.chunks(ROWS).map(<[_]>::to_vec).collect();
    let rows = stream::iter(chunks).then(move |keys| {
        let frontend = frontend.clone();
        async move {
            let reading = rows(&frontend, &keys);
            let read = frontend.clock.within(ROWS_TIMEOUT, reading).await;
            read.unwrap_or_else(|| {
                let why = neap_store::Error::Unavailable("it does not answer".into());
                Err(store_error(&why))
            })
        }
    });
    answered(rows).await
}

/// The rows of these operations, without those that have expired since.
async fn rows(frontend: &Frontend, keys: &[DocumentKey]) -> Rows {
    let mut rows = Vec::with_capacity(keys.len());
    for key in keys {
        let subscription = key.partition.name();
        let Some(operation) = frontend.read(OPERATIONS, subscription, &key.id).await? else {
            continue;
        };
        let timeline = frontend.read(TIMELINES, subscription, &key.id).await?;
        let timeline = timeline.as_ref().map(|it| &it.body);
        rows.push(shown(&operation.body, timeline));
    }
    Ok(rows)
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

/// The row of the audit about what is done with an operation.
fn of_operation(request: &Head, action: &str, operation: &Document, detail: &str) -> AuditRow {
    let row = audit_row(request, action, &operation.key.id);
    let detail = format!("{detail}, {}", row.detail);
    AuditRow { detail, ..row }
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
        .audit(of_operation(
            &request,
            "cancel operation",
            &operation,
            &reason,
        ));
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
        .audit(of_operation(
            &request,
            "retry operation",
            &operation,
            &format!("as {new}"),
        ));
    frontend.store.commit(commit).await?;
    let (state, _) = states(&decision.document);
    let mut seen = shown(&decision.operation, None);
    seen["provisioningState"] = state.name().into();
    Ok(json_answer(StatusCode::ACCEPTED, &seen))
}
