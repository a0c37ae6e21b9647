//! The commands about services that sleep.

use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use jiff::Timestamp;

use super::{ClusterOptions, Output, duration, moment};

const OPERATOR_HELP: &str = "\
Flags, as KubeElasti has them (one dash or two, a value after = or as the next word):
  --metrics-bind-address ADDR        where numbers are shown; :8080, and 0 for nowhere
  --health-probe-bind-address ADDR   /healthz and /readyz; :8081
  --leader-elect                     several may run, and one of them leads; any of them wakes
  --watch-namespace NAME             look at this namespace alone; WATCH_NAMESPACES wins
  --kubeconfig FILE                  the cluster, if this is no pod of it
  --allow-unauthenticated-resolvers  for resolvers of KubeElasti, which show no token

Variables: ELASTI_{RESOLVER,OPERATOR}_{NAMESPACE,DEPLOYMENT_NAME,SERVICE_NAME,PORT} and
ELASTI_RESOLVER_PROXY_PORT are needed. POLLING_INTERVAL, WATCH_NAMESPACES,
PROMETHEUS_TRIGGER_SERVER_ADDRESS, PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER,
PROMETHEUS_TRIGGER_AUTHORIZATION_ORIGINS,
ELASTI_RESOLVER_PORT_RANGE, ELASTI_GRACE_SECONDS, ELASTI_LISTEN_ADDRESS and ELASTI_TOKEN_FILE may be
set.";

const RESOLVER_HELP: &str = "\
Variables: those that the operator needs, and KUBERNETES_CLUSTER_DOMAIN. HEADER_FOR_HOST, REQ_TIMEOUT,
QUEUE_SIZE, WATCH_NAMESPACES, ELASTI_OPERATOR_ADDRESS, ELASTI_DRAIN_SECONDS, ELASTI_LISTEN_ADDRESS,
ELASTI_TOKEN_FILE and ELASTI_ALLOW_UNAUTHENTICATED_OPERATORS may be set. The cluster is that of
KUBECONFIG, or the one whose pod this is.";

const WAKE_EXAMPLES: &str = "\
Examples:
  neap idle wake web              have it woken
  neap idle wake web --wait 2m    and wait until its pods answer
  neap idle wake --all -A         wake everything

It sleeps again when its triggers say so, after the cooldown.";

const SLEEP_EXAMPLES: &str = "\
Examples:
  neap idle sleep web             have it put to sleep now, whatever its triggers say
  neap idle sleep web --wait 1m   and wait until it sleeps

Whoever asks for it wakes it again.";

const KEEP_EXAMPLES: &str = "\
Examples:
  neap idle keep-awake web --for 2h
  neap idle keep-awake web --until 2026-12-24T18:00:00Z
  neap idle keep-awake web --off      let it sleep again

A service that sleeps is woken by this.";

const UNINSTALL_HELP: &str = "\
Every ElastiService is deleted and waited for: the operator wakes what sleeps, takes the resolvers out
of the path and removes what it made. Then the definition of the kind goes. Operator and resolver have
to run meanwhile, so they are left for last, to whoever installed them.";

#[derive(Debug, Subcommand)]
pub(crate) enum IdleCommand {
    /// List the services that may sleep, and what each of them does
    List(ListOptions),

    /// Show one of them: what it does, why, and how it last woke
    Show(ShowOptions),

    /// Wake services
    #[command(after_help = WAKE_EXAMPLES)]
    Wake(WakeOptions),

    /// Put services to sleep
    #[command(after_help = SLEEP_EXAMPLES)]
    Sleep(SleepOptions),

    /// Keep services awake until a time
    #[command(after_help = KEEP_EXAMPLES)]
    KeepAwake(KeepOptions),

    /// Say what sleep has saved, and what it would save
    Report(ListOptions),

    /// Wake and restore everything, and remove every ElastiService and their definition
    #[command(after_help = UNINSTALL_HELP)]
    Uninstall(UninstallOptions),

    /// Keep services asleep while nobody asks for them; a Deployment of the cluster runs this
    #[command(after_help = OPERATOR_HELP)]
    Operator {
        /// Flags as KubeElasti's operator has them
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FLAGS"
        )]
        words: Vec<String>,
    },

    /// Answer for services that sleep, and have them woken; a Deployment of the cluster runs this
    #[command(after_help = RESOLVER_HELP)]
    Resolver,
}

/// Where one looks.
#[derive(Debug, Args)]
pub(crate) struct Scope {
    /// The namespace; otherwise that of the context
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        conflicts_with = "all_namespaces"
    )]
    pub(crate) namespace: Option<String>,

    /// In all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    #[command(flatten)]
    pub(crate) scope: Scope,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct ShowOptions {
    /// The name of the ElastiService
    pub(crate) name: String,

    /// Its namespace; otherwise that of the context
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// Which of them.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").args(["names", "all"]).required(true)))]
pub(crate) struct Which {
    /// The names of the ElastiServices
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// All that there are
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) scope: Scope,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct WakeOptions {
    #[command(flatten)]
    pub(crate) which: Which,

    /// Wait until they are awake, so long at most
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) wait: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct SleepOptions {
    #[command(flatten)]
    pub(crate) which: Which,

    /// Wait until they sleep, so long at most
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) wait: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("until_when").args(["lasting", "until", "off"]).required(true)))]
pub(crate) struct KeepOptions {
    #[command(flatten)]
    pub(crate) which: Which,

    /// For so long: 30m, 2h, 3d
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) lasting: Option<Duration>,

    /// Until then: 2026-12-24T18:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(crate) until: Option<Timestamp>,

    /// No longer
    #[arg(long)]
    pub(crate) off: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UninstallOptions {
    /// Do it; without this it is only said what would be done
    #[arg(long)]
    pub(crate) yes: bool,

    /// So long is waited for everything to be awake and restored
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub(crate) wait: Duration,

    /// The namespace of the operator, who is told there to make nothing more
    #[arg(long, value_name = "NAMESPACE", default_value = "elasti")]
    pub(crate) operator_namespace: String,

    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}
