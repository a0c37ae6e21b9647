//! Clusters: read, list, create, change, delete, credentials.

use std::time::Duration;

use axum::{
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{StatusCode, header};
use neap_kit::http::{if_match, if_none_match};
use neap_store::{Document, ListRequest, Partition, Scope};
use serde_json::{Value, json};

use super::{
    Failure, Frontend, PAGE, Params,
    answer::{FIRST_POLL, json as json_answer, ok, set_header, store_error},
    commit::{Change, Committed},
    middleware::{
        Head, actor, api_version, body, is_dry, link, optional_body, original_path, query, split,
        system_data,
    },
};
use crate::{
    api::ApiVersion,
    cloud_error::CloudError,
    cluster::{self, DeleteFacts, PutFacts, shown, states},
    documents::{CLUSTERS, SUBSCRIPTIONS, text},
    resource_id::{
        CLUSTER_TYPE, CLUSTER_TYPE_NAME, ClusterId, check_group, check_subscription, check_type,
    },
    state::{ProvisioningState, Wish, may},
};

/// How often a request is decided again after the cluster was changed by another.
const ATTEMPTS: u32 = 5;
/// The delay before the second attempt; it grows with each.
const ATTEMPT_DELAY: Duration = Duration::from_millis(100);

pub(super) type Answer = Result<Response, Failure>;

/// The parameter of a path, empty if the route has none of this name.
pub(super) fn param<'a>(params: &'a Params, name: &str) -> &'a str {
    params.get(name).map_or("", String::as_str)
}

pub(super) fn cluster_id(params: &Params) -> Result<ClusterId, CloudError> {
    ClusterId::new(
        param(params, "subscription"),
        param(params, "group"),
        param(params, "namespace"),
        param(params, "kind"),
        param(params, "name"),
    )
}

fn version(request: &Head, params: &Params) -> Result<&'static ApiVersion, CloudError> {
    api_version(request, param(params, "namespace"), param(params, "kind"))
}

pub(super) fn missing(id: &ClusterId) -> Failure {
    let message = format!(
        "The Resource '{CLUSTER_TYPE}/{}' under resource group '{}' was not found.",
        id.name, id.group
    );
    Failure(CloudError::new(404, "ResourceNotFound", "", message))
}

/// A cluster as an answer, with its etag.
fn cluster_answer(status: StatusCode, value: &Value, etag: Option<&Document>) -> Response {
    let mut response = json_answer(status, value);
    if let Some(document) = etag {
        set_header(
            &mut response,
            header::ETAG.as_str(),
            &document.etag.to_string(),
        );
    }
    response
}

pub(super) async fn get(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    let (request, _) = split(request);
    let id = cluster_id(&params)?;
    let api = version(&request, &params)?;
    let document = frontend.read_cluster(&id).await?;
    let document = document.ok_or_else(|| missing(&id))?;
    let mut seen = shown(api, &document.body);
    frontend.enrichment.enrich(api, &document, &mut seen).await;
    Ok(cluster_answer(StatusCode::OK, &seen, Some(&document)))
}

pub(super) async fn list(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    let (request, _) = split(request);
    let subscription = param(&params, "subscription").to_owned();
    check_subscription(&subscription)?;
    check_type(param(&params, "namespace"), param(&params, "kind"))?;
    let group = params.get("group").map(String::as_str);
    group.map_or(Ok(()), check_group)?;
    let api = version(&request, &params)?;
    let prefix = ClusterId::prefix(&subscription, group);
    let partition = Partition::subscription(&subscription);
    let scope = Scope::Partition(&partition);
    Ok(ok(&frontend.page(&request, api, scope, &prefix).await?))
}

impl Frontend {
    /// A page of clusters.
    pub(super) async fn page(
        &self,
        request: &Head,
        api: &ApiVersion,
        scope: Scope<'_>,
        prefix: &str,
    ) -> Result<Value, CloudError> {
        let token = query(request, "$skiptoken");
        let after = token
            .map(|token| self.paging.open(prefix, &token))
            .transpose()?;
        let list = ListRequest {
            collection: CLUSTERS,
            scope,
            prefix,
            after: after.as_ref().map(|(part, id)| (&**part, &**id)),
            limit: PAGE + 1,
        };
        let mut documents = self
            .store
            .list(&list)
            .await
            .map_err(|error| store_error(&error))?;
        let has_more = documents.len() > PAGE;
        documents.truncate(PAGE);
        let mut page = json!({});
        let mut clusters: Vec<_> = documents.iter().map(|it| shown(api, &it.body)).collect();
        self.enrichment
            .enrich_all(api, &documents, &mut clusters)
            .await;
        page["value"] = Value::Array(clusters);
        if let Some(last) = documents.last().filter(|_| has_more) {
            let last = (last.key.partition.name().to_owned(), last.key.id.clone());
            if let Some(token) = self.paging.seal(prefix, &last) {
                let path = super::middleware::referer(request).path().to_owned();
                let query = format!("api-version={}&$skipToken={token}", api.name);
                page["nextLink"] = link(request, &path, &query).into();
            }
        }
        Ok(page)
    }
}

