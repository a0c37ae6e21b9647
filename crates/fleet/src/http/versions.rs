//! Versions that can be installed, and role sets.

use axum::extract::{Path, Request, State};
use serde_json::{Value, json};

use super::{
    Frontend, Params,
    answer::ok,
    clusters::{Answer, param},
    middleware::{Head, api_version, split},
    operations::check_location,
};
use crate::{api::ApiVersion, cloud_error::CloudError};

fn checked(
    frontend: &Frontend,
    params: &Params,
    request: &Head,
) -> Result<&'static ApiVersion, CloudError> {
    check_location(frontend, params)?;
    let api = api_version(request, param(params, "namespace"), "")?;
    if api.admin {
        let message = "The resource type '' could not be found for api version 'admin'.";
        return Err(CloudError::bad_request("InvalidResourceType", "", message));
    }
    Ok(api)
}

fn find(all: Vec<Value>, name: &str, what: &str) -> Result<Value, CloudError> {
    all.into_iter()
        .find(|it| it["name"] == name)
        .ok_or_else(|| {
            // Clients rely on 400 here.
            let message = format!("The Resource {what} with name '{name}' was not found.");
            CloudError::bad_request("ResourceNotFound", "", message)
        })
}

pub(super) async fn list(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    checked(&frontend, &params, &split(request).0)?;
    let (subscription, location) = (param(&params, "subscription"), &frontend.region.location);
    let versions = frontend.catalogue.versions(subscription, location);
    Ok(ok(&json!({ "value": versions })))
}

pub(super) async fn get(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    checked(&frontend, &params, &split(request).0)?;
    let (subscription, location) = (param(&params, "subscription"), &frontend.region.location);
    let versions = frontend.catalogue.versions(subscription, location);
    Ok(ok(&find(
        versions,
        param(&params, "version"),
        "openShiftVersion",
    )?))
}

fn check_role_sets(api: &ApiVersion) -> Result<(), CloudError> {
    if api.role_sets {
        return Ok(());
    }
    let message = format!(
        "The resource type 'platformWorkloadIdentityRoleSets' could not be found for api version '{}'.",
        api.name
    );
    Err(CloudError::bad_request("InvalidResourceType", "", message))
}

pub(super) async fn list_role_sets(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    check_role_sets(checked(&frontend, &params, &split(request).0)?)?;
    let (subscription, location) = (param(&params, "subscription"), &frontend.region.location);
    let sets = frontend.catalogue.role_sets(subscription, location);
    Ok(ok(&json!({ "value": sets })))
}

pub(super) async fn get_role_set(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    check_role_sets(checked(&frontend, &params, &split(request).0)?)?;
    let (subscription, location) = (param(&params, "subscription"), &frontend.region.location);
    let sets = frontend.catalogue.role_sets(subscription, location);
    let minor = param(&params, "minor");
    Ok(ok(&find(sets, minor, "platformWorkloadIdentityRoleSet")?))
}
