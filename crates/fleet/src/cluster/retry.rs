//! Running failed work again from the step that failed.

use serde_json::{Value, json};

use super::{Decision, Request, operation_document, put::begin_work, states};
use crate::{cloud_error::CloudError, documents::text};

/// What leads to another run of the failed `operation`, and the timeline with the steps that are done.
pub fn retried(
    cluster: &Value,
    operation: &Value,
    timeline: Option<&Value>,
    location: &str,
    request: &Request,
) -> Result<(Decision, Value), CloudError> {
    let refused = |message: &str| Err(CloudError::bad_request("RequestNotAllowed", "", message));
    let (state, failed) = states(cluster);
    if !state.is_terminal() {
        return refused("Another operation runs on the cluster.");
    }
    let Some(failed) = failed else {
        return refused("The last operation on the cluster did not fail.");
    };
    // A program from before this member did not write it.
    let last = text(cluster, "/lastOperationId");
    let is_last = last.is_empty() || last.eq_ignore_ascii_case(text(operation, "/id"));
    // The steps that are done belong to the request of their operation, and not to a later one.
    if !is_last || text(operation, "/asyncOperation/initialStatus") != failed.name() {
        return refused("A later operation failed on the cluster: retry that one.");
    }
    let mut document = cluster.clone();
    document["correlationData"] = request.correlation.clone();
    begin_work(&mut document, failed, false, request);
    let subscription = text(&document, "/partitionKey").to_owned();
    let operation = operation_document(&document, request, failed, &subscription, location);
    let steps = timeline.and_then(|it| it.pointer("/timeline/steps"));
    let steps = steps.and_then(Value::as_array).into_iter().flatten();
    let done: Vec<_> = steps
        .filter(|step| matches!(text(step, "/state"), "Succeeded" | "Skipped" | "TimedOut"))
        .cloned()
        .collect();
    let kept = json!({
        "id": request.operation_id,
        "openShiftClusterKey": document["key"],
        "total": timeline.map(|it| it["total"].clone()),
        "timeline": {"steps": done},
    });
    let decision = Decision {
        document,
        operation,
        created: false,
        queued: true,
    };
    Ok((decision, kept))
}
