//! What a resolver is told.

use std::{collections::BTreeSet, time::Duration};

use http::HeaderName;

use super::{Environment, Error, Places, Sentry, WATCHED, Whereabouts, environment::bad};

/// What a resolver is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolverSettings {
    /// Where everybody is.
    pub places: Places,
    /// Where it is itself.
    pub whereabouts: Whereabouts,
    /// Host and port of the operator, if those of its Service do not lead there.
    pub operator: Option<String>,
    /// The namespaces that are looked at; all if there is none.
    pub namespaces: BTreeSet<String>,
    /// So long its end may take, for what is held and under way.
    pub drain: Duration,
    /// The domain of the cluster, such as `cluster.local`.
    pub cluster_domain: String,
    /// The header that names a service on the shared port.
    pub header_for_host: HeaderName,
    /// The longest that a request is held and answered.
    pub request_timeout: Duration,
    /// The original looked for pods so often; ours is told of them.
    pub queue_retry: Duration,
    /// So many requests of a service are held.
    pub queue_size: usize,
    /// Counts towards nothing but the original's queue.
    pub max_queue_concurrency: usize,
    /// So many were answered at once by the original.
    pub initial_capacity: usize,
    /// How long the original refused traffic; ours never does.
    pub traffic_re_enable: Duration,
    /// After what time it began to.
    pub traffic_disable_grace: Duration,
    /// An operator is asked for the same wake no more often than this.
    pub operator_retry: Duration,
    /// So many unused connections are kept.
    pub max_idle_connections: usize,
    /// So many of them to the same pod.
    pub max_idle_connections_per_host: usize,
    /// Whether HTTP/2 without TLS is spoken on the shared port.
    pub enable_h2c: bool,
    /// How often the original asked which services there are; ours watches.
    pub crd_cache_poll_interval: Duration,
    /// Where errors are sent.
    pub sentry: Sentry,
    /// Operators need no token, as that of KubeElasti 0.1.30 has none to show.
    pub allow_unauthenticated_operators: bool,
    /// Whether what clients choose is a label of the original's numbers, as it was there.
    pub unbounded_metrics: bool,
    /// Variables for which somebody chose a value that has no effect.
    pub unheeded: Vec<&'static str>,
}

/// Variables that are read, so that what cannot be meant is noticed, and have no effect: there is
/// nothing here that they could be said of. Beside each what the chart of KubeElasti sets, which
/// nobody has chosen.
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

fn unheeded(environment: &Environment<'_>) -> Vec<&'static str> {
    let chosen = WITHOUT_EFFECT.iter().filter(|(name, usual)| {
        let said = environment.text(name);
        // What is asked for here is there in any case.
        let spoken = *name == "ENABLE_H2C" && said.as_deref() == Some("true");
        said.is_some_and(|said| said != *usual) && !spoken
    });
    chosen.map(|(name, _)| *name).collect()
}

impl ResolverSettings {
    /// What `variable` says to each name.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let environment = Environment(variable);
        let count = |name, usual| environment.number(name, usual, "a whole number such as 100");
        Ok(Self {
            places: Places::read(&environment)?,
            whereabouts: Whereabouts::read(&environment)?,
            operator: environment.text("ELASTI_OPERATOR_ADDRESS"),
            namespaces: environment.names(WATCHED),
            drain: environment.seconds("ELASTI_DRAIN_SECONDS", 100)?,
            cluster_domain: environment.needed(
                "KUBERNETES_CLUSTER_DOMAIN",
                "a domain such as cluster.local",
            )?,
            header_for_host: header(&environment)?,
            request_timeout: environment.seconds("REQ_TIMEOUT", 600)?,
            queue_retry: environment.seconds("QUEUE_RETRY_DURATION", 5)?,
            queue_size: count("QUEUE_SIZE", 100)?,
            max_queue_concurrency: count("MAX_QUEUE_CONCURRENCY", 10)?,
            initial_capacity: count("INITIAL_CAPACITY", 100)?,
            traffic_re_enable: environment.seconds("TRAFFIC_RE_ENABLE_DURATION", 30)?,
            traffic_disable_grace: environment.seconds("TRAFFIC_DISABLE_GRACE_DURATION", 15)?,
            operator_retry: environment.seconds("OPERATOR_RETRY_DURATION", 30)?,
            max_idle_connections: count("MAX_IDLE_PROXY_CONNS", 1000)?,
            max_idle_connections_per_host: count("MAX_IDLE_PROXY_CONNS_PER_HOST", 100)?,
            enable_h2c: environment.switch("ENABLE_H2C", false)?,
            crd_cache_poll_interval: minutes(&environment)?,
            sentry: Sentry::read(&environment),
            allow_unauthenticated_operators: environment
                .switch("ELASTI_ALLOW_UNAUTHENTICATED_OPERATORS", false)?,
            unbounded_metrics: environment.switch("ELASTI_UNBOUNDED_METRICS", false)?,
            unheeded: unheeded(&environment),
        })
    }
}

impl ResolverSettings {
    /// Where an operator is asked for wakes.
    pub fn operator_address(&self) -> String {
        let places = &self.places;
        let named = || {
            format!(
                "{}.{}.svc.{}:{}",
                places.operator_service,
                places.operator_namespace,
                self.cluster_domain,
                places.operator_port
            )
        };
        self.operator.clone().unwrap_or_else(named)
    }
}

fn header(environment: &Environment<'_>) -> Result<HeaderName, Error> {
    const NAME: &str = "HEADER_FOR_HOST";
    let text = environment.text(NAME).unwrap_or_else(|| "Host".to_owned());
    let wants = "the name of a header such as X-Envoy-Decorator-Operation";
    text.parse().map_err(|_| bad(NAME, &text, wants))
}

/// The original takes nothing and less for five.
fn minutes(environment: &Environment<'_>) -> Result<Duration, Error> {
    let wants = "a whole number of minutes such as 5";
    let minutes: i64 = environment.number("CRD_CACHE_POLL_INTERVAL_MINUTES", 5, wants)?;
    let minutes = u64::try_from(minutes).ok().filter(|it| *it > 0);
    Ok(Duration::from_secs(minutes.unwrap_or(5).saturating_mul(60)))
}
