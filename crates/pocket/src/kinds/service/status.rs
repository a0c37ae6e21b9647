//! Validation of the status of a Service: the addresses of its load balancer.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::{
    kinds::{
        address,
        fields::{each_mut, fill, is_set, list, text},
        names,
        path::Path,
    },
    status::Problems,
};

const INGRESS: Path<'_> = Path::At("status.loadBalancer.ingress");

/// Sets the default `ipMode` of an address: `VIP`.
pub(super) fn default(service: &mut Value) {
    let balanced = super::is_balanced(&service["spec"]);
    let Some(status) = service.get_mut("status") else {
        return;
    };
    fill(status, "loadBalancer", json!({}));
    let Some(balancer) = status.get_mut("loadBalancer") else {
        return;
    };
    for ingress in each_mut(balancer, "ingress").filter(|_| balanced) {
        if !text(ingress, "ip").is_empty() {
            fill(ingress, "ipMode", "VIP");
        }
    }
}

pub(super) fn validate(new: &Value, _old: &Value, problems: &mut Problems) {
    let ingress = list(&new["status"]["loadBalancer"], "ingress");
    if !ingress.is_empty() && text(&new["spec"], "type") != "LoadBalancer" {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        problems.forbidden(INGRESS, detail);
        return;
    }
    for (index, entry) in ingress.iter().enumerate() {
        validate_one(entry, &INGRESS.index(index), problems);
    }
}

fn validate_one(entry: &Value, path: &Path<'_>, problems: &mut Problems) {
    let (ip, name) = (text(entry, "ip"), text(entry, "hostname"));
    if !ip.is_empty() {
        address::check_form(ip, &path.field("ip"), problems);
    }
    if is_set(entry, "ipMode") {
        let mode = text(entry, "ipMode");
        if ip.is_empty() {
            let detail = "may not be specified when `ip` is not set";
            problems.forbidden(path.field("ipMode"), detail);
        } else if !matches!(mode, "VIP" | "Proxy") {
            problems.not_supported(path.field("ipMode"), mode, &["Proxy", "VIP"]);
        }
    } else if !ip.is_empty() {
        problems.required(path.field("ipMode"), "must be specified when `ip` is set");
    }
    if name.is_empty() {
        return;
    }
    let path = path.field("hostname");
    for complaint in names::subdomain(name) {
        problems.invalid(path, name, complaint);
    }
    if name.parse::<IpAddr>().is_ok() {
        problems.invalid(path, name, "must be a DNS name, not an IP address");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::texts;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "cases read better with the literal in place"
    )]
    fn errors(kind: &str, ingress: Value) -> Vec<String> {
        let service =
            json!({"spec": {"type": kind}, "status": {"loadBalancer": {"ingress": ingress}}});
        let mut problems = Problems::new();
        validate(&service, &service, &mut problems);
        texts(&problems)
    }

    #[test]
    fn only_a_balancer_has_an_ingress() {
        assert_eq!(errors("ClusterIP", json!([{"ip": "1.2.3.4"}])).len(), 1);
        assert_eq!(errors("ClusterIP", json!([])), [""; 0]);
        assert_eq!(
            errors("LoadBalancer", json!([{"ip": "1.2.3.4", "ipMode": "VIP"}])),
            [""; 0]
        );
    }

    #[test]
    fn an_ingress_is_an_address_or_a_name() {
        let errors = errors(
            "LoadBalancer",
            json!([{"ip": "x", "ipMode": "Z"}, {"ipMode": "VIP"}, {"hostname": "1.2.3.4"}]),
        );
        assert_eq!(
            errors,
            [
                "status.loadBalancer.ingress[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                "status.loadBalancer.ingress[0].ipMode: Unsupported value: \"Z\": supported values: \"Proxy\", \"VIP\"",
                "status.loadBalancer.ingress[1].ipMode: Forbidden: may not be specified when `ip` is not set",
                "status.loadBalancer.ingress[2].hostname: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address",
            ]
        );
    }
}
