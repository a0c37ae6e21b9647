//! The profiles of cluster, machines, API server and ingress.

use std::net::Ipv4Addr;

use serde_json::Value;

use super::{Checked, Input, one_of};
use crate::{
    cloud_error::CloudError,
    resource_id::{SubnetId, disk_encryption_set, resource_group},
    vm_sizes::{self, Role, SizeError},
};

const TOGGLE: [&str; 3] = ["", "Enabled", "Disabled"];

pub(super) fn cluster(input: &Input<'_>) -> Checked {
    let target = |field: &str| format!("properties.clusterProfile.{field}");
    let pull_secret = input.text("/clusterProfile/pullSecret");
    if !pull_secret.is_empty() && !is_docker_config(pull_secret) {
        let message = "The provided pull secret is invalid: it must be the JSON of a docker config, with the member 'auths'.";
        return Err(CloudError::invalid(&target("pullSecret"), message));
    }
    domain(input, &target("domain"))?;
    let group = input.text("/clusterProfile/resourceGroupId");
    let Some((subscription, name)) = resource_group(group) else {
        let message = format!("The provided resource group '{group}' is invalid.");
        return Err(CloudError::invalid(&target("resourceGroupId"), message));
    };
    if subscription != input.id.subscription {
        let message = format!(
            "The provided resource group '{group}' is invalid: it must be in the same subscription as the cluster."
        );
        return Err(CloudError::invalid(&target("resourceGroupId"), message));
    }
    if name.eq_ignore_ascii_case(&input.id.group) {
        let message = format!(
            "The provided resource group '{group}' is invalid: it must be another than that of the cluster object."
        );
        return Err(CloudError::invalid(&target("resourceGroupId"), message));
    }
    let fips = input.text("/clusterProfile/fipsValidatedModules");
    let fips_target = target("fipsValidatedModules");
    one_of(fips, &TOGGLE, &fips_target, "value of fipsValidatedModules")
}

fn is_docker_config(text: &str) -> bool {
    let parsed: Result<Value, _> = serde_json::from_str(text);
    parsed.is_ok_and(|config| config.get("auths").is_some_and(Value::is_object))
}

fn domain(input: &Input<'_>, target: &str) -> Checked {
    let domain = input.text("/clusterProfile/domain");
    let refused = |why: &str| {
        let message = format!("The provided domain '{domain}' is invalid: {why}.");
        Err(CloudError::invalid(target, message))
    };
    let is_label = |label: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        (1..=63).contains(&label.len())
            && label.chars().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if domain.len() > 253 || !domain.split('.').all(is_label) {
        return refused("it must be DNS labels of lower-case letters, digits and '-'");
    }
    let first = domain.split('.').next().unwrap_or_default();
    if input.is_create()
        && (first.len() < 2 || !first.starts_with(|c: char| c.is_ascii_lowercase()))
    {
        return refused(
            "its first label must begin with a letter and have at least two characters",
        );
    }
    let own = &input.region.domain;
    if let Some(prefix) = domain.strip_suffix(own.as_str()) {
        let Some(prefix) = prefix.strip_suffix('.') else {
            return refused("it is the domain of the provider");
        };
        if prefix.contains('.') {
            return refused("below the domain of the provider it must have one label only");
        }
        return Ok(());
    }
    let parent = own.split_once('.').map(|(_, parent)| parent);
    if parent.is_some_and(|parent| domain.ends_with(&format!(".{parent}"))) {
        return refused("it belongs to another region of the provider");
    }
    Ok(())
}

pub(super) fn console(input: &Input<'_>) -> Checked {
    url(
        input,
        "/consoleProfile/url",
        "properties.consoleProfile.url",
    )
}

fn url(input: &Input<'_>, pointer: &str, target: &str) -> Checked {
    let url = input.text(pointer);
    let fits = url.is_empty() || url.parse::<http::Uri>().is_ok_and(|it| it.host().is_some());
    if fits {
        return Ok(());
    }
    Err(CloudError::invalid(
        target,
        format!("The provided URL '{url}' is invalid."),
    ))
}

pub(super) fn master(input: &Input<'_>) -> Checked {
    let profile = &input.properties()["masterProfile"];
    machine(input, profile, "properties.masterProfile", Role::Master)
}

