//! Preflight: what ARM asks before it deploys a template.

use axum::extract::{Path, Request, State};
use serde_json::{Value, json};

use super::{
    Frontend, Params,
    answer::ok,
    clusters::{Answer, contended, param},
    commit::{Change, Committed},
    middleware::{Head, body},
};
use crate::{
    api,
    cloud_error::CloudError,
    cluster::{self, PutFacts},
    documents::SUBSCRIPTIONS,
    resource_id::{
        CLUSTER_TYPE, CLUSTER_TYPE_NAME, ClusterId, NAMESPACE, check_group, check_subscription,
    },
};

/// The answer is always 200; what would be refused is in the body.
pub(super) async fn preflight(
    State(frontend): State<Frontend>,
    Path(params): Path<Params>,
    request: Request,
) -> Answer {
    check_subscription(param(&params, "subscription"))?;
    check_group(param(&params, "group"))?;
    let (request, body) = match body(request).await {
        Ok(read) => read,
        Err(error) => return Ok(ok(&failed(&error))),
    };
    let Some(resources) = body["resources"].as_array() else {
        let message = "The request content was invalid: it has no list 'resources'.";
        let error = CloudError::bad_request("InvalidRequestContent", "resources", message);
        return Ok(ok(&failed(&error)));
    };
    if let Err(error) = well_formed(resources) {
        return Ok(ok(&failed(&error)));
    }
    for resource in resources {
        let kind = resource["type"].as_str().unwrap_or_default();
        let version = resource["apiVersion"].as_str().unwrap_or_default();
        if !kind.eq_ignore_ascii_case(CLUSTER_TYPE_NAME) {
            continue;
        }
        let Some(api) = api::find(version).filter(|it| !it.admin) else {
            continue;
        };
        if let Err(error) = check(&frontend, &params, &request, api, resource).await {
            return Ok(ok(&failed(&error)));
        }
    }
    Ok(ok(&json!({"status": "Succeeded"})))
}

/// Refuses what is no resource, and one whose type is no text: it could be any.
fn well_formed(resources: &[Value]) -> Result<(), CloudError> {
    for (at, resource) in resources.iter().enumerate() {
        let (target, problem) = match resource {
            Value::Object(members) => match members.get("type") {
                None | Some(Value::String(_)) => continue,
                Some(_) => (format!("resources[{at}].type"), "is not a string"),
            },
            _ => (format!("resources[{at}]"), "is not an object"),
        };
        let message = format!("The request content was invalid: '{target}' {problem}.");
        return Err(CloudError::bad_request(
            "InvalidRequestContent",
            &target,
            message,
        ));
    }
    Ok(())
}

fn failed(error: &CloudError) -> Value {
    json!({"status": "Failed", "error": error})
}

/// Decides the PUT that the template will lead to, and does nothing.
async fn check(
    frontend: &Frontend,
    params: &Params,
    request: &Head,
    api: &'static api::ApiVersion,
    resource: &Value,
) -> Result<(), CloudError> {
    let name = resource["name"].as_str().unwrap_or_default();
    let (subscription, group) = (param(params, "subscription"), param(params, "group"));
    let id = ClusterId::new(subscription, group, NAMESPACE, CLUSTER_TYPE, name)?;
    let mut body = resource.clone();
    if let Some(body) = body.as_object_mut() {
        // Members of templates that are not of the resource.
        for name in [
            "apiVersion",
            "dependsOn",
            "condition",
            "comments",
            "copy",
            "scope",
            "zones",
        ] {
            body.remove(name);
        }
    }
    let existing = frontend.read_cluster(&id).await?;
    let subscription = frontend
        .read(SUBSCRIPTIONS, subscription, subscription)
        .await?;
    let told = frontend.request(request, false, None);
    let decision = cluster::put(&PutFacts {
        api,
        patch: false,
        id: &id,
        path: &id.to_string(),
        body: &body,
        subscription: subscription.as_ref().map(|it| &it.body),
        existing: existing.as_ref().map(|it| &it.body),
        catalogue: &frontend.catalogue,
        region: &frontend.region,
        system_data: &Value::Null,
        commit: &frontend.commit,
        request: &told,
    })?;
    let change = Change {
        id: &id,
        cluster: existing.as_ref(),
        subscription: subscription.as_ref(),
        decision: &decision,
        actor: "",
        action: "preflight",
    };
    match frontend.rehearse(change).await? {
        Committed::Done => Ok(()),
        Committed::Again => Err(contended()),
    }
}
