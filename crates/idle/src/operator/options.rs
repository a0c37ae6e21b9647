//! The options of an operator: environment variables, flags and their defaults.

mod flags;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, net::IpAddr, path::PathBuf, time::Duration};

use http::HeaderValue;

use self::flags::Flags;
pub use self::flags::ListenAddress;
use crate::{
    elasti_service::facts::{PortRange, Timeouts},
    opt_in::OptInLimits,
    options::{
        Environment, Error, Installation, LISTEN_ADDRESS, Sentry, TOKEN_FILE, WATCH_NAMESPACES,
        invalid,
    },
    trigger::{Origins, PrometheusDefaults, origin::InvalidOrigin},
};

const DEFAULT_POLLING_INTERVAL: Duration = Duration::from_secs(30);
const DEFAULT_GRACE_SECONDS: u64 = 5;
/// The same as the longest that a resolver holds a request by default.
const DEFAULT_START_SECONDS: u64 = 600;

/// The options of an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorOptions {
    /// The names and ports of the installation.
    pub installation: Installation,
    /// The address that it listens on; all of the machine if absent.
    pub listen_host: Option<IpAddr>,
    /// The file with its token; the one that pods have if absent.
    pub token_file: Option<PathBuf>,
    /// The namespaces that it watches; all if empty.
    pub namespaces: BTreeSet<String>,
    /// The time between two polls of a service's triggers.
    pub polling_interval: Duration,
    /// The Prometheus server of triggers that name none, and its credentials.
    pub prometheus: PrometheusDefaults,
    /// What annotations of users may ask for.
    pub opt_in: OptInLimits,
    /// The domain of the cluster, if the machine's resolver does not know the names of its Services.
    pub cluster_names: Option<String>,
    /// The ports on which resolvers stand in for those of services.
    pub resolver_ports: PortRange,
    /// The timeouts of decisions about a service.
    pub timeouts: Timeouts,
    /// Resolvers need no token, since those of KubeElasti 0.1.30 send none.
    pub allow_unauthenticated_resolvers: bool,
    /// Whether operators elect a leader, which alone writes.
    pub leader_elect: bool,
    /// The address of the metrics server; none if absent.
    pub metrics: Option<ListenAddress>,
    /// Whether metrics are served over TLS.
    pub metrics_secure: bool,
    /// Whether the metrics server should speak HTTP/2; accepted for compatibility, without effect.
    pub enable_http2: bool,
    /// The address of the health server; none if absent.
    pub health: Option<ListenAddress>,
    /// The path of a kubeconfig, for processes outside of a cluster.
    pub kubeconfig: Option<String>,
    /// The Sentry project that receives errors.
    pub sentry: Sentry,
    /// A random number: operators with different ones do not poll at the same moments.
    pub seed: u64,
}

impl OperatorOptions {
    /// The defaults for an installation.
    pub fn new(installation: Installation) -> Self {
        let flags = Flags::default();
        Self {
            installation,
            listen_host: None,
            token_file: None,
            namespaces: BTreeSet::new(),
            polling_interval: DEFAULT_POLLING_INTERVAL,
            prometheus: PrometheusDefaults::default(),
            opt_in: OptInLimits::default(),
            cluster_names: None,
            resolver_ports: PortRange::default(),
            timeouts: Timeouts::default(),
            allow_unauthenticated_resolvers: flags.allow_unauthenticated_resolvers,
            leader_elect: flags.leader_elect,
            metrics: flags.metrics,
            metrics_secure: flags.metrics_secure,
            enable_http2: flags.enable_http2,
            health: flags.health,
            kubeconfig: flags.kubeconfig,
            sentry: Sentry::default(),
            seed: 0,
        }
    }

    /// Reads the arguments of the command line, and the variables that `variable` looks up.
    pub fn read(
        arguments: impl IntoIterator<Item = String>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let flags = Flags::parse(arguments)?;
        let environment = Environment(variable);
        let installation = Installation::read(&environment)?;
        let prometheus = prometheus(&environment)?;
        Ok(Self {
            listen_host: environment.host(LISTEN_ADDRESS)?,
            token_file: environment.text(TOKEN_FILE).map(PathBuf::from),
            polling_interval: environment.duration("POLLING_INTERVAL", DEFAULT_POLLING_INTERVAL)?,
            timeouts: Timeouts {
                grace: environment.seconds("ELASTI_GRACE_SECONDS", DEFAULT_GRACE_SECONDS)?,
                start: environment.seconds("ELASTI_START_SECONDS", DEFAULT_START_SECONDS)?,
                failed_sleep: failed_sleep(&environment)?,
                ..Timeouts::default()
            },
            opt_in: opt_in(&environment, prometheus.address.as_ref())?,
            prometheus,
            // In a cluster the name server of its pods knows them.
            cluster_names: None,
            namespaces: namespaces(&environment, flags.watch_namespace, &installation),
            resolver_ports: resolver_ports(&environment, &installation)?,
            sentry: Sentry::read(&environment),
            allow_unauthenticated_resolvers: flags.allow_unauthenticated_resolvers,
            leader_elect: flags.leader_elect,
            metrics: flags.metrics,
            metrics_secure: flags.metrics_secure,
            enable_http2: flags.enable_http2,
            health: flags.health,
            kubeconfig: flags.kubeconfig,
            seed: 0,
            installation,
        })
    }
}

