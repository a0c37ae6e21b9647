//! Networks, and how the cluster reaches the world.

use serde_json::Value;

use super::{Checked, Input, one_of};
use crate::{
    cidr::{Cidr, CidrError},
    cloud_error::CloudError,
};

const NETWORK: &str = "properties.networkProfile";
/// Networks that OpenShift uses itself.
const RESERVED: [&str; 3] = ["100.64.0.0/16", "169.254.169.0/29", "100.88.0.0/16"];

/// Checked only if there is an ingress profile, as clients rely on: a PATCH of an old cluster may have
/// neither.
pub(super) fn network(input: &Input<'_>) -> Checked {
    if input.list("ingressProfiles").is_empty() {
        return Ok(());
    }
    for (field, longest) in [("podCidr", 18), ("serviceCidr", 22)] {
        cidr(input, field, longest)?;
    }
    let outbound = input.text("/networkProfile/outboundType");
    let allowed = ["", "Loadbalancer", "UserDefinedRouting"];
    let target = format!("{NETWORK}.outboundType");
    one_of(outbound, &allowed, &target, "outbound type")?;
    if outbound != "UserDefinedRouting" {
        return Ok(());
    }
    let api = input.text("/apiserverProfile/visibility");
    let ingress = input.text("/ingressProfiles/0/visibility");
    if api != "Private" || ingress != "Private" {
        let message = "The outbound type 'UserDefinedRouting' requires that API server and ingress have visibility 'Private'.";
        return Err(CloudError::invalid(&target, message));
    }
    let balancer = input
        .properties()
        .pointer("/networkProfile/loadBalancerProfile");
    if balancer.is_some_and(Value::is_object) {
        let message = "The outbound type 'UserDefinedRouting' excludes a load balancer profile.";
        let target = format!("{NETWORK}.loadBalancerProfile");
        return Err(CloudError::invalid(&target, message));
    }
    Ok(())
}

fn cidr(input: &Input<'_>, field: &str, longest: u8) -> Checked {
    let target = format!("{NETWORK}.{field}");
    let text = input.text(&format!("/networkProfile/{field}"));
    let cidr = Cidr::parse(text).map_err(|error| {
        let message = match error {
            CidrError::Malformed => format!("The provided network '{text}' is invalid."),
            CidrError::Ipv6 => format!("The provided network '{text}' is not of IPv4."),
        };
        CloudError::invalid(&target, message)
    })?;
    let reserved = RESERVED.iter().find(|reserved| {
        Cidr::parse(reserved).is_ok_and(|reserved| input.is_create() && reserved.overlaps(cidr))
    });
    if let Some(reserved) = reserved {
        let message = format!(
            "The network '{text}' overlaps {reserved}, which OpenShift uses itself: choose another."
        );
        return Err(CloudError::bad_request(
            "InvalidCIDRRange",
            "networkProfile",
            message,
        ));
    }
    if cidr.length > longest {
        let message =
            format!("The network '{text}' is too small: it needs a prefix of at most /{longest}.");
        return Err(CloudError::invalid(&target, message));
    }
    if cidr.network() != cidr.address {
        let message = format!(
            "The network '{text}' does not begin at its first address: write {}/{}.",
            cidr.network(),
            cidr.length
        );
        return Err(CloudError::bad_request(
            "InvalidNetworkAddress",
            &target,
            message,
        ));
    }
    Ok(())
}

pub(super) fn load_balancer(input: &Input<'_>) -> Checked {
    let Some(profile) = input
        .properties()
        .pointer("/networkProfile/loadBalancerProfile")
    else {
        return Ok(());
    };
    let target = format!("{NETWORK}.loadBalancerProfile");
    if let Some(count) = profile.pointer("/managedOutboundIps/count") {
        let count = count.as_i64().unwrap_or_default();
        let highest = if input.first_architecture { 1 } else { 20 };
        if !(1..=highest).contains(&count) {
            let message = format!(
                "The provided number of managed outbound IPs {count} is invalid: it can be 1 to {highest}."
            );
            let target = format!("{target}.managedOutboundIps.count");
            return Err(CloudError::invalid(&target, message));
        }
    }
    Ok(())
}
