//! The names that a cluster's DNS gives to Services, for an operator that runs outside of pods: where the
//! machine's resolver does not know them, triggers could name no server in the cluster.

use std::{fmt, net::IpAddr};

use k8s_openapi::api::core::v1::Service;
use neap_kit::{key::Key, watch::Cache};

use crate::trigger::KnownNames;

/// The names of Services in a watch.
pub(super) struct ClusterNames {
    pub(super) services: Cache<Service>,
    /// The domain of the cluster, such as `cluster.local`.
    pub(super) domain: String,
}

impl KnownNames for ClusterNames {
    fn address(&self, host: &str) -> Option<IpAddr> {
        let service = self.services.get(&service_of(host, &self.domain)?)?;
        service.spec.as_ref()?.cluster_ip.as_deref()?.parse().ok()
    }
}

/// The Service that a name refers to: `NAME.NAMESPACE`, `NAME.NAMESPACE.svc`, or the same with the domain.
fn service_of(host: &str, domain: &str) -> Option<Key> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let bare = host.strip_suffix(&domain.to_ascii_lowercase());
    let bare = bare.and_then(|bare| bare.strip_suffix(".svc."));
    let bare = bare.or_else(|| host.strip_suffix(".svc")).unwrap_or(&host);
    let (name, namespace) = bare.split_once('.')?;
    let is_whole = !name.is_empty() && !namespace.is_empty() && !namespace.contains('.');
    is_whole.then(|| Key::new(namespace, name))
}

impl fmt::Debug for ClusterNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterNames")
            .field("domain", &self.domain)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_cluster_refers_to_a_service() {
        for (host, service) in [
            (
                "prometheus-operated.monitoring.svc.cluster.local",
                Some("monitoring/prometheus-operated"),
            ),
            (
                "Prometheus.Monitoring.svc.cluster.local.",
                Some("monitoring/prometheus"),
            ),
            ("prometheus.monitoring.svc", Some("monitoring/prometheus")),
            ("prometheus.monitoring", Some("monitoring/prometheus")),
            ("prometheus", None),
            ("pod-0.prometheus.monitoring.svc.cluster.local", None),
            ("prometheus.monitoring.example.com", None),
            (".monitoring.svc", None),
        ] {
            let found = service_of(host, "cluster.local").map(|key| key.to_string());
            assert_eq!(found.as_deref(), service, "{host}");
        }
    }
}