fn prometheus(environment: &Environment<'_>) -> Result<PrometheusDefaults, Error> {
    const ADDRESS: &str = "PROMETHEUS_TRIGGER_SERVER_ADDRESS";
    const AUTHORIZATION: &str = "PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER";
    const ORIGINS: &str = "PROMETHEUS_TRIGGER_AUTHORIZATION_ORIGINS";
    let address = environment.text(ADDRESS);
    let has_scheme = |it: &String| {
        ["http://", "https://"]
            .iter()
            .any(|scheme| it.starts_with(scheme))
    };
    if let Some(value) = address.as_ref().filter(|it| !has_scheme(it)) {
        // The value is not repeated: it may contain a user's credentials.
        let value = format!(
            "not an http:// or https:// address ({} characters)",
            value.len()
        );
        let wants = "an address such as http://prometheus.monitoring:9090";
        let name = ADDRESS.to_owned();
        return Err(Error::Invalid { name, value, wants });
    }
    let authorization = environment.text(AUTHORIZATION).map(|value| {
        let value = HeaderValue::from_str(&value).map(|mut value| {
            value.set_sensitive(true);
            value
        });
        value.map_err(|_| Error::Invalid {
            name: AUTHORIZATION.to_owned(),
            value: "something that no header can hold".to_owned(),
            wants: "one line such as Bearer and a token",
        })
    });
    Ok(PrometheusDefaults {
        address,
        authorization: authorization.transpose()?,
        origins: origins(environment, ORIGINS)?,
    })
}

/// After which time a service whose pods have failed sleeps; none for 0, which is the default.
fn failed_sleep(environment: &Environment<'_>) -> Result<Option<Duration>, Error> {
    let time = environment.seconds("ELASTI_FAILED_SLEEP_SECONDS", 0)?;
    Ok(Some(time).filter(|time| !time.is_zero()))
}

fn opt_in(
    environment: &Environment<'_>,
    default_server: Option<&String>,
) -> Result<OptInLimits, Error> {
    const SERVERS: &str = "ELASTI_ANNOTATION_SERVERS";
    const REPLICAS: &str = "ELASTI_ANNOTATION_MAX_REPLICAS";
    let wants = "a whole number from 1 on such as 10";
    let usual = OptInLimits::default().max_replicas;
    let max_replicas: i32 = environment.number(REPLICAS, usual, wants)?;
    if max_replicas < 1 {
        return Err(invalid(REPLICAS, &max_replicas.to_string(), wants));
    }
    Ok(OptInLimits {
        max_replicas,
        servers: origins(environment, SERVERS)?,
        default_server: default_server.cloned(),
    })
}

fn origins(environment: &Environment<'_>, name: &str) -> Result<Origins, Error> {
    let list = environment.text(name).unwrap_or_default();
    list.parse().map_err(|wrong: InvalidOrigin| Error::Invalid {
        name: name.to_owned(),
        value: format!("a list whose {wrong}"),
        wants: "comma-separated origins such as https://prometheus.example:9090, or *",
    })
}

/// The namespaces of operator and resolvers are always watched.
fn namespaces(
    environment: &Environment<'_>,
    flag: Option<String>,
    installation: &Installation,
) -> BTreeSet<String> {
    let mut namespaces = environment.names(WATCH_NAMESPACES);
    if namespaces.is_empty() {
        namespaces.extend(flag);
    }
    if !namespaces.is_empty() {
        let own = [
            &installation.operator_namespace,
            &installation.resolver_namespace,
        ];
        namespaces.extend(own.into_iter().cloned());
    }
    namespaces
}

fn resolver_ports(
    environment: &Environment<'_>,
    installation: &Installation,
) -> Result<PortRange, Error> {
    const NAME: &str = "ELASTI_RESOLVER_PORT_RANGE";
    /// Ports below need privileges.
    const FIRST_UNPRIVILEGED: u16 = 1024;
    let Some(text) = environment.text(NAME) else {
        return Ok(PortRange::default());
    };
    let own = [installation.resolver_port, installation.resolver_proxy_port];
    let is_usable = |range: &PortRange| {
        range.first >= FIRST_UNPRIVILEGED && !own.iter().any(|port| range.contains(*port))
    };
    let range = text.parse().ok().filter(is_usable);
    range.ok_or_else(|| Error::Invalid {
        name: NAME.to_owned(),
        value: format!("{text:?}"),
        wants: "a range such as 20000-29999, from 1024 on and without the resolvers' own ports",
    })
}