pub(super) async fn put(
    frontend: State<Frontend>,
    params: Path<Params>,
    request: Request,
) -> Answer {
    change(frontend, params, request, false).await
}

pub(super) async fn patch(
    frontend: State<Frontend>,
    params: Path<Params>,
    request: Request,
) -> Answer {
    change(frontend, params, request, true).await
}

async fn change(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
    patch: bool,
) -> Answer {
    let id = cluster_id(&params)?;
    let (request, body) = body(request).await?;
    let api = version(&request, &params)?;
    let is_dry = is_dry(&request)?;
    let (path, system_data) = (original_path(&request), system_data(&request));
    let actor = actor(&request, api.admin, &system_data);
    for attempt in 1..=ATTEMPTS {
        let existing = frontend.read_cluster(&id).await?;
        let told = frontend.request(&request, api.admin, Some(&body));
        // Nothing was begun by a dry run, so none answers with an operation.
        if let Some(existing) = existing.as_ref().filter(|_| !is_dry)
            && let Some(operation) = frontend.same_operation(&id, &existing.body, &told).await?
        {
            let status = StatusCode::OK;
            let answer = cluster_answer(status, &shown(api, &existing.body), Some(existing));
            return Ok(accepted(&frontend, &request, answer, &id, &operation, api));
        }
        precondition(&request, existing.as_ref())?;
        let subscription = frontend.read(SUBSCRIPTIONS, &id.subscription, &id.subscription);
        let subscription = subscription.await?;
        let decision = cluster::put(&PutFacts {
            api,
            patch,
            id: &id,
            path: &path,
            body: &body,
            subscription: subscription.as_ref().map(|it| &it.body),
            existing: existing.as_ref().map(|it| &it.body),
            catalogue: &frontend.catalogue,
            region: &frontend.region,
            system_data: &system_data,
            commit: &frontend.commit,
            request: &told,
        })?;
        let change = Change {
            id: &id,
            cluster: existing.as_ref(),
            subscription: subscription.as_ref(),
            decision: &decision,
            actor: &actor,
            action: if decision.created {
                "create cluster"
            } else {
                "update cluster"
            },
        };
        if let Committed::Done = frontend.act(change, is_dry).await? {
            return Ok(if is_dry {
                ok(&dry_run(api, &decision))
            } else {
                begun(&frontend, &request, &id, &decision, api)
            });
        }
        frontend.clock.sleep(ATTEMPT_DELAY * attempt).await;
    }
    Err(contended().into())
}

/// The answer to a PUT or PATCH that was done.
fn begun(
    frontend: &Frontend,
    request: &Head,
    id: &ClusterId,
    decision: &cluster::Decision,
    api: &ApiVersion,
) -> Response {
    let status = if decision.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let answer = cluster_answer(status, &shown(api, &decision.document), None);
    let operation = text(&decision.operation, "/id");
    accepted(frontend, request, answer, id, operation, api)
}

pub(super) fn contended() -> CloudError {
    CloudError::new(
        409,
        "ConcurrentChange",
        "",
        "The cluster was changed by other requests at the same time: read it again, and send the request again if it still applies.",
    )
}

/// What a request would do.
fn dry_run(api: &ApiVersion, decision: &cluster::Decision) -> Value {
    let state = states(&decision.document).0;
    let would_be = match () {
        () if decision.created => "created",
        () if state == ProvisioningState::Deleting => "deleted",
        () => "updated",
    };
    json!({
        "wouldBe": would_be,
        "provisioningState": state.name(),
        "resource": shown(api, &decision.document),
    })
}

/// Refuses a request for another version of the cluster than the one that exists, or for a cluster that must not
/// exist yet.
fn precondition(request: &Head, existing: Option<&Document>) -> Result<(), CloudError> {
    let etag = existing.map(|document| document.etag.to_string());
    let (headers, etag) = (request.headers(), etag.as_deref());
    let message = match () {
        () if !if_match(headers).allows(etag) => {
            "The cluster is not in the version of If-Match: read it again."
        }
        () if !if_none_match(headers).allows(etag) => {
            "The cluster exists in a version that If-None-Match excludes: read it, and send the request without If-None-Match to change it."
        }
        () => return Ok(()),
    };
    Err(CloudError::new(412, "PreconditionFailed", "", message))
}

