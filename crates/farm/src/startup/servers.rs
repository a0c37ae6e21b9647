//! Servers, authentication, authorizers, expressions and key pairs.

use super::{Node, Rules, expressions};
use crate::{
    api::ports,
    schema::{Finding, Program, duration},
};

/// An address on which a server listens, such as `:8980`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddress {
    /// Where it is in the configuration.
    pub path: String,
    /// The host; empty for all addresses.
    host: String,
    port: String,
}

impl ListenAddress {
    /// Whether only one of both servers can listen.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let is_any = |host: &str| ["", "0.0.0.0", "[::]"].contains(&host);
        let overlap = self.host == other.host || is_any(&self.host) || is_any(&other.host);
        // Port 0 is another one for each server.
        self.port == other.port && self.port != "0" && overlap
    }

    /// Whether the kubelet reaches it for its probes. In a rendered address the port ends an expression.
    fn is_probed(&self) -> bool {
        let local = ["localhost", "127.0.0.1", "[::1]"];
        let port = self.port.trim_end_matches('\'');
        port == ports::DIAGNOSTICS.to_string() && !local.contains(&&*self.host)
    }
}

/// All addresses on which the servers of a program listen.
pub(super) fn listen_addresses(node: &Node<'_>) -> Vec<ListenAddress> {
    let is_list = node.path.ends_with("listenAddresses") || node.path.ends_with("listen_addresses");
    if is_list {
        let addresses = node.items().into_iter().filter_map(|item| {
            let (host, port) = item.text().rsplit_once(':')?;
            Some(ListenAddress {
                host: host.to_owned(),
                port: port.to_owned(),
                path: item.path,
            })
        });
        return addresses.collect();
    }
    let inner = node.items().into_iter().chain(node.fields());
    inner.flat_map(|inner| listen_addresses(&inner)).collect()
}

impl Rules {
    pub(super) fn grpc_servers(&mut self, servers: &Node<'_>) {
        if servers.items().is_empty() {
            self.add(servers, "has to list at least one server");
        }
        for server in servers.items() {
            let addresses = server.get("listenAddresses");
            let paths = server.get("listenPaths");
            if addresses.items().is_empty() && paths.items().is_empty() {
                self.add(&server, "has to listen on an address or a path");
            }
            let policy = server.get("authenticationPolicy");
            self.authentication(&policy);
            self.peer_credentials(&server, &policy);
            let mut served = std::collections::BTreeSet::new();
            for relay in server.get("relays").items() {
                for service in relay.get("services").items() {
                    if !served.insert(service.text()) {
                        let problem = format!("relays {:?} a second time", service.text());
                        self.add(&service, problem);
                    }
                }
            }
        }
    }

    pub(super) fn http_servers(&mut self, servers: &Node<'_>) {
        for server in servers.items() {
            if server.get("listenAddresses").items().is_empty() {
                self.add(&server, "has to listen on an address");
            }
            self.authentication(&server.get("authenticationPolicy"));
        }
    }

    fn authentication(&mut self, policy: &Node<'_>) {
        if policy.fields().is_empty() {
            let problem = "authentication policy not specified: \
                 write { allow: {} } to accept every caller";
            return self.add(policy, problem);
        }
        for field in policy.fields() {
            for inner in field.get("policies").items() {
                self.authentication(&inner);
            }
        }
        let oidc = policy.get("oidc");
        if oidc.is_present() {
            self.require(&oidc, &["cookieSeed"]);
            let info = oidc.get("userInfoEndpointUrl").is_present();
            if !info && oidc.get("useIdTokenClaims").is_absent() {
                self.add(&oidc, "needs userInfoEndpointUrl or useIdTokenClaims");
            }
        }
    }

