//! The options of a resolver: environment variables and their defaults.

use std::{collections::BTreeSet, net::IpAddr, path::PathBuf, time::Duration};

use http::HeaderName;

use super::{
    drain::DrainTimeouts,
    http::HostRouting,
    routes::{HoldLimits, RouteDefaults},
    workers::WorkerThreads,
};
use crate::options::{
    Environment, Error, Installation, LISTEN_ADDRESS, Sentry, TOKEN_FILE, WATCH_NAMESPACES, invalid,
};

/// The time within which every node learns that a resolver ends: its endpoint changes, an operator
/// updates the EndpointSlices of all services that sleep, and the data plane follows.
const ENDPOINT_PROPAGATION: Duration = Duration::from_secs(20);
/// The time that connections have to end by themselves after held requests were refused.
const FINAL_DRAIN: Duration = Duration::from_secs(8);

/// The options of a resolver.
#[derive(Debug, Clone)]
pub struct ResolverOptions {
    /// The names and ports of the installation.
    pub installation: Installation,
    /// The address that it listens on and connects from; all of the machine if absent.
    pub listen_host: Option<IpAddr>,
    /// The file with its token; the one that pods have if absent.
    pub token_file: Option<PathBuf>,
    /// Host and port at which an operator receives requests for wakes.
    pub operator_address: String,
    /// The namespaces that it watches; all if empty.
    pub namespaces: BTreeSet<String>,
    /// The settings of services whose ElastiService has none.
    pub route_defaults: RouteDefaults,
    /// How requests name a service on the shared port.
    pub host_routing: HostRouting,
    /// How long each part of a shutdown may take.
    pub drain: DrainTimeouts,
    /// Operators need no token, since that of KubeElasti 0.1.30 sends none.
    pub allow_unauthenticated_operators: bool,
    /// Whether KubeElasti's metrics have labels whose values clients choose, as in the original.
    pub unbounded_metrics: bool,
    /// The threads that carry connections; if there are none, those that accepted them do.
    pub worker_threads: WorkerThreads,
    /// The Sentry project that receives errors.
    pub sentry: Sentry,
    /// Variables that have a value other than KubeElasti's default, and no effect here.
    pub ignored_variables: Vec<&'static str>,
}

impl ResolverOptions {
    /// The defaults for an installation.
    pub fn new(installation: Installation, operator_address: String) -> Self {
        Self {
            installation,
            listen_host: None,
            token_file: None,
            operator_address,
            namespaces: BTreeSet::new(),
            route_defaults: RouteDefaults::default(),
            host_routing: HostRouting::default(),
            drain: DrainTimeouts::default(),
            allow_unauthenticated_operators: false,
            unbounded_metrics: false,
            worker_threads: WorkerThreads::default(),
            sentry: Sentry::default(),
            ignored_variables: Vec::new(),
        }
    }

    /// Reads the variables that `variable` looks up.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let environment = Environment(variable);
        let installation = Installation::read(&environment)?;
        let domain = environment.required(
            "KUBERNETES_CLUSTER_DOMAIN",
            "a domain such as cluster.local",
        )?;
        check_ignored(&environment)?;
        let drain = environment.seconds("ELASTI_DRAIN_SECONDS", 100)?;
        let defaults = RouteDefaults::default();
        let requests: usize = environment.number("QUEUE_SIZE", 100, WHOLE_NUMBER)?;
        let operator_address = environment.text("ELASTI_OPERATOR_ADDRESS");
        Ok(Self {
            listen_host: environment.host(LISTEN_ADDRESS)?,
            token_file: environment.text(TOKEN_FILE).map(PathBuf::from),
            operator_address: operator_address
                .unwrap_or_else(|| service_address(&installation, &domain)),
            namespaces: environment.names(WATCH_NAMESPACES),
            route_defaults: RouteDefaults {
                deadline: environment.seconds("REQ_TIMEOUT", 600)?,
                limits: HoldLimits {
                    requests: requests.max(1),
                    ..defaults.limits
                },
            },
            host_routing: HostRouting {
                header: Some(host_header(&environment)?),
                domain,
            },
            drain: drain_timeouts(drain),
            allow_unauthenticated_operators: environment
                .boolean("ELASTI_ALLOW_UNAUTHENTICATED_OPERATORS", false)?,
            unbounded_metrics: environment.boolean("ELASTI_UNBOUNDED_METRICS", false)?,
            worker_threads: WorkerThreads::default(),
            sentry: Sentry::read(&environment),
            ignored_variables: ignored(&environment),
            installation,
        })
    }
}

