//! Static validation: what can be said about a cluster without looking at anything else.
//!
//! A list of checks in order; the first that fails is the answer. The same list is used by the frontend,
//! by preflight and by the command line. A check is pure.

mod identity;
mod network;
mod profiles;
mod tags;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::{
    api::{ApiVersion, changed_property},
    cloud_error::CloudError,
    resource_id::{CLUSTER_TYPE_NAME, ClusterId},
};

/// What the provider is, as far as validation depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Its location.
    pub location: String,
    /// The domain under which clusters get names.
    pub domain: String,
    /// Whether workers have the sizes for development.
    pub small_workers: bool,
}

/// What is validated: a cluster in the form of clients.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The version that the client speaks.
    pub api: &'a ApiVersion,
    /// The id in the path.
    pub id: &'a ClusterId,
    /// The cluster as it shall be.
    pub cluster: &'a Value,
    /// The cluster as it is; none if it is created.
    pub current: Option<&'a Value>,
    /// The provider.
    pub region: &'a Region,
    /// Whether the cluster is of the first architecture.
    pub first_architecture: bool,
}

type Checked = Result<(), CloudError>;

/// A check, by name, as `neap fleet validate` shows it.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// What is checked.
    pub name: &'static str,
    run: fn(&Input<'_>) -> Checked,
}

/// The checks, in order.
pub const CHECKS: &[Check] = &[
    check("resource id", resource),
    check("tags", tags::tags),
    check("identities", identity::identities),
    check("required profiles", required),
    check("provisioning state", provisioning_state),
    check("cluster profile", profiles::cluster),
    check("console profile", profiles::console),
    check("service principal", identity::service_principal),
    check("network profile", network::network),
    check("load balancer profile", network::load_balancer),
    check("master profile", profiles::master),
    check("API server profile", profiles::api_server),
    check("platform identities", identity::platform_identities),
    check("worker profiles", profiles::workers),
    check("ingress profiles", profiles::ingress),
    check("changes", changes),
];

const fn check(name: &'static str, run: fn(&Input<'_>) -> Checked) -> Check {
    Check { name, run }
}

/// The first error in `input`.
pub fn validate(input: &Input<'_>) -> Checked {
    CHECKS.iter().try_for_each(|check| (check.run)(input))
}

/// What came of each check, up to the first that failed.
pub fn report<'a>(input: &'a Input<'_>) -> impl Iterator<Item = (&'static str, Checked)> + use<'a> {
    let mut failed = false;
    CHECKS.iter().map_while(move |check| {
        let result = (!failed).then(|| (check.run)(input))?;
        failed = result.is_err();
        Some((check.name, result))
    })
}

impl Input<'_> {
    fn is_create(&self) -> bool {
        self.current.is_none()
    }

    fn properties(&self) -> &Value {
        &self.cluster["properties"]
    }

    /// A field of a profile, as text; empty if it is absent.
    fn text(&self, pointer: &str) -> &str {
        let found = self.properties().pointer(pointer);
        found.and_then(Value::as_str).unwrap_or_default()
    }

    fn has(&self, profile: &str) -> bool {
        self.properties().get(profile).is_some_and(Value::is_object)
    }

    fn list(&self, name: &str) -> &[Value] {
        let list = self.properties().get(name).and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }
}

fn resource(input: &Input<'_>) -> Checked {
    let text = |name: &str| input.cluster[name].as_str().unwrap_or_default();
    let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    let id = input.id.to_string();
    if !text("id").is_empty() && !same(text("id"), &id) {
        let message = format!(
            "The provided resource ID '{}' did not match the name in the Url '{id}'.",
            text("id")
        );
        return Err(CloudError::bad_request(
            "MismatchingResourceID",
            "id",
            message,
        ));
    }
    if !text("name").is_empty() && !same(text("name"), &input.id.name) {
        let message = format!(
            "The provided resource name '{}' did not match the name in the Url '{}'.",
            text("name"),
            input.id.name
        );
        return Err(CloudError::bad_request(
            "MismatchingResourceName",
            "name",
            message,
        ));
    }
    if !text("type").is_empty() && !same(text("type"), CLUSTER_TYPE_NAME) {
        let message = format!(
            "The provided resource type '{}' did not match the name in the Url '{CLUSTER_TYPE_NAME}'.",
            text("type")
        );
        return Err(CloudError::bad_request(
            "MismatchingResourceType",
            "type",
            message,
        ));
    }
    if !same(text("location"), &input.region.location) {
        let message = format!(
            "The provided location '{}' is invalid: this provider serves '{}'.",
            text("location"),
            input.region.location
        );
        return Err(CloudError::invalid("location", message));
    }
    Ok(())
}

fn required(input: &Input<'_>) -> Checked {
    let missing = input.api.required.iter().find(|name| !input.has(name));
    missing.map_or(Ok(()), |name| {
        let target = format!("properties.{name}");
        let message = format!("The field '{target}' is required.");
        Err(CloudError::invalid(&target, message))
    })
}

fn provisioning_state(input: &Input<'_>) -> Checked {
    let state = input.text("/provisioningState");
    let known = [
        "",
        "Creating",
        "Updating",
        "AdminUpdating",
        "Deleting",
        "Succeeded",
        "Failed",
        "Canceled",
    ];
    if known.contains(&state) {
        return Ok(());
    }
    let message = format!("The provided provisioning state '{state}' is invalid.");
    Err(CloudError::invalid("properties.provisioningState", message))
}

fn changes(input: &Input<'_>) -> Checked {
    let Some(current) = input.current else {
        return Ok(());
    };
    let fields = input.api.fields;
    changed_property(fields, current, input.cluster).map_or(Ok(()), |path| {
        let message = format!("Changing property '{path}' is not allowed.");
        Err(CloudError::bad_request(
            "PropertyChangeNotAllowed",
            &path,
            message,
        ))
    })
}

/// Refuses a value that is none of these.
fn one_of(value: &str, allowed: &[&str], target: &str, what: &str) -> Checked {
    if allowed.contains(&value) {
        return Ok(());
    }
    let known: Vec<_> = allowed.iter().filter(|it| !it.is_empty()).collect();
    let message = format!("The provided {what} '{value}' is invalid: it can be one of {known:?}.");
    Err(CloudError::invalid(target, message))
}
