//! The names that a pod finds in its hosts file. Pure.

use std::fmt::Write;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;

use super::recipe::host_name;

/// The end of every long name.
const DOMAIN: &str = "cluster.local";

/// The hosts file of `pod`: itself, and every service in all the names by which its namespace
/// knows it.
pub(super) fn hosts<'a>(pod: &Pod, services: impl Iterator<Item = &'a Service>) -> String {
    let mut text = String::from("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n");
    let own = pod
        .status
        .as_ref()
        .and_then(|status| status.pod_ip.as_deref());
    if let Some(address) = own {
        let _ = writeln!(text, "{address}\t{}", host_name(pod));
    }
    let here = pod.namespace().unwrap_or_default();
    for service in services {
        let address = service
            .spec
            .as_ref()
            .and_then(|spec| spec.cluster_ip.as_deref());
        if let Some(address) = address.filter(|address| !matches!(*address, "" | "None")) {
            let _ = writeln!(text, "{address}\t{}", names(service, &here));
        }
    }
    text
}

/// From the longest to the shortest; the shortest only for its own namespace.
fn names(service: &Service, here: &str) -> String {
    let (name, namespace) = (service.name_any(), service.namespace().unwrap_or_default());
    let long = format!("{name}.{namespace}.svc");
    let mut names = format!("{long}.{DOMAIN} {long} {name}.{namespace}");
    if namespace == here {
        names = format!("{names} {name}");
    }
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_has_all_its_names_and_the_short_one_at_home() {
        let pod = json!({"metadata": {"name": "p", "namespace": "shop"}, "status": {"podIP": "127.1.1.1"}});
        let service = |namespace: &str, address: &str| -> Service {
            let value = json!({"metadata": {"name": "db", "namespace": namespace}, "spec": {"clusterIP": address}});
            serde_json::from_value(value).unwrap()
        };
        let services = [
            service("shop", "127.1.128.1"),
            service("other", "127.1.128.2"),
            service("shop", "None"),
        ];
        let text = hosts(&serde_json::from_value(pod).unwrap(), services.iter());
        let lines: Vec<_> = text.lines().skip(2).collect();
        let expected = [
            "127.1.1.1\tp",
            "127.1.128.1\tdb.shop.svc.cluster.local db.shop.svc db.shop db",
            "127.1.128.2\tdb.other.svc.cluster.local db.other.svc db.other",
        ];
        assert_eq!(lines, expected);
    }
}
