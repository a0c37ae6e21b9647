//! `neap idle`: commands about services that sleep, and the operator and resolver processes.

mod change;
mod cluster_scope;
mod list;
mod plan;
mod process;
mod report;
mod show;
mod uninstall;

use std::{io::Write, time::Duration};

use clap::{ArgGroup, Args, Subcommand};
use jiff::Timestamp;

use crate::{
    areas::AreaCommand,
    cli::{ClusterOptions, ListingOptions, Output, Scope, duration, timestamp},
    exit::Failure,
    inspect::block_on,
    symbols::Symbols,
};

const OPERATOR_HELP: &str = "\
Flags, as in KubeElasti (one dash or two; the value after = or as the next argument):
  --metrics-bind-address ADDR        address for /metrics; default :8080, 0 disables it
  --health-probe-bind-address ADDR   address for /healthz and /readyz; default :8081
  --leader-elect                     elect a leader among several operators; all of them wake services
  --watch-namespace NAME             watch only this namespace; WATCH_NAMESPACES takes precedence
  --kubeconfig FILE                  kubeconfig of the cluster, when running outside of it
  --allow-unauthenticated-resolvers  accept KubeElasti resolvers, which send no token

Required variables: ELASTI_{RESOLVER,OPERATOR}_{NAMESPACE,DEPLOYMENT_NAME,SERVICE_NAME,PORT} and
ELASTI_RESOLVER_PROXY_PORT. Optional variables: POLLING_INTERVAL, WATCH_NAMESPACES,
PROMETHEUS_TRIGGER_SERVER_ADDRESS, PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER,
PROMETHEUS_TRIGGER_AUTHORIZATION_ORIGINS, ELASTI_ANNOTATION_SERVERS, ELASTI_ANNOTATION_MAX_REPLICAS,
ELASTI_RESOLVER_PORT_RANGE, ELASTI_GRACE_SECONDS, ELASTI_START_SECONDS, ELASTI_FAILED_SLEEP_SECONDS,
ELASTI_LISTEN_ADDRESS, ELASTI_TOKEN_FILE, ELASTI_{OPERATOR,RESOLVER}_SERVICE_ACCOUNT, SENTRY_DSN and
SENTRY_ENVIRONMENT.";

const RESOLVER_HELP: &str = "\
Required variables: those of the operator, and KUBERNETES_CLUSTER_DOMAIN. Optional variables:
HEADER_FOR_HOST, REQ_TIMEOUT, QUEUE_SIZE, WATCH_NAMESPACES, ELASTI_OPERATOR_ADDRESS,
ELASTI_DRAIN_SECONDS, ELASTI_LISTEN_ADDRESS, ELASTI_TOKEN_FILE, ELASTI_UNBOUNDED_METRICS,
ELASTI_ALLOW_UNAUTHENTICATED_OPERATORS, ELASTI_{OPERATOR,RESOLVER}_SERVICE_ACCOUNT, SENTRY_DSN and
SENTRY_ENVIRONMENT. Other variables of KubeElasti are validated and have no effect. The resolver connects
to the cluster of KUBECONFIG, or to the cluster in which its pod runs.";

const PLAN_HELP: &str = "\
Reads the objects that the operator reads, and prints its next decision: the writes in order, each with
its reason, the status, the Events and when it decides again. Nothing is written.

NAME is an ElastiService, or a Service, Deployment or StatefulSet with the annotation
idle.neaptide.dev/enabled; if there are several of that name, all are printed. Facts that only the
leading operator has in memory, such as the last poll of the triggers, are taken from the status or
are unknown; the output names them.";

const WAKE_EXAMPLES: &str = "\
Examples:
  neap idle wake web              request a wake
  neap idle wake web --wait 2m    request a wake and wait until the pods are ready
  neap idle wake --all -A         wake all services

A service sleeps again when its triggers report it idle for the cooldown period.";

const SLEEP_EXAMPLES: &str = "\
Examples:
  neap idle sleep web             request sleep now, whatever the triggers report
  neap idle sleep web --wait 1m   request sleep and wait until the service sleeps

The next request wakes the service again.";

const KEEP_EXAMPLES: &str = "\
Examples:
  neap idle keep-awake web --for 2h
  neap idle keep-awake web --until 2026-12-24T18:00:00Z
  neap idle keep-awake web --off      allow it to sleep again

This wakes a service that sleeps.";

const UNINSTALL_HELP: &str = "\
Deletes every ElastiService and waits for the operator, which wakes services that sleep, takes the
resolvers out of the path and removes the objects it created. Then deletes the
CustomResourceDefinition. Operator and resolver must run meanwhile, so they are not removed; remove
them afterwards, the way they were installed.";

/// Manage services that sleep, or run the operator or the resolver
#[derive(Debug, Args)]
pub(crate) struct Command {
    #[command(subcommand)]
    command: IdleCommand,
}