/// The answer, with where the operation can be followed.
fn accepted(
    frontend: &Frontend,
    request: &Head,
    mut answer: Response,
    id: &ClusterId,
    operation: &str,
    api: &ApiVersion,
) -> Response {
    let status = frontend.operation_link(request, &id.subscription, operation, api.name);
    set_header(&mut answer, "azure-asyncoperation", &status);
    set_header(&mut answer, header::RETRY_AFTER.as_str(), FIRST_POLL);
    answer
}

pub(super) async fn delete(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    let id = cluster_id(&params)?;
    let (request, _) = split(request);
    let api = version(&request, &params)?;
    let is_dry = is_dry(&request)?;
    let actor = actor(&request, api.admin, &system_data(&request));
    for attempt in 1..=ATTEMPTS {
        let Some(existing) = frontend.read_cluster(&id).await? else {
            return Ok(StatusCode::NO_CONTENT.into_response());
        };
        let told = frontend.request(&request, api.admin, None);
        if !is_dry
            && let Some(operation) = frontend.same_operation(&id, &existing.body, &told).await?
        {
            return Ok(deleting(&frontend, &request, &id, &operation, api));
        }
        precondition(&request, Some(&existing))?;
        let subscription = frontend
            .read(SUBSCRIPTIONS, &id.subscription, &id.subscription)
            .await?;
        let decision = cluster::delete(&DeleteFacts {
            id: &id,
            subscription: subscription.as_ref().map(|it| &it.body),
            existing: &existing.body,
            location: &frontend.region.location,
            request: &told,
        })?;
        let change = Change {
            id: &id,
            cluster: Some(&existing),
            // Whatever becomes of the subscription, the cluster is to go.
            subscription: None,
            decision: &decision,
            actor: &actor,
            action: "delete cluster",
        };
        if let Committed::Done = frontend.act(change, is_dry).await? {
            return Ok(if is_dry {
                ok(&dry_run(api, &decision))
            } else {
                let operation = text(&decision.operation, "/id");
                deleting(&frontend, &request, &id, operation, api)
            });
        }
        frontend.clock.sleep(ATTEMPT_DELAY * attempt).await;
    }
    Err(contended().into())
}

/// The answer to a DELETE that was accepted.
fn deleting(
    frontend: &Frontend,
    request: &Head,
    id: &ClusterId,
    operation: &str,
    api: &ApiVersion,
) -> Response {
    let answer = StatusCode::ACCEPTED.into_response();
    let mut answer = accepted(frontend, request, answer, id, operation, api);
    let status = frontend.operation_link(request, &id.subscription, operation, api.name);
    let result = status.replace("/operationsstatus/", "/operationresults/");
    set_header(&mut answer, header::LOCATION.as_str(), &result);
    answer
}

/// The cluster whose credentials may be read, with its secrets.
async fn revealed(
    frontend: &Frontend,
    params: &Params,
    request: Request,
) -> Result<Value, Failure> {
    let id = cluster_id(params)?;
    let (request, body) = optional_body(request).await?;
    let api = version(&request, params)?;
    if api.admin {
        let message = format!(
            "The resource type '{CLUSTER_TYPE_NAME}' has no credentials in api version 'admin'."
        );
        return Err(CloudError::bad_request("InvalidResourceType", "", message).into());
    }
    if body.is_some_and(|body| body.as_object().is_none_or(|it| !it.is_empty())) {
        let message = "The request content was invalid: it must be empty.";
        return Err(CloudError::bad_request("InvalidRequestContent", "", message).into());
    }
    let subscription = frontend
        .read(SUBSCRIPTIONS, &id.subscription, &id.subscription)
        .await?;
    cluster::check_subscription_state(subscription.as_ref().map(|it| &it.body), &["Registered"])?;
    let document = frontend.read_cluster(&id).await?;
    let document = document.ok_or_else(|| missing(&id))?;
    let (state, failed) = states(&document.body);
    may(Wish::ReadCredentials, state, failed, "")?;
    Ok(frontend.store.reveal(&document)?)
}

pub(super) async fn credentials(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    let document = revealed(&frontend, &params, request).await?;
    Ok(ok(&json!({
        "kubeadminUsername": "kubeadmin",
        "kubeadminPassword": text(&document, "/openShiftCluster/properties/kubeadminPassword"),
    })))
}

pub(super) async fn admin_credentials(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    let document = revealed(&frontend, &params, request).await?;
    let kubeconfig = text(
        &document,
        "/openShiftCluster/properties/userAdminKubeconfig",
    );
    Ok(ok(&json!({"kubeconfig": STANDARD.encode(kubeconfig)})))
}

/// Detectors are a service of the cloud, which is not connected.
pub(super) async fn detectors(Path(params): Path<Params>) -> Answer {
    cluster_id(&params)?;
    let message =
        "Detectors need the diagnostics service of the cloud, and no cloud is configured.";
    Err(CloudError::new(404, "CloudNotConfigured", "", message).into())
}
