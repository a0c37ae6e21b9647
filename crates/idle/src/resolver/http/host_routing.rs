//! Derives the service of a request on the shared port from its host.

use std::sync::Arc;

use http::{HeaderMap, Uri, header, header::HeaderName};
use neap_kit::key::Key;

use crate::resolver::routes::{Route, RouteTable};

/// How hosts name services.
#[derive(Debug, Clone)]
pub struct HostRouting {
    /// The header that names the service; without it, the host does.
    pub header: Option<HeaderName>,
    /// The domain of the cluster, such as `cluster.local`.
    pub domain: String,
}

impl Default for HostRouting {
    fn default() -> Self {
        Self {
            header: None,
            domain: "cluster.local".to_owned(),
        }
    }
}

impl HostRouting {
    /// The route of a request, if its host names a known service. The resolver does not guess: a host
    /// that only resembles a service's name belongs to another service.
    pub fn route(&self, table: &RouteTable, headers: &HeaderMap, uri: &Uri) -> Option<Arc<Route>> {
        let named = self.header.as_ref().and_then(|header| headers.get(header));
        let named = named.or_else(|| headers.get(header::HOST));
        let named = match named {
            Some(value) => value.to_str().ok()?,
            None => uri.authority()?.as_str(),
        };
        let (key, port) = self.parse_host(named)?;
        let service = table.service(&key)?;
        let port = service.port(port)?;
        Some(Arc::new(Route {
            service: service.clone(),
            port,
        }))
    }

    /// Parses `<service>.<namespace>`, with or without `.svc`, the domain, a port, a scheme and a path.
    pub(in crate::resolver) fn parse_host(&self, named: &str) -> Option<(Key, Option<u16>)> {
        let named = named.trim().to_ascii_lowercase();
        let named = named.strip_prefix("http://").unwrap_or(&named);
        let named = named.split('/').next()?;
        let (host, port) = match named.split_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (named, None),
        };
        let host = host.strip_suffix('.').unwrap_or(host);
        let domain = format!(".svc.{}", self.domain);
        let host = (host.strip_suffix(&domain))
            .or_else(|| host.strip_suffix(".svc"))
            .unwrap_or(host);
        let (service, namespace) = host.split_once('.')?;
        let is_label = |text: &str| !text.is_empty() && !text.contains('.');
        let both = is_label(service) && is_label(namespace);
        both.then(|| (Key::new(namespace, service), port))
    }
}