impl AreaCommand for Command {
    fn run(self, symbols: Symbols, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            IdleCommand::List(options) => block_on(list::run(&options, out)),
            IdleCommand::Show(options) => block_on(show::run(&options, symbols, out)),
            IdleCommand::Plan(options) => block_on(plan::run(&options, symbols, out)),
            IdleCommand::Wake(options) => block_on(change::wake(&options, symbols, out)),
            IdleCommand::Sleep(options) => block_on(change::sleep(&options, symbols, out)),
            IdleCommand::KeepAwake(options) => block_on(change::keep_awake(&options, symbols, out)),
            IdleCommand::Report(options) => block_on(report::run(&options, out)),
            IdleCommand::Uninstall(options) => block_on(uninstall::run(&options, symbols, out)),
            IdleCommand::Operator { words } => process::operator(words),
            IdleCommand::Resolver => process::resolver(),
        }
    }

    fn role(&self) -> Option<&'static str> {
        match self.command {
            IdleCommand::Operator { .. } => Some("neap-idle-operator"),
            IdleCommand::Resolver => Some("neap-idle-resolver"),
            _ => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum IdleCommand {
    /// List the services that can sleep, with their state
    #[command(visible_alias = "ls")]
    List(ListOptions),

    /// Show one service: its state, the reason and its last wake
    Show(ShowOptions),

    /// Print what the operator would do next about a service, without doing it
    #[command(after_help = PLAN_HELP)]
    Plan(PlanOptions),

    /// Wake services
    #[command(after_help = WAKE_EXAMPLES)]
    Wake(WakeOptions),

    /// Put services to sleep
    #[command(after_help = SLEEP_EXAMPLES)]
    Sleep(SleepOptions),

    /// Keep services awake for a while
    #[command(after_help = KEEP_EXAMPLES)]
    KeepAwake(KeepOptions),

    /// Report what sleep has saved and what it would save
    Report(ReportOptions),

    /// Wake and restore all services, and remove all ElastiServices and their definition
    #[command(after_help = UNINSTALL_HELP)]
    Uninstall(UninstallOptions),

    /// Run the operator, which puts idle services to sleep; used by a Deployment in the cluster
    #[command(after_help = OPERATOR_HELP)]
    Operator {
        /// Flags of KubeElasti's operator
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FLAGS"
        )]
        words: Vec<String>,
    },

    /// Run the resolver, which holds requests for services that sleep; used by a Deployment in the cluster
    #[command(after_help = RESOLVER_HELP)]
    Resolver,
}

#[derive(Debug, Args)]
pub(super) struct ListOptions {
    #[command(flatten)]
    pub(super) scope: Scope,

    #[command(flatten)]
    pub(super) listing: ListingOptions,
}

#[derive(Debug, Args)]
pub(super) struct ReportOptions {
    #[command(flatten)]
    pub(super) scope: Scope,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(super) output: Output,
}

#[derive(Debug, Args)]
pub(super) struct ShowOptions {
    /// Name of the ElastiService
    pub(super) name: String,

    /// Namespace of the ElastiService; by default that of the context
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(super) namespace: Option<String>,

    #[command(flatten)]
    pub(super) cluster: ClusterOptions,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(super) output: Output,
}

#[derive(Debug, Args)]
pub(super) struct PlanOptions {
    /// Name of the ElastiService, or of the annotated Service, Deployment or StatefulSet
    pub(super) name: String,

    /// Namespace; by default that of the context
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(super) namespace: Option<String>,

    #[command(flatten)]
    pub(super) cluster: ClusterOptions,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(super) output: Output,
}

/// Flags that select ElastiServices.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").args(["names", "all"]).required(true)))]
pub(super) struct Which {
    /// Names of the ElastiServices
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,

    /// All ElastiServices
    #[arg(long)]
    pub(super) all: bool,

    #[command(flatten)]
    pub(super) scope: Scope,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(super) output: Output,
}

#[derive(Debug, Args)]
pub(super) struct WakeOptions {
    #[command(flatten)]
    pub(super) which: Which,

    /// Wait until the services are awake, at most this long
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) wait: Option<Duration>,
}

#[derive(Debug, Args)]
pub(super) struct SleepOptions {
    #[command(flatten)]
    pub(super) which: Which,

    /// Wait until the services sleep, at most this long
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) wait: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("until_when").args(["lasting", "until", "off"]).required(true)))]
pub(super) struct KeepOptions {
    #[command(flatten)]
    pub(super) which: Which,

    /// Keep the services awake this long: 30m, 2h, 3d
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(super) lasting: Option<Duration>,

    /// Keep the services awake until this time: 2026-12-24T18:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = timestamp)]
    pub(super) until: Option<Timestamp>,

    /// Allow the services to sleep again
    #[arg(long)]
    pub(super) off: bool,
}

#[derive(Debug, Args)]
pub(super) struct UninstallOptions {
    /// Confirm the uninstall; without this flag, print how many services would be deleted and fail
    #[arg(long)]
    pub(super) yes: bool,

    /// How long to wait until all services are awake and restored
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub(super) wait: Duration,

    /// Namespace of the operator; it is annotated so that the operator stops creating objects
    #[arg(long, value_name = "NAMESPACE", default_value = "elasti")]
    pub(super) operator_namespace: String,

    #[command(flatten)]
    pub(super) cluster: ClusterOptions,
}
