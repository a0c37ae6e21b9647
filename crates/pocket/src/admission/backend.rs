//! Finds the address of a webhook behind a Service: one of its ready endpoints. Without a data
//! plane, a Service's own address leads nowhere.

use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

/// The address behind `port` of a Service, or why there is none. `slices` and `endpoints` are those
/// of the Service; EndpointSlices take precedence over Endpoints.
pub fn endpoint(
    name: &str,
    service: Option<&Value>,
    port: u16,
    slices: &[Value],
    endpoints: Option<&Value>,
) -> Result<SocketAddr, String> {
    let service = service.ok_or_else(|| format!("service \"{name}\" not found"))?;
    let ports = items(&service["spec"], "ports");
    let found = ports.iter().find(|entry| entry["port"] == port);
    let entry =
        found.ok_or_else(|| format!("no service port {port} found for service \"{name}\""))?;
    let label = entry["name"].as_str().unwrap_or_default();
    let mut addresses = slices.iter().flat_map(|slice| in_slice(slice, label));
    let mut older = endpoints
        .into_iter()
        .flat_map(|all| in_endpoints(all, label));
    addresses
        .next()
        .or_else(|| older.next())
        .ok_or_else(|| format!("no endpoints available for service \"{name}\""))
}

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn port_called(ports: &[Value], label: &str) -> Option<u16> {
    let found = ports
        .iter()
        .find(|port| port["name"].as_str().unwrap_or_default() == label)?;
    u16::try_from(found["port"].as_u64()?).ok()
}

fn in_slice(slice: &Value, label: &str) -> Vec<SocketAddr> {
    let Some(port) = port_called(items(slice, "ports"), label) else {
        return Vec::new();
    };
    let ready = |endpoint: &&Value| endpoint["conditions"]["ready"] != false;
    let endpoints = items(slice, "endpoints").iter().filter(ready);
    endpoints
        .flat_map(|endpoint| items(endpoint, "addresses"))
        .filter_map(|address| Some(SocketAddr::new(ip(address)?, port)))
        .collect()
}

fn in_endpoints(endpoints: &Value, label: &str) -> Vec<SocketAddr> {
    let subsets = items(endpoints, "subsets").iter();
    subsets
        .filter_map(|subset| Some((subset, port_called(items(subset, "ports"), label)?)))
        .flat_map(|(subset, port)| {
            let addresses = items(subset, "addresses").iter();
            addresses.filter_map(move |address| Some(SocketAddr::new(ip(&address["ip"])?, port)))
        })
        .collect()
}

fn ip(value: &Value) -> Option<IpAddr> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_leads_to_a_ready_endpoint() {
        let service = json!({"spec": {"ports": [{"name": "web", "port": 80}, {"name": "hook", "port": 443}]}});
        let slice = json!({
            "ports": [{"name": "web", "port": 8080}, {"name": "hook", "port": 9443}],
            "endpoints": [
                {"addresses": ["10.1.0.1"], "conditions": {"ready": false}},
                {"addresses": ["10.1.0.2"], "conditions": {"ready": true}},
            ],
        });
        let older = json!({"subsets": [{"addresses": [{"ip": "10.1.0.3"}], "ports": [{"name": "hook", "port": 9444}]}]});
        let ask = |service, port, slices: &[Value], older| {
            endpoint("hook", service, port, slices, older).map(|address| address.to_string())
        };
        let slices = std::slice::from_ref(&slice);
        assert_eq!(
            ask(Some(&service), 443, slices, Some(&older)),
            Ok("10.1.0.2:9443".into())
        );
        assert_eq!(
            ask(Some(&service), 443, &[], Some(&older)),
            Ok("10.1.0.3:9444".into())
        );
        assert_eq!(
            ask(None, 443, slices, None),
            Err("service \"hook\" not found".into())
        );
        assert_eq!(
            ask(Some(&service), 444, slices, None),
            Err("no service port 444 found for service \"hook\"".into())
        );
        assert_eq!(
            ask(Some(&service), 443, &[], None),
            Err("no endpoints available for service \"hook\"".into())
        );
    }
}
