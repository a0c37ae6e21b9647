//! Reads flags as Go programs do: one dash or two, a value after `=` or as the next word.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

use super::{
    Error,
    environment::{bad, yes_or_no},
};

/// What the operator is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flags {
    /// Where numbers are shown; nowhere if absent.
    pub metrics: Option<Listen>,
    /// Where the process is asked how it is; nowhere if absent.
    pub health: Option<Listen>,
    /// Whether several of them choose one that writes.
    pub leader_elect: bool,
    /// Whether numbers are shown over TLS.
    pub metrics_secure: bool,
    /// Whether that speaks HTTP/2.
    pub enable_http2: bool,
    /// The only namespace that is looked at.
    pub watch_namespace: Option<String>,
    /// How to reach the API from outside of a cluster.
    pub kubeconfig: Option<String>,
    /// Resolvers need no token, as those of KubeElasti 0.1.30 have none to show.
    pub allow_unauthenticated_resolvers: bool,
}

/// Where a process listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen {
    /// At all addresses if absent.
    pub host: Option<IpAddr>,
    /// The port.
    pub port: u16,
}

impl Default for Flags {
    fn default() -> Self {
        let at = |port| Some(Listen { host: None, port });
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
/// How the original logs; ours is told otherwise, and a manifest that says so still starts.
const LOGGING: [&str; 5] = [
    "--zap-devel",
    "--zap-encoder",
    "--zap-log-level",
    "--zap-stacktrace-level",
    "--zap-time-encoding",
];

impl Flags {
    /// What `words` say.
    pub fn read(words: impl IntoIterator<Item = String>) -> Result<Self, Error> {
        let mut flags = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let name = word.trim_start_matches('-');
            let dashes = word.len() - name.len();
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (name, None),
            };
            let name = format!("--{name}");
            if !matches!(dashes, 1 | 2) {
                return Err(unknown(&word));
            }
            flags.take(&name, value, &mut words)?;
        }
        Ok(flags)
    }

    fn take(
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
            let read = yes_or_no(&value);
            *switch = read.ok_or_else(|| bad(name, &value, "true or false"))?;
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
        let value = value.ok_or_else(|| bad(name, "", "a value"))?;
        match name {
            // As the original reads it: numbers are then shown where they usually are, health nowhere.
            METRICS if value.is_empty() => self.metrics = Self::default().metrics,
            HEALTH if value.is_empty() => self.health = None,
            METRICS => self.metrics = listen(name, &value)?,
            HEALTH => self.health = listen(name, &value)?,
            NAMESPACE => self.watch_namespace = Some(value).filter(|it| !it.is_empty()),
            KUBECONFIG => self.kubeconfig = Some(value).filter(|it| !it.is_empty()),
            _ => {}
        }
        Ok(())
    }
}

/// `:8080`, `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`; `0` is nowhere.
fn listen(name: &str, text: &str) -> Result<Option<Listen>, Error> {
    if text == "0" {
        return Ok(None);
    }
    let read = || {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().ok()?;
        let host = if host.is_empty() {
            None
        } else {
            Some(address(host)?)
        };
        Some(Listen { host, port })
    };
    let wants =
        "an address of this machine such as :8080, 127.0.0.1:8080 or localhost:8080, or 0 for none";
    read().map(Some).ok_or_else(|| bad(name, text, wants))
}

/// The address that `host` is or has. Of several the first of IPv4, as Go takes it.
fn address(host: &str) -> Option<IpAddr> {
    if let Ok(address) = host.parse() {
        return Some(address);
    }
    // Also where nobody is there to be asked for names.
    if host == "localhost" {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    let named = (host, 0).to_socket_addrs().ok()?;
    named.map(|it| it.ip()).min_by_key(IpAddr::is_ipv6)
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
    let near = ours.into_iter().find(|known| {
        let known = bare(known);
        typed.len() > 3 && (known.starts_with(&typed) || typed.starts_with(&known))
    });
    let name = name.to_owned();
    Error::Flag { name, near }
}
