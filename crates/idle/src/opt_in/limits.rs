//! What annotations may ask for. A right on Services or workloads is not one on ElastiServices: what goes
//! beyond these limits needs an ElastiService, whose creation the cluster's RBAC controls.

use http::Uri;

use crate::trigger::{Origin, Origins};

/// The largest number of replicas that an annotation may ask for, unless the operator's settings have
/// another.
const DEFAULT_MAX_REPLICAS: i32 = 10;

/// What the operator's settings allow in annotations.
#[derive(Debug, Clone, PartialEq)]
pub struct OptInLimits {
    /// The largest value of `min-replicas`.
    pub max_replicas: i32,
    /// The servers that `server-address` may name besides the operator's default.
    pub servers: Origins,
    /// The operator's default server.
    pub default_server: Option<String>,
}

impl Default for OptInLimits {
    fn default() -> Self {
        Self {
            max_replicas: DEFAULT_MAX_REPLICAS,
            servers: Origins::default(),
            default_server: None,
        }
    }
}

impl OptInLimits {
    /// Whether a trigger may name this server. An address that is none is reported by the trigger.
    pub fn allows_server(&self, address: &str) -> bool {
        let origin = |address: &str| Origin::of(&address.trim().parse::<Uri>().ok()?).ok();
        let default = self.default_server.as_deref().and_then(origin);
        match origin(address) {
            Some(named) => default.as_ref() == Some(&named) || self.servers.include(&named),
            None => self.servers == Origins::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_default_server_and_listed_ones_are_allowed() {
        let limits = OptInLimits {
            servers: "https://metrics.example:9090".parse().unwrap(),
            default_server: Some("http://prometheus.example:9090/tenant".to_owned()),
            ..OptInLimits::default()
        };
        for (address, allowed) in [
            ("http://prometheus.example:9090", true),
            ("http://PROMETHEUS.example:9090/other", true),
            ("https://metrics.example:9090", true),
            ("http://metrics.example:9090", false),
            ("http://prometheus.example", false),
            ("http://169.254.169.254", false),
            ("http://prometheus.example:9090@attacker.example", false),
            ("prometheus.example:9090", false),
        ] {
            assert_eq!(limits.allows_server(address), allowed, "{address}");
        }
        let nothing = OptInLimits::default();
        assert!(!nothing.allows_server("http://prometheus.example:9090"));
        let all = OptInLimits {
            servers: "*".parse().unwrap(),
            ..OptInLimits::default()
        };
        assert!(all.allows_server("http://anywhere.example"));
    }
}
