//! Routes for administrators that need only the store.

use axum::extract::{Path, Request, State};
use http::StatusCode;
use neap_store::{
    AuditRow, Commit, Document, ListRequest, Precondition, QueueChange, Scope, Write,
};
use serde_json::{Value, json};

use super::{
    Frontend, Params,
    answer::{json as json_answer, ok, store_error},
    clusters::{Answer, param},
    middleware::{body, query, split},
};
use crate::{
    api,
    backend::request_cancel,
    cloud_error::CloudError,
    cluster::{Request as Told, retried, states},
    documents::{
        BILLING, CLUSTERS, OPERATIONS, QUEUE, ROLE_SETS, TIMELINES, VERSIONS, region_document,
        subscription_document, text, unique_keys,
    },
    resource_id::{ClusterId, check_type},
    vm_sizes::{self, Role},
};

/// The most documents that a list for administrators shows.
const MAX_LIST: usize = 1000;

impl Frontend {
    /// All documents of a collection.
    async fn all(&self, collection: &'static str) -> Result<Vec<Document>, CloudError> {
        let request = ListRequest {
            collection,
            scope: Scope::Everywhere,
            prefix: "",
            after: None,
            limit: MAX_LIST,
        };
        let found = self.store.list(&request).await;
        found.map_err(|error| store_error(&error))
    }

    /// Creates or replaces a document of the region. True if it is new.
    async fn put_region(
        &self,
        collection: &'static str,
        id: &str,
        change: impl Fn(Option<&Value>) -> Result<Value, CloudError>,
    ) -> Result<(bool, Value), CloudError> {
        let key = region_document(collection, id);
        loop {
            let existing = self.store.get(Scope::Everywhere, &key).await;
            let existing = existing.map_err(|error| store_error(&error))?;
            let body = change(existing.as_ref().map(|it| &it.body))?;
            let is_new = existing.is_none();
            let precondition =
                existing.map_or(Precondition::Absent, |it| Precondition::Etag(it.etag));
            let commit = Commit::default()
                .put(key.clone(), precondition, body.clone())
                .audit(AuditRow {
                    action: format!("put {collection}"),
                    target: id.to_owned(),
                    ..AuditRow::default()
                });
            match self.store.commit(commit).await {
                Ok(_) => return Ok((is_new, body)),
                Err(neap_store::Error::Conflict(_) | neap_store::Error::Exists(_)) => {}
                Err(error) => return Err(store_error(&error)),
            }
        }
    }
}

fn list(documents: &[Document], member: &str) -> Value {
    let values: Vec<_> = documents.iter().map(|it| it.body[member].clone()).collect();
    json!({ "value": values })
}

pub(super) async fn versions(State(frontend): State<Frontend>) -> Answer {
    Ok(ok(&list(
        &frontend.all(VERSIONS).await?,
        "openShiftVersion",
    )))
}

/// The document of a version after `body`. Pure.
pub(crate) fn version_document(
    existing: Option<&Value>,
    body: &Value,
) -> Result<Value, CloudError> {
    let properties = &body["properties"];
    let version = text(properties, "/version");
    for name in ["version", "installerPullspec", "openShiftPullspec"] {
        if text(properties, &format!("/{name}")).is_empty() {
            let target = format!("properties.{name}");
            return Err(CloudError::invalid(&target, "Must be provided."));
        }
    }
    if semver::Version::parse(version).is_err() {
        let message = format!("The version '{version}' is not of the form x.y.z.");
        return Err(CloudError::invalid("properties.version", message));
    }
    if properties["default"] == true && properties["enabled"] != true {
        let message = "You cannot disable the default installation version.";
        return Err(CloudError::invalid("properties.enabled", message));
    }
    let mut document = existing.cloned().unwrap_or_else(|| json!({"id": version}));
    for name in [
        "version",
        "installerPullspec",
        "openShiftPullspec",
        "enabled",
        "default",
    ] {
        if !properties[name].is_null() {
            document["openShiftVersion"]["properties"][name] = properties[name].clone();
        }
    }
    Ok(document)
}

pub(super) async fn put_version(State(frontend): State<Frontend>, request: Request) -> Answer {
    let (_, body) = body(request).await?;
    let version = text(&body, "/properties/version").to_owned();
    let put = frontend.put_region(VERSIONS, &version, |existing| {
        version_document(existing, &body)
    });
    let (is_new, document) = put.await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(json_answer(status, &document["openShiftVersion"]))
}

pub(super) async fn role_sets(State(frontend): State<Frontend>) -> Answer {
    let sets = frontend.all(ROLE_SETS).await?;
    Ok(ok(&list(&sets, "platformWorkloadIdentityRoleSet")))
}

