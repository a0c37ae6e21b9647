//! Routes for administrators that need only the store.

use axum::{
    extract::{Path, Request, State},
    response::IntoResponse,
};
use futures::StreamExt;
use http::StatusCode;
use neap_store::{AuditRow, Commit, Document, Precondition, Scope, Write};
use serde_json::{Value, json};

use super::{
    Frontend, Params,
    answer::{json as json_answer, ok, store_error},
    clusters::{Answer, param},
    listing::{Rows, answered},
    middleware::{Head, actor, audited, body, query, split},
};
use crate::{
    api,
    cloud_error::CloudError,
    documents::{BILLING, CLUSTERS, ROLE_SETS, VERSIONS, region_document, set, text},
    resource_id::{ClusterId, check_type},
    vm_sizes::{self, Role},
};

/// What follows for the other documents of the collection when one of them is written.
type Consequence = fn(other: &Value, written: &Value) -> Option<Value>;

impl Frontend {
    /// Removes a document of the region, unless `check` refuses. True if there was one.
    async fn delete_region(
        &self,
        collection: &'static str,
        id: &str,
        request: &Head,
        check: fn(&Value) -> Result<(), CloudError>,
    ) -> Result<bool, CloudError> {
        let key = region_document(collection, id);
        loop {
            let existing = self.store.get(Scope::Everywhere, &key).await;
            let Some(existing) = existing.map_err(|error| store_error(&error))? else {
                return Ok(false);
            };
            check(&existing.body)?;
            let delete = Write::Delete {
                key: key.clone(),
                precondition: Precondition::Etag(existing.etag),
            };
            let row = audit_row(request, format!("delete {collection}"), id);
            let commit = Commit::default().with(delete).audit(row);
            match self.store.commit(commit).await {
                Ok(_) => return Ok(true),
                Err(neap_store::Error::Conflict(_) | neap_store::Error::Missing(_)) => {}
                Err(error) => return Err(store_error(&error)),
            }
        }
    }

    /// Creates or replaces a document of the region, and what follows from it. True if it is new.
    async fn put_region(
        &self,
        collection: &'static str,
        id: &str,
        request: &Head,
        change: impl Fn(Option<&Value>) -> Result<Value, CloudError>,
        consequence: Consequence,
    ) -> Result<(bool, Value), CloudError> {
        let key = region_document(collection, id);
        loop {
            let existing = self.store.get(Scope::Everywhere, &key).await;
            let existing = existing.map_err(|error| store_error(&error))?;
            let body = change(existing.as_ref().map(|it| &it.body))?;
            let is_new = existing.is_none();
            let precondition =
                existing.map_or(Precondition::Absent, |it| Precondition::Etag(it.etag));
            let mut commit = Commit::default()
                .put(key.clone(), precondition, body.clone())
                .audit(audit_row(request, format!("put {collection}"), id));
            for other in self.all(collection).await? {
                if other.key != key
                    && let Some(changed) = consequence(&other.body, &body)
                {
                    let precondition = Precondition::Etag(other.etag);
                    commit = commit.put(other.key.clone(), precondition, changed);
                }
            }
            match self.store.commit(commit).await {
                Ok(_) => return Ok((is_new, body)),
                Err(neap_store::Error::Conflict(_) | neap_store::Error::Exists(_)) => {}
                Err(error) => return Err(store_error(&error)),
            }
        }
    }
}

/// The row of the audit about the request of an administrator.
pub(super) fn audit_row(request: &Head, action: impl Into<String>, target: &str) -> AuditRow {
    AuditRow {
        actor: actor(request, true, &Value::Null),
        action: action.into(),
        target: target.to_owned(),
        detail: audited(request),
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
    let mut document = existing.cloned().unwrap_or_else(|| json!({"id": version}));
    for name in ["enabled", "default"] {
        if !properties[name].is_null() && !properties[name].is_boolean() {
            let target = format!("properties.{name}");
            return Err(CloudError::invalid(&target, "Must be true or false."));
        }
    }
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
    let after = &document["openShiftVersion"]["properties"];
    if after["default"] == true && after["enabled"] != true {
        let message = "You cannot disable the default installation version.";
        return Err(CloudError::invalid("properties.enabled", message));
    }
    Ok(document)
}

/// There is one default: it moves to the version that was written. Pure.
fn no_longer_default(other: &Value, written: &Value) -> Option<Value> {
    let pointer = "/openShiftVersion/properties/default";
    let both = [other, written].map(|it| it.pointer(pointer) == Some(&true.into()));
    (both == [true, true]).then(|| {
        let mut changed = other.clone();
        set(&mut changed, pointer, false.into());
        changed
    })
}

pub(super) async fn delete_version(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    let (request, _) = split(request);
    let version = param(&params, "version");
    let deleted = frontend.delete_region(VERSIONS, version, &request, |existing| {
        if existing["openShiftVersion"]["properties"]["default"] == true {
            let message = "You cannot delete the default installation version.";
            return Err(CloudError::invalid("properties.default", message));
        }
        Ok(())
    });
    Ok(gone(deleted.await?).into_response())
}

pub(super) async fn delete_role_set(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    let (request, _) = split(request);
    let minor = param(&params, "minor");
    let deleted = frontend.delete_region(ROLE_SETS, minor, &request, |_| Ok(()));
    Ok(gone(deleted.await?).into_response())
}

fn gone(was_there: bool) -> StatusCode {
    if was_there {
        StatusCode::OK
    } else {
        StatusCode::NO_CONTENT
    }
}

pub(super) async fn put_version(State(frontend): State<Frontend>, request: Request) -> Answer {
    let (request, body) = body(request).await?;
    let version = text(&body, "/properties/version").to_owned();
    let put = frontend.put_region(
        VERSIONS,
        &version,
        &request,
        |existing| version_document(existing, &body),
        no_longer_default,
    );
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
    let (request, body) = body(request).await?;
    let minor = text(&body, "/properties/openShiftVersion").to_owned();
    let put = frontend.put_region(
        ROLE_SETS,
        &minor,
        &request,
        |existing| role_set_document(existing, &body),
        |_, _| None,
    );
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
    let wanted = filters.map(|(name, pointer)| {
        let wanted = query(&request, name);
        (pointer, wanted.map(|it| it.to_lowercase()))
    });
    let state = query(&request, "state");
    let is_shown = move |row: &Value| {
        let contains = |(pointer, wanted): &(&str, Option<String>)| {
            let is_there = |it: &String| text(row, pointer).to_lowercase().contains(it);
            wanted.as_ref().is_none_or(is_there)
        };
        let is_in = |it: &String| text(row, "/provisioningState").eq_ignore_ascii_case(it);
        wanted.iter().all(contains) && state.as_ref().is_none_or(is_in)
    };
    // The order of the keys is that of the resource ids in lower case.
    let pages = frontend.pages(CLUSTERS);
    let rows = pages.map(move |page| -> Rows {
        let rows = page?.into_iter().map(|it| row(&it.body));
        Ok(rows.filter(&is_shown).collect())
    });
    answered(rows).await
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
    let pages = frontend.pages(BILLING);
    let rows = pages.map(|page| -> Rows { Ok(page?.into_iter().map(|it| it.body).collect()) });
    answered(rows).await
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

pub(super) fn not_found(what: &str, id: &str) -> CloudError {
    CloudError::new(404, "NotFound", "", format!("There is no {what} '{id}'."))
}
