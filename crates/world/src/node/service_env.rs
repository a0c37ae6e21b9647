//! The environment variables that describe Services. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Service, ServicePort};
use kube::ResourceExt;

/// Variables with the address and ports of every Service of the pod's namespace, unless the pod
/// disables service links; those of the API server in any case.
pub(super) fn service_variables<'a>(
    pod: &Pod,
    services: impl Iterator<Item = &'a Service>,
) -> BTreeMap<String, String> {
    let here = pod.namespace().unwrap_or_default();
    let enabled = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.enable_service_links)
        .unwrap_or(true);
    let (mut of_api, mut all) = (BTreeMap::new(), BTreeMap::new());
    for service in services {
        let namespace = service.namespace().unwrap_or_default();
        if namespace == "default" && service.name_any() == "kubernetes" {
            of_api.extend(variables(service));
        } else if enabled && namespace == here {
            all.extend(variables(service));
        }
    }
    // A Service of the same name in the pod's namespace does not hide the API server.
    all.extend(of_api);
    all
}

fn variables(service: &Service) -> Vec<(String, String)> {
    let spec = service.spec.clone().unwrap_or_default();
    let address = spec
        .cluster_ip
        .filter(|address| !matches!(address.as_str(), "" | "None"));
    let ports = spec.ports.unwrap_or_default();
    let (Some(address), Some(first)) = (address, ports.first()) else {
        return Vec::new();
    };
    let name = variable_name(&service.name_any());
    let mut all = vec![
        (format!("{name}_SERVICE_HOST"), address.clone()),
        (format!("{name}_SERVICE_PORT"), first.port.to_string()),
        (format!("{name}_PORT"), url(first, &address)),
    ];
    for port in &ports {
        if let Some(named) = port.name.as_deref().filter(|named| !named.is_empty()) {
            let variable = format!("{name}_SERVICE_PORT_{}", variable_name(named));
            all.push((variable, port.port.to_string()));
        }
        let protocol = protocol(port);
        let one = format!("{name}_PORT_{}_{protocol}", port.port);
        all.push((format!("{one}_PROTO"), protocol.to_lowercase()));
        all.push((format!("{one}_PORT"), port.port.to_string()));
        all.push((format!("{one}_ADDR"), address.clone()));
        all.push((one, url(port, &address)));
    }
    all
}

fn protocol(port: &ServicePort) -> &str {
    port.protocol.as_deref().unwrap_or("TCP")
}

fn url(port: &ServicePort, address: &str) -> String {
    format!(
        "{}://{address}:{}",
        protocol(port).to_lowercase(),
        port.port
    )
}

/// A Service name as part of a variable name.
fn variable_name(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn service(namespace: &str, name: &str, address: &str, ports: &Value) -> Service {
        let value = json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterIP": address, "ports": ports},
        });
        serde_json::from_value(value).unwrap()
    }

    fn of(enabled: Option<bool>) -> BTreeMap<String, String> {
        let services = [
            service(
                "default",
                "kubernetes",
                "127.1.128.1",
                &json!([{"name": "https", "port": 443}]),
            ),
            service(
                "shop",
                "my-db",
                "127.1.128.2",
                &json!([{"port": 5432}, {"name": "top", "port": 53, "protocol": "UDP"}]),
            ),
            service("shop", "headless", "None", &json!([{"port": 1}])),
            service("other", "far", "127.1.128.3", &json!([{"port": 1}])),
        ];
        let pod = json!({
            "metadata": {"name": "p", "namespace": "shop"},
            "spec": {"containers": [], "enableServiceLinks": enabled},
        });
        service_variables(&serde_json::from_value(pod).unwrap(), services.iter())
    }

    #[test]
    fn services_of_the_namespace_and_the_api_have_variables() {
        let all = of(None);
        let expected = [
            ("KUBERNETES_PORT", "tcp://127.1.128.1:443"),
            ("KUBERNETES_PORT_443_TCP", "tcp://127.1.128.1:443"),
            ("KUBERNETES_PORT_443_TCP_ADDR", "127.1.128.1"),
            ("KUBERNETES_PORT_443_TCP_PORT", "443"),
            ("KUBERNETES_PORT_443_TCP_PROTO", "tcp"),
            ("KUBERNETES_SERVICE_HOST", "127.1.128.1"),
            ("KUBERNETES_SERVICE_PORT", "443"),
            ("KUBERNETES_SERVICE_PORT_HTTPS", "443"),
            ("MY_DB_PORT", "tcp://127.1.128.2:5432"),
            ("MY_DB_PORT_53_UDP", "udp://127.1.128.2:53"),
            ("MY_DB_PORT_53_UDP_ADDR", "127.1.128.2"),
            ("MY_DB_PORT_53_UDP_PORT", "53"),
            ("MY_DB_PORT_53_UDP_PROTO", "udp"),
            ("MY_DB_PORT_5432_TCP", "tcp://127.1.128.2:5432"),
            ("MY_DB_PORT_5432_TCP_ADDR", "127.1.128.2"),
            ("MY_DB_PORT_5432_TCP_PORT", "5432"),
            ("MY_DB_PORT_5432_TCP_PROTO", "tcp"),
            ("MY_DB_SERVICE_HOST", "127.1.128.2"),
            ("MY_DB_SERVICE_PORT", "5432"),
            ("MY_DB_SERVICE_PORT_TOP", "53"),
        ];
        let all: Vec<_> = all
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn a_pod_without_service_links_still_finds_the_api() {
        let all = of(Some(false));
        assert!(
            all.keys().all(|key| key.starts_with("KUBERNETES_")),
            "{all:?}"
        );
        assert_eq!(all["KUBERNETES_SERVICE_HOST"], "127.1.128.1");
    }
}