const WHOLE_NUMBER: &str = "a whole number such as 100";

/// Variables of KubeElasti for whose subject there is nothing here, and the values that its chart sets.
/// They are validated, so that a mistake is noticed, and have no effect.
const WITHOUT_EFFECT: [(&str, &str); 10] = [
    ("QUEUE_RETRY_DURATION", "3"),
    ("MAX_QUEUE_CONCURRENCY", "100"),
    ("INITIAL_CAPACITY", "500"),
    ("TRAFFIC_RE_ENABLE_DURATION", "5"),
    ("TRAFFIC_DISABLE_GRACE_DURATION", "15"),
    ("OPERATOR_RETRY_DURATION", "10"),
    ("MAX_IDLE_PROXY_CONNS", "100"),
    ("MAX_IDLE_PROXY_CONNS_PER_HOST", "500"),
    ("ENABLE_H2C", "false"),
    ("CRD_CACHE_POLL_INTERVAL_MINUTES", "5"),
];

fn check_ignored(environment: &Environment<'_>) -> Result<(), Error> {
    for name in [
        "QUEUE_RETRY_DURATION",
        "TRAFFIC_RE_ENABLE_DURATION",
        "TRAFFIC_DISABLE_GRACE_DURATION",
        "OPERATOR_RETRY_DURATION",
    ] {
        environment.seconds(name, 0)?;
    }
    for name in [
        "MAX_QUEUE_CONCURRENCY",
        "INITIAL_CAPACITY",
        "MAX_IDLE_PROXY_CONNS",
        "MAX_IDLE_PROXY_CONNS_PER_HOST",
    ] {
        environment.number(name, 0_usize, WHOLE_NUMBER)?;
    }
    environment.boolean("ENABLE_H2C", false)?;
    let minutes = "a whole number of minutes such as 5";
    environment.number("CRD_CACHE_POLL_INTERVAL_MINUTES", 0_i64, minutes)?;
    Ok(())
}

/// Those that a user set to another value than the chart.
fn ignored(environment: &Environment<'_>) -> Vec<&'static str> {
    let chosen = WITHOUT_EFFECT.iter().filter(|(name, usual)| {
        let value = environment.text(name);
        // HTTP/2 without TLS is always spoken here.
        let granted = *name == "ENABLE_H2C" && value.as_deref() == Some("true");
        value.is_some_and(|value| value != *usual) && !granted
    });
    chosen.map(|(name, _)| *name).collect()
}

/// The address of the operator's Service.
fn service_address(installation: &Installation, domain: &str) -> String {
    format!(
        "{}.{}.svc.{domain}:{}",
        installation.operator_service, installation.operator_namespace, installation.operator_port
    )
}

/// The parts of a shutdown that takes no longer than `total`.
fn drain_timeouts(total: Duration) -> DrainTimeouts {
    let data_plane_lag = ENDPOINT_PROPAGATION.min(total / 4);
    let in_flight = FINAL_DRAIN.min(total / 4);
    DrainTimeouts {
        data_plane_lag,
        held_requests: total.saturating_sub(data_plane_lag + in_flight),
        in_flight,
    }
}

fn host_header(environment: &Environment<'_>) -> Result<HeaderName, Error> {
    const NAME: &str = "HEADER_FOR_HOST";
    let text = environment.text(NAME).unwrap_or_else(|| "Host".to_owned());
    let wants = "the name of a header such as X-Envoy-Decorator-Operation";
    text.parse().map_err(|_| invalid(NAME, &text, wants))
}

#[cfg(test)]
mod tests;