/// What master and workers have in common.
fn machine(input: &Input<'_>, profile: &Value, path: &str, role: Role) -> Checked {
    let text = |name: &str| profile[name].as_str().unwrap_or_default();
    let target = |name: &str| format!("{path}.{name}");
    let version = input.text("/clusterProfile/version");
    let size = text("vmSize");
    let small = input.region.small_workers;
    match vm_sizes::check(size, role, version, small) {
        Ok(()) => {}
        Err(SizeError::Unsupported) => {
            let message = format!("The provided VM size '{size}' is not supported here.");
            return Err(CloudError::invalid(&target("vmSize"), message));
        }
        Err(SizeError::NeedsVersion(minor)) => {
            let message =
                format!("The provided VM size '{size}' needs OpenShift 4.{minor} or later.");
            return Err(CloudError::invalid(&target("vmSize"), message));
        }
    }
    let subnet = text("subnetId");
    let Some(parsed) = SubnetId::parse(subnet) else {
        let message = format!("The provided subnet '{subnet}' is invalid.");
        return Err(CloudError::invalid(&target("subnetId"), message));
    };
    if parsed.subscription != input.id.subscription {
        let message = format!(
            "The provided subnet '{subnet}' is invalid: it must be in the same subscription as the cluster."
        );
        return Err(CloudError::invalid(&target("subnetId"), message));
    }
    let encryption = text("encryptionAtHost");
    one_of(
        encryption,
        &TOGGLE,
        &target("encryptionAtHost"),
        "value of encryptionAtHost",
    )?;
    let set = text("diskEncryptionSetId");
    if set.is_empty() {
        return Ok(());
    }
    match disk_encryption_set(set) {
        Some(subscription) if subscription == input.id.subscription => Ok(()),
        found => {
            let why = if found.is_some() {
                ": it must be in the same subscription as the cluster"
            } else {
                ""
            };
            let message = format!("The provided disk encryption set '{set}' is invalid{why}.");
            Err(CloudError::invalid(&target("diskEncryptionSetId"), message))
        }
    }
}

pub(super) fn api_server(input: &Input<'_>) -> Checked {
    let path = "properties.apiserverProfile";
    let visibility = input.text("/apiserverProfile/visibility");
    one_of(
        visibility,
        &["Public", "Private"],
        &format!("{path}.visibility"),
        "visibility",
    )?;
    url(input, "/apiserverProfile/url", &format!("{path}.url"))?;
    address(input.text("/apiserverProfile/ip"), &format!("{path}.ip"))
}

fn address(text: &str, target: &str) -> Checked {
    if text.is_empty() || text.parse::<Ipv4Addr>().is_ok() {
        return Ok(());
    }
    Err(CloudError::invalid(
        target,
        format!("The provided IP '{text}' is not of IPv4."),
    ))
}

pub(super) fn workers(input: &Input<'_>) -> Checked {
    if !input.is_create() {
        return Ok(());
    }
    let path = "properties.workerProfiles";
    let [worker] = input.list("workerProfiles") else {
        let message = "There should be exactly one worker profile.";
        return Err(CloudError::invalid(path, message));
    };
    let path = format!("{path}['{}']", worker["name"].as_str().unwrap_or_default());
    let target = |name: &str| format!("{path}.{name}");
    let name = worker["name"].as_str().unwrap_or_default();
    one_of(name, &["worker"], &target("name"), "worker name")?;
    machine(input, worker, &path, Role::Worker)?;
    let disk = worker["diskSizeGB"].as_i64().unwrap_or_default();
    if disk < 128 {
        let message = format!("The provided disk size {disk} is invalid: it must be 128 or more.");
        return Err(CloudError::invalid(&target("diskSizeGB"), message));
    }
    let count = worker["count"].as_i64().unwrap_or_default();
    if !(2..=50).contains(&count) {
        let message = format!("The provided worker count {count} is invalid: it can be 2 to 50.");
        return Err(CloudError::invalid(&target("count"), message));
    }
    let (of_master, of_worker) = (
        input.text("/masterProfile/subnetId"),
        worker["subnetId"].as_str().unwrap_or_default(),
    );
    let network = |subnet| SubnetId::parse(subnet).map(|it| it.network);
    if network(of_master) != network(of_worker) {
        let message = format!(
            "The provided subnet '{of_worker}' is invalid: it must be in the same virtual network as that of the master."
        );
        return Err(CloudError::invalid(&target("subnetId"), message));
    }
    if of_master.eq_ignore_ascii_case(of_worker) {
        let message = format!(
            "The provided subnet '{of_worker}' is invalid: it must be another than that of the master."
        );
        return Err(CloudError::invalid(&target("subnetId"), message));
    }
    let set = worker["diskEncryptionSetId"].as_str().unwrap_or_default();
    if !set.eq_ignore_ascii_case(input.text("/masterProfile/diskEncryptionSetId")) {
        let message = "The disk encryption set of the workers must be that of the master.";
        return Err(CloudError::invalid(&target("diskEncryptionSetId"), message));
    }
    Ok(())
}

pub(super) fn ingress(input: &Input<'_>) -> Checked {
    if !input.is_create() {
        return Ok(());
    }
    let path = "properties.ingressProfiles";
    let [ingress] = input.list("ingressProfiles") else {
        let message = "There should be exactly one ingress profile.";
        return Err(CloudError::invalid(path, message));
    };
    let name = ingress["name"].as_str().unwrap_or_default();
    let path = format!("{path}['{name}']");
    one_of(name, &["default"], &format!("{path}.name"), "ingress name")?;
    let visibility = ingress["visibility"].as_str().unwrap_or_default();
    one_of(
        visibility,
        &["Public", "Private"],
        &format!("{path}.visibility"),
        "visibility",
    )?;
    let ip = ingress["ip"].as_str().unwrap_or_default();
    address(ip, &format!("{path}.ip"))
}
