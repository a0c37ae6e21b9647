//! `neap farm`: commands about build farms, and the operator.

mod change;
mod list;
mod plan;
mod process;
mod queue;
mod scope;

use std::{io::Write, time::Duration};

use clap::{Args, Subcommand};

use crate::{
    areas::AreaCommand,
    cli::{ClusterOptions, ListingOptions, Output, Scope, duration},
    exit::Failure,
    inspect::block_on,
    symbols::Symbols,
};

const MATCH_EXAMPLES: &str = "\
Examples:
  neap farm match --platform OSFamily=linux --platform ISA=x86-64
  neap farm match 'No workers exist for instance name prefix \"\" platform {\"properties\":[]}'

An action runs on a pool whose platform properties are exactly those of the action.";

const DRAIN_EXAMPLES: &str = "\
Examples:
  neap farm drain ubuntu22-04             give the pool no new actions
  neap farm drain ubuntu22-04 --wait 1h   and wait until those that run have ended
  neap farm cordon ubuntu22-04 --off      give it actions again";

const PLAN_HELP: &str = "\
Reads what the operator reads, and prints its next decision about the farm of a namespace: the writes in
order, each with its reason. Nothing is written, and schedulers are not asked.";

/// Manage build farms, or run their operator
#[derive(Debug, Args)]
pub(crate) struct Command {
    #[command(subcommand)]
    command: FarmCommand,
}

impl AreaCommand for Command {
    fn run(self, symbols: Symbols, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            FarmCommand::List(options) => block_on(list::farms(&options, out)),
            FarmCommand::Pools(options) => block_on(list::pools(&options, out)),
            FarmCommand::Queue(options) => block_on(queue::queues(&options, out)),
            FarmCommand::Workers(options) => block_on(queue::workers(&options, out)),
            FarmCommand::Match(options) => block_on(queue::nearest(&options, out)),
            FarmCommand::Cordon(options) => block_on(change::cordon(&options, symbols, out)),
            FarmCommand::Drain(options) => block_on(change::drain(&options, symbols, out)),
            FarmCommand::Bazelrc(options) => block_on(list::bazelrc(&options, out)),
            FarmCommand::Plan(options) => block_on(plan::run(&options, out)),
            FarmCommand::Operator(options) => process::operator(&options),
            FarmCommand::Jsonnet => process::jsonnet(),
        }
    }

    fn role(&self) -> Option<&'static str> {
        match self.command {
            FarmCommand::Operator(_) => Some("neap-farm-operator"),
            _ => None,
        }
    }
}

#[derive(Debug, Subcommand)]
enum FarmCommand {
    /// List the farms, with the state of their components
    List(ListOptions),

    /// List the pools of workers
    Pools(ListOptions),

    /// Print what the schedulers have queued and running
    Queue(QueueOptions),

    /// List the workers of a pool, as the scheduler sees them
    Workers(WorkersOptions),

    /// Name the pool on which an action runs, or the nearest one and how it differs
    #[command(after_help = MATCH_EXAMPLES)]
    Match(MatchOptions),

    /// Give a pool no new actions, or give it actions again
    Cordon(CordonOptions),

    /// Give a pool no new actions, and wait until those that run have ended
    #[command(after_help = DRAIN_EXAMPLES)]
    Drain(DrainOptions),

    /// Print the flags with which Bazel builds on a farm
    Bazelrc(BazelrcOptions),

    /// Print what the operator would do next about a farm, without doing it
    #[command(after_help = PLAN_HELP)]
    Plan(PlanOptions),

    /// Run the operator; used by a Deployment in the cluster
    Operator(OperatorOptions),

    /// Evaluate a configuration within bounds; used by the operator
    #[command(hide = true)]
    Jsonnet,
}

#[derive(Debug, Args)]
struct ListOptions {
    #[command(flatten)]
    scope: Scope,

    #[command(flatten)]
    listing: ListingOptions,
}

#[derive(Debug, Args)]
struct QueueOptions {
    #[command(flatten)]
    scope: Scope,

    /// Address of the scheduler's build queue, HOST:PORT; by default that of its Service
    #[arg(long, value_name = "HOST:PORT")]
    scheduler: Option<String>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Args)]
struct WorkersOptions {
    /// Name of the pool
    name: String,

    #[command(flatten)]
    queue: QueueOptions,
}

#[derive(Debug, Args)]
struct MatchOptions {
    /// The scheduler's 'No workers exist...' error message
    message: Option<String>,

    /// Instance name of the action
    #[arg(long, default_value = "")]
    instance: String,

    /// Platform property of the action, NAME=VALUE; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    platform: Vec<String>,

    #[command(flatten)]
    scope: Scope,
}

/// A pool of a namespace.
#[derive(Debug, Args)]
struct PoolOptions {
    /// Name of the pool
    name: String,

    /// Namespace of the pool; by default that of the context
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    #[command(flatten)]
    cluster: ClusterOptions,
}

#[derive(Debug, Args)]
struct CordonOptions {
    #[command(flatten)]
    pool: PoolOptions,

    /// Give the pool actions again
    #[arg(long)]
    off: bool,
}

#[derive(Debug, Args)]
struct DrainOptions {
    #[command(flatten)]
    pool: PoolOptions,

    /// Wait until no action of the pool runs, at most this long
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,
}

#[derive(Debug, Args)]
struct BazelrcOptions {
    /// Pool on which actions should run; the first by default
    #[arg(long)]
    pool: Option<String>,

    /// Farm, if the namespace has several: the value of their label buildbarn.io/farm
    #[arg(long, default_value = "")]
    farm: String,

    /// Print the address of the frontend's Service instead of its name, for clients that cannot resolve
    /// cluster DNS names, such as those on the machine of neap up
    #[arg(long)]
    cluster_ip: bool,

    /// Namespace of the farm; by default that of the context
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    #[command(flatten)]
    cluster: ClusterOptions,
}

#[derive(Debug, Args)]
struct PlanOptions {
    /// Farm, if the namespace has several: the value of their label buildbarn.io/farm
    #[arg(default_value = "")]
    farm: String,

    /// Namespace of the farm; by default that of the context
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    #[command(flatten)]
    cluster: ClusterOptions,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Args)]
struct OperatorOptions {
    /// Address for /metrics; 0 for none
    #[arg(long, value_name = "ADDR", default_value = ":8080")]
    metrics_bind_address: String,

    /// Address for /healthz and /readyz; 0 for none
    #[arg(long, value_name = "ADDR", default_value = ":8081")]
    health_probe_bind_address: String,

    /// Elect a leader among several operators
    #[arg(long, num_args = 0..=1, default_value_t = false, default_missing_value = "true", require_equals = true)]
    leader_elect: bool,

    /// Namespace of the operator
    #[arg(long, env = "POD_NAMESPACE", default_value = neap_farm::api::OPERATOR_NAMESPACE)]
    operator_namespace: String,

    /// Watch only this namespace; may be repeated
    #[arg(long, value_name = "NAME")]
    watch_namespace: Vec<String>,

    /// Kubeconfig of the cluster, when running outside of it
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<std::path::PathBuf>,
}