/// The document of a role set after `body`. Pure.
pub(crate) fn role_set_document(
    existing: Option<&Value>,
    body: &Value,
) -> Result<Value, CloudError> {
    let minor = text(body, "/properties/openShiftVersion");
    if minor.is_empty() {
        let target = "properties.openShiftVersion";
        return Err(CloudError::invalid(target, "Must be provided."));
    }
    let roles = &body["properties"]["platformWorkloadIdentityRoles"];
    if roles.as_array().is_none_or(Vec::is_empty) {
        let target = "properties.platformWorkloadIdentityRoles";
        return Err(CloudError::invalid(
            target,
            "Must be provided and must be non-empty.",
        ));
    }
    let mut document = existing.cloned().unwrap_or_else(|| json!({"id": minor}));
    document["platformWorkloadIdentityRoleSet"]["properties"] = body["properties"].clone();
    Ok(document)
}

pub(super) async fn put_role_set(State(frontend): State<Frontend>, request: Request) -> Answer {
    let (_, body) = body(request).await?;
    let minor = text(&body, "/properties/openShiftVersion").to_owned();
    let put = frontend.put_region(ROLE_SETS, &minor, |existing| {
        role_set_document(existing, &body)
    });
    let (is_new, document) = put.await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(json_answer(
        status,
        &document["platformWorkloadIdentityRoleSet"],
    ))
}

pub(super) async fn vm_sizes(request: Request) -> Answer {
    let role = match query(&request, "vmrole").as_deref() {
        Some("master") => Role::Master,
        Some("worker") => Role::Worker,
        other => {
            let message = format!(
                "The provided vmRole '{}' is invalid. vmRole can only be master or worker",
                other.unwrap_or_default()
            );
            return Err(CloudError::invalid("vmRole", message).into());
        }
    };
    Ok(ok(&vm_sizes::all(role).collect()))
}

/// A row of the list of clusters.
fn row(document: &Value) -> Value {
    let cluster = &document["openShiftCluster"];
    let properties = &cluster["properties"];
    let id = ClusterId::parse(text(document, "/key"));
    json!({
        "key": document["id"],
        "name": cluster["name"],
        "subscription": document["partitionKey"],
        "resourceGroup": id.map(|id| id.group),
        "resourceId": cluster["id"],
        "provisioningState": properties["provisioningState"],
        "failedProvisioningState": properties["failedProvisioningState"],
        "version": properties["clusterProfile"]["version"],
        "createdAt": properties["createdAt"],
        "createdBy": cluster["systemData"]["createdBy"],
        "provisionedBy": properties["provisionedBy"],
        "lastModified": cluster["systemData"]["lastModifiedAt"],
    })
}

pub(super) async fn clusters(State(frontend): State<Frontend>, request: Request) -> Answer {
    let (request, _) = split(request);
    let filters = [
        ("name", "/name"),
        ("subscription", "/subscription"),
        ("version", "/version"),
        ("created_by", "/createdBy"),
        ("provisioned_by", "/provisionedBy"),
    ];
    let documents = frontend.all(CLUSTERS).await?;
    let mut rows: Vec<_> = documents.iter().map(|it| row(&it.body)).collect();
    for (name, pointer) in filters {
        if let Some(wanted) = query(&request, name) {
            let wanted = wanted.to_lowercase();
            rows.retain(|row| text(row, pointer).to_lowercase().contains(&wanted));
        }
    }
    if let Some(state) = query(&request, "state") {
        rows.retain(|row| text(row, "/provisioningState").eq_ignore_ascii_case(&state));
    }
    rows.sort_by_key(|row| text(row, "/resourceId").to_lowercase());
    Ok(ok(&json!({ "value": rows })))
}

pub(super) async fn all_clusters(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    check_type(param(&params, "namespace"), param(&params, "kind"))?;
    let (request, _) = split(request);
    let page = frontend.page(&request, &api::ADMIN, Scope::Everywhere, "");
    Ok(ok(&page.await?))
}

pub(super) async fn billing(State(frontend): State<Frontend>) -> Answer {
    let documents = frontend.all(BILLING).await?;
    let values: Vec<_> = documents.into_iter().map(|it| it.body).collect();
    Ok(ok(&json!({ "value": values })))
}

pub(super) async fn billing_of(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
) -> Answer {
    let id = param(&params, "id");
    let found = frontend
        .store
        .get(Scope::Everywhere, &region_document(BILLING, id))
        .await?;
    let found = found.ok_or_else(|| not_found("billing document", id))?;
    Ok(ok(&found.body))
}

fn not_found(what: &str, id: &str) -> CloudError {
    CloudError::new(404, "NotFound", "", format!("There is no {what} '{id}'."))
}

/// Operations, newest first, each with its timeline.
pub(super) async fn operations(State(frontend): State<Frontend>) -> Answer {
    let timelines = frontend.all(TIMELINES).await?;
    let operations = frontend.all(OPERATIONS).await?;
    let mut rows: Vec<_> = operations
        .iter()
        .map(|operation| {
            let timeline = timelines.iter().find(|it| it.key.id == operation.key.id);
            shown(&operation.body, timeline.map(|it| &it.body))
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