    /// The credentials of a local process are known on a Unix socket without encryption.
    fn peer_credentials(&mut self, server: &Node<'_>, policy: &Node<'_>) {
        let peer = policy.get("peerCredentialsJmespathExpression");
        let encryption = ["tls", "alts"].map(|field| server.get(field));
        if let Some(encryption) = encryption.iter().find(|it| it.is_present())
            && peer.is_present()
        {
            let problem = format!("excludes {}", encryption.path);
            self.add(&peer, problem);
        }
        for field in policy.fields() {
            for inner in field.get("policies").items() {
                self.peer_credentials(server, &inner);
            }
        }
    }

    pub(super) fn authorizers(&mut self, at: &Node<'_>, names: &[&str]) {
        for name in names {
            let authorizer = at.get(name);
            if authorizer.fields().is_empty() {
                let problem = "authorizer not specified: write { allow: {} } to allow every caller";
                self.add(&authorizer, problem);
            }
        }
    }

    pub(super) fn global(&mut self, program: Program, global: &Node<'_>) {
        let diagnostics = global.get("diagnosticsHttpServer");
        if diagnostics.is_present() {
            self.http_servers(&diagnostics.get("httpServers"));
        }
        // The runner is probed only if its configuration is rendered.
        if program != Program::Runner {
            self.probed(&diagnostics);
        }
    }

    /// The kubelet asks for health in plain text at the address of the pod.
    fn probed(&mut self, diagnostics: &Node<'_>) {
        let servers = diagnostics.get("httpServers").items();
        let mut servers = servers.iter().filter(|it| it.get("tls").is_absent());
        let is_probed = servers.any(|server| {
            let addresses = listen_addresses(server);
            addresses.iter().any(ListenAddress::is_probed)
        });
        if !is_probed {
            let problem = format!(
                "the pod is restarted until it answers at port {}: list a server without tls that \
                 listens on \":{0}\"",
                ports::DIAGNOSTICS
            );
            self.add(&diagnostics.get("httpServers"), problem);
        }
    }

    /// No two servers of a program listen on one port.
    pub(super) fn ports(&mut self, root: &Node<'_>) {
        let all = listen_addresses(root);
        for (at, address) in all.iter().enumerate() {
            let mut before = all[..at].iter();
            if let Some(other) = before.find(|other| other.conflicts_with(address)) {
                let problem = format!("is the port of {} too", other.path);
                self.findings.push(Finding::new(&*address.path, problem));
            }
        }
    }

    /// Rules for messages that occur at many places.
    pub(super) fn everywhere(&mut self, node: &Node<'_>) {
        for item in node.items() {
            self.everywhere(&item);
        }
        for field in node.fields() {
            let name = field.path.rsplit('.').next().unwrap_or_default();
            match name {
                "files" if field.value.is_object() => {
                    let interval = field.get("refreshInterval");
                    if duration(interval.text()).is_none_or(|it| it <= 0) {
                        let problem = "has to be a duration such as \"3600s\"";
                        self.add(&interval, problem);
                    }
                }
                "cacheReplacementPolicy" if is_unknown_policy(&field) => {
                    let problem = "unknown cache replacement policy: use \"LEAST_RECENTLY_USED\"";
                    self.add(&field, problem);
                }
                "platform" => self.platform(&field),
                name if expressions::is_expression(name) => self.expression(&field),
                _ => {}
            }
            self.everywhere(&field);
        }
    }

    /// Properties that are not in order are not refused at the start, but with every message afterwards.
    fn platform(&mut self, platform: &Node<'_>) {
        let properties = platform.get("properties").items();
        let pair = |it: &Node<'_>| {
            let text = |field| it.get(field).text().to_owned();
            (text("name"), text("value"))
        };
        for two in properties.windows(2) {
            let (one, other) = (pair(&two[0]), pair(&two[1]));
            if one == other {
                let problem = format!("the property {:?} occurs twice", one.0);
                self.add(&two[1], problem);
            } else if one > other {
                let problem = "properties have to be in the order of their names and values";
                self.add(&two[1], problem);
            }
        }
    }
}

fn is_unknown_policy(field: &Node<'_>) -> bool {
    field.text() == "UNKNOWN" || field.value.as_i64() == Some(0)
}
