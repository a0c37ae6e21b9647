//! Asynchronous operations, the list of operations of the provider, readiness.

use axum::{
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use serde_json::{Value, json};

use super::{
    Failure, Frontend, Params,
    answer::{ok, poll_after, set_header},
    clusters::{Answer, param},
    middleware::{Head, api_version, referer, split},
};
use crate::{
    api::{ApiVersion, project},
    cloud_error::CloudError,
    documents::{OPERATIONS, TIMELINES, text},
    resource_id::{CLUSTER_TYPE, ClusterId, NAMESPACE, check_subscription, is_uuid},
};

/// The operation of a path, and whether its cluster still refers to it.
async fn read(
    frontend: &Frontend,
    params: &Params,
    request: &Head,
) -> Result<(Value, bool, &'static ApiVersion), Failure> {
    check_location(frontend, params)?;
    let (subscription, id) = (param(params, "subscription"), param(params, "operation"));
    let api = api_version(request, param(params, "namespace"), "")?;
    if !is_uuid(id) {
        let message = format!("The provided operation identifier '{id}' is malformed or invalid.");
        return Err(CloudError::bad_request("InvalidOperationID", "", message).into());
    }
    let found = frontend.read(OPERATIONS, subscription, id).await?;
    let operation = found.ok_or_else(|| {
        let message = format!("The operation '{id}' could not be found.");
        CloudError::new(404, "NotFound", "", message)
    })?;
    let cluster = ClusterId::parse(text(&operation.body, "/openShiftClusterKey"));
    let cluster = match cluster {
        Some(cluster) => frontend.read_cluster(&cluster).await?,
        None => None,
    };
    let is_running =
        cluster.is_some_and(|it| text(&it.body, "/asyncOperationId").eq_ignore_ascii_case(id));
    Ok((operation.body, is_running, api))
}

/// Refuses another subscription id, namespace or location than those of this provider.
pub(super) fn check_location(frontend: &Frontend, params: &Params) -> Result<(), CloudError> {
    check_subscription(param(params, "subscription"))?;
    let namespace = param(params, "namespace");
    if !namespace.eq_ignore_ascii_case(NAMESPACE) {
        return Err(CloudError::bad_request(
            "InvalidResourceNamespace",
            "",
            format!("The resource namespace '{namespace}' is invalid."),
        ));
    }
    let location = param(params, "location");
    if location.eq_ignore_ascii_case(&frontend.region.location) {
        return Ok(());
    }
    let message = format!(
        "The provided location '{location}' is invalid: this provider serves '{}'.",
        frontend.region.location
    );
    Err(CloudError::bad_request("InvalidLocation", "", message))
}

pub(super) async fn status(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    let (request, _) = split(request);
    let (document, is_running, _) = read(&frontend, &params, &request).await?;
    let operation = &document["asyncOperation"];
    let mut seen = json!({
        "id": operation["id"],
        "name": operation["name"],
        "startTime": operation["startTime"],
        "status": operation["status"],
    });
    if is_running {
        seen["status"] = operation["initialStatus"].clone();
        let id = param(&params, "operation");
        let timeline = frontend
            .read(TIMELINES, param(&params, "subscription"), id)
            .await?;
        if let Some(timeline) = timeline {
            seen["properties"] = progress(&timeline.body);
        }
    } else {
        for name in ["endTime", "error"] {
            if !operation[name].is_null() {
                seen[name] = operation[name].clone();
            }
        }
    }
    let mut answer = ok(&seen);
    if is_running {
        let poll = poll_after(text(operation, "/startTime"), frontend.clock.now());
        set_header(&mut answer, header::RETRY_AFTER.as_str(), poll);
    }
    Ok(answer)
}

/// The running step, for people who wait.
fn progress(timeline: &Value) -> Value {
    let steps = timeline["timeline"]["steps"].as_array();
    let steps = steps.map_or(&[][..], Vec::as_slice);
    let is_done = |step: &&Value| {
        let state = text(step, "/state");
        matches!(state, "Succeeded" | "Skipped" | "TimedOut")
    };
    let current = steps
        .iter()
        .rev()
        .find(|step| !is_done(step))
        .or(steps.last());
    json!({
        "step": current.map(|step| step["name"].clone()),
        "waitsFor": current.and_then(|step| step.pointer("/cause/message").cloned()),
        "stepsDone": steps.iter().filter(is_done).count(),
        "stepsTotal": timeline["total"],
    })
}

pub(super) async fn result(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    let (request, _) = split(request);
    let (document, is_running, api) = read(&frontend, &params, &request).await?;
    if is_running {
        let mut answer = StatusCode::ACCEPTED.into_response();
        set_header(
            &mut answer,
            header::LOCATION.as_str(),
            &referer(&request).to_string(),
        );
        let started = text(&document, "/asyncOperation/startTime");
        let poll = poll_after(started, frontend.clock.now());
        set_header(&mut answer, header::RETRY_AFTER.as_str(), poll);
        return Ok(answer);
    }
    let snapshot = &document["openShiftCluster"];
    if snapshot.is_null() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(ok(&project(api.fields, snapshot, false)))
}

/// What may be done with the provider: name, resource and description.
const ALL: [(&str, &str, &str); 11] = [
    (
        "locations/operationresults/read",
        "locations/operationresults",
        "Read operation results",
    ),
    (
        "locations/operationsstatus/read",
        "locations/operationsstatus",
        "Read operations status",
    ),
    ("operations/read", "operations", "Read operations"),
    (
        "openShiftClusters/read",
        "openShiftClusters",
        "Read OpenShift cluster",
    ),
    (
        "openShiftClusters/write",
        "openShiftClusters",
        "Write OpenShift cluster",
    ),
    (
        "openShiftClusters/delete",
        "openShiftClusters",
        "Delete OpenShift cluster",
    ),
    (
        "openShiftClusters/listCredentials/action",
        "openShiftClusters",
        "List credentials of an OpenShift cluster",
    ),
    (
        "openShiftClusters/listAdminCredentials/action",
        "openShiftClusters",
        "List admin kubeconfig of an OpenShift cluster",
    ),
    (
        "openShiftClusters/detectors/read",
        "openShiftClusters",
        "Get detectors of an OpenShift cluster",
    ),
    (
        "locations/listPlatformWorkloadIdentityRoleSets/read",
        "listPlatformWorkloadIdentityRoleSets",
        "Lists the role sets of platform workload identities",
    ),
    (
        "locations/openshiftVersions/read",
        "openShiftVersions",
        "Lists all OpenShift versions available to install",
    ),
];

/// The operations of the provider, for the directory of ARM.
pub(super) async fn list(Path(params): Path<Params>) -> Answer {
    let namespace = param(&params, "namespace");
    if namespace != NAMESPACE {
        let message = format!("The resource namespace '{namespace}' is invalid.");
        return Err(CloudError::bad_request("InvalidResourceNamespace", "", message).into());
    }
    let operations = ALL.map(|(name, resource, operation)| {
        json!({
            "name": format!("Microsoft.RedHatOpenShift/{name}"),
            "display": {
                "provider": "Azure Red Hat OpenShift",
                "resource": resource,
                "operation": operation,
            },
            "origin": "user,system",
        })
    });
    Ok(ok(&json!({ "value": operations })))
}

/// Whether ARM may send requests here.
pub(super) async fn ready(State(frontend): State<Frontend>) -> Response {
    let is_early = frontend.clock.uptime() < frontend.readiness_delay;
    let why = if is_early {
        "it was started a short time ago"
    } else if !frontend.catalogue.is_read() {
        "the versions were not read yet"
    } else {
        return ok(&json!({}));
    };
    let message = format!("The provider is not ready: {why}.");
    Failure(CloudError::new(500, "NotReady", CLUSTER_TYPE, message)).into_response()
}
