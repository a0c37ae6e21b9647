//! Parses flags as Go programs do: one dash or two, a value after `=` or as the next argument.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

use crate::options::{Error, invalid, parse_bool};

/// The flags of an operator, before they are merged with its variables.
#[derive(Debug)]
pub(super) struct Flags {
    pub(super) metrics: Option<ListenAddress>,
    pub(super) health: Option<ListenAddress>,
    pub(super) leader_elect: bool,
    pub(super) metrics_secure: bool,
    pub(super) enable_http2: bool,
    /// The only namespace that is watched, unless a variable lists others.
    pub(super) watch_namespace: Option<String>,
    pub(super) kubeconfig: Option<String>,
    pub(super) allow_unauthenticated_resolvers: bool,
}

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress {
    /// The IP address; all of the machine if absent.
    pub host: Option<IpAddr>,
    /// The port.
    pub port: u16,
}

impl Default for Flags {
    fn default() -> Self {
        let at = |port| Some(ListenAddress { host: None, port });
        Self {
            metrics: at(8080),
            health: at(8081),
            leader_elect: false,
            metrics_secure: false,
            enable_http2: false,
            watch_namespace: None,
            kubeconfig: None,
            allow_unauthenticated_resolvers: false,
        }
    }
}

const METRICS: &str = "--metrics-bind-address";
const HEALTH: &str = "--health-probe-bind-address";
const LEADER: &str = "--leader-elect";
const SECURE: &str = "--metrics-secure";
const HTTP2: &str = "--enable-http2";
const NAMESPACE: &str = "--watch-namespace";
const KUBECONFIG: &str = "--kubeconfig";
const UNAUTHENTICATED: &str = "--allow-unauthenticated-resolvers";
/// Flags of KubeElasti's logging. They have no effect, and a manifest that has them still starts.
const LOGGING: [&str; 5] = [
    "--zap-devel",
    "--zap-encoder",
    "--zap-log-level",
    "--zap-stacktrace-level",
    "--zap-time-encoding",
];

impl Flags {
    /// Parses the arguments of a command line.
    pub(super) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, Error> {
        let mut flags = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let name = argument.trim_start_matches('-');
            let dashes = argument.len() - name.len();
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (name, None),
            };
            let name = format!("--{name}");
            if !matches!(dashes, 1 | 2) {
                return Err(unknown(&argument));
            }
            flags.set(&name, value, &mut arguments)?;
        }
        Ok(flags)
    }

    fn set(
        &mut self,
        name: &str,
        value: Option<String>,
        rest: &mut impl Iterator<Item = String>,
    ) -> Result<(), Error> {
        let switch = match name {
            LEADER => Some(&mut self.leader_elect),
            SECURE => Some(&mut self.metrics_secure),
            HTTP2 => Some(&mut self.enable_http2),
            UNAUTHENTICATED => Some(&mut self.allow_unauthenticated_resolvers),
            _ => None,
        };
        if let Some(switch) = switch {
            let value = value.unwrap_or_else(|| "true".to_owned());
            let parsed = parse_bool(&value);
            *switch = parsed.ok_or_else(|| invalid(name, &value, "true or false"))?;
            return Ok(());
        }
        if name == LOGGING[0] {
            return Ok(());
        }
        let known = [METRICS, HEALTH, NAMESPACE, KUBECONFIG];
        if !known.contains(&name) && !LOGGING.contains(&name) {
            return Err(unknown(name));
        }
        let value = value.or_else(|| rest.next());
        let value = value.ok_or_else(|| invalid(name, "", "a value"))?;
        match name {
            // As in KubeElasti: an empty value means the default for metrics, and no server for health.
            METRICS if value.is_empty() => self.metrics = Self::default().metrics,
            HEALTH if value.is_empty() => self.health = None,
            METRICS => self.metrics = listen_address(name, &value)?,
            HEALTH => self.health = listen_address(name, &value)?,
            NAMESPACE => self.watch_namespace = Some(value).filter(|it| !it.is_empty()),
            KUBECONFIG => self.kubeconfig = Some(value).filter(|it| !it.is_empty()),
            _ => {}
        }
        Ok(())
    }
}

/// `:8080`, `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`; none for `0`.
fn listen_address(name: &str, text: &str) -> Result<Option<ListenAddress>, Error> {
    if text == "0" {
        return Ok(None);
    }
    let parse = || {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().ok()?;
        let host = if host.is_empty() {
            None
        } else {
            Some(resolve(host)?)
        };
        Some(ListenAddress { host, port })
    };
    let wants =
        "an address of this machine such as :8080, 127.0.0.1:8080 or localhost:8080, or 0 for none";
    parse().map(Some).ok_or_else(|| invalid(name, text, wants))
}

/// The IP address of `host`. Of several, the first of IPv4, as in Go.
fn resolve(host: &str) -> Option<IpAddr> {
    if let Ok(address) = host.parse() {
        return Some(address);
    }
    // Without a lookup, so that it works where there is no name server.
    if host == "localhost" {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    let found = (host, 0).to_socket_addrs().ok()?;
    found.map(|it| it.ip()).min_by_key(IpAddr::is_ipv6)
}

fn unknown(name: &str) -> Error {
    let bare = |text: &str| -> String { text.chars().filter(char::is_ascii_alphabetic).collect() };
    let ours = [
        METRICS,
        HEALTH,
        LEADER,
        SECURE,
        HTTP2,
        NAMESPACE,
        KUBECONFIG,
        UNAUTHENTICATED,
    ];
    let typed = bare(name);
    let similar = ours.into_iter().find(|known| {
        let known = bare(known);
        typed.len() > 3 && (known.starts_with(&typed) || typed.starts_with(&known))
    });
    let name = name.to_owned();
    Error::UnknownFlag { name, similar }
}
