//! Flags of the read-only commands: `explain`, `status`, `check` and `audit`.

use std::path::PathBuf;

use clap::{
    ArgGroup, Args, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser},
};

use super::Output;
use crate::areas;

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  neap explain                         list all error codes; needs no server
  neap explain NT-UP-0001              explain an error code and its remedy; needs no server
  neap explain deployment/web -n shop  explain the state of an object
  neap explain pod web-0               the same, with kind and name as two arguments
  neap explain boats.sea.example/tug   any kind that the server has, by its conditions
  neap explain pvc/data -o json        print JSON

Without --kubeconfig, neap reads KUBECONFIG, then ~/.kube/config, as kubectl does, and in a pod the
service account.";

const STATUS_EXAMPLES: &str = "\
Examples:
  neap status             show the server, its nodes and the workloads of the context's namespace
  neap status -A          show all namespaces
  neap status -o json     print JSON

The exit code is 0 if the cluster could be read, even if objects have problems; `neap check` exits
with 1 in that case.";

const CHECK_EXAMPLES: &str = "\
Examples:
  neap check                      check this machine and the cluster of the kubeconfig
  neap check --data ./neap-data   also check the data folder, and the server that uses it
  neap check -o short             print only problems
  neap check idle                 check the idle operator, the resolvers and the services

The exit code is 0 if no check failed, otherwise 1. Notes (!) are not failures.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  neap audit verify --data ./neap-data
      Verifies the audit log of a data folder, and its anchor if the server runs.

  neap audit verify --file ./audit.jsonl --kubeconfig ./neap.kubeconfig
      Verifies a copy of the file against the anchor of that server.

Records form a hash chain that continues from one part of the log to the next
(audit.jsonl.000000000001 and so on), so the files alone reveal an edit, a gap, a move or a missing
part. Only the anchor in the cluster reveals a truncated end or a log that was rewritten as a whole.";

const DEFINITIONS_EXAMPLES: &str = "\
Examples:
  neap definitions                      print all definitions as YAML
  neap definitions idle | kubectl apply --server-side -f -
  neap definitions release --install    create or update them in the cluster of the kubeconfig";

const RIGHTS_EXAMPLES: &str = "\
Examples:
  neap rights release -n neap-release   print ClusterRoles, Roles and bindings for this namespace
  neap rights release | kubectl apply -f -

Roles name each resource and verb; there is no wildcard among them.";

#[derive(Debug, Subcommand)]
pub(crate) enum InspectCommand {
    /// Explain an error code, or the state of an object
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainOptions),

    /// Show what runs and what has problems
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusOptions),

    /// Check this machine, the data folder, the server and its objects
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckOptions),

    /// Inspect the audit log
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },

    /// Print or install the definitions of the custom resources
    #[command(after_help = DEFINITIONS_EXAMPLES)]
    Definitions(DefinitionsOptions),

    /// Print the roles that the processes need in a cluster, and their bindings
    #[command(after_help = RIGHTS_EXAMPLES)]
    Rights(RightsOptions),
}

/// Flags that select the cluster.
#[derive(Debug, Default, Args)]
pub(crate) struct ClusterOptions {
    /// Kubeconfig file; by default KUBECONFIG, ~/.kube/config, or the service account of this pod
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig; by default the current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// Flags that select cluster and namespace.
#[derive(Debug, Args)]
pub(crate) struct Scope {
    /// Namespace; by default that of the context
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        conflicts_with = "all_namespaces"
    )]
    pub(crate) namespace: Option<String>,

    /// All namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// Error code such as NT-UP-0001, or object as KIND/NAME; without it, all codes are listed
    pub(crate) what: Option<String>,

    /// Name of the object, if WHAT is its kind
    pub(crate) name: Option<String>,

    /// Namespace of the object; by default that of the context
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct StatusOptions {
    /// Namespace to show; by default that of the context
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        conflicts_with = "all_namespaces"
    )]
    pub(crate) namespace: Option<String>,

    /// Show all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Check only the server and this area
    #[arg(value_name = "AREA", value_parser = PossibleValuesParser::new(checked_areas()))]
    pub(crate) area: Option<String>,

    /// Also check this data folder, and the server that uses it
    #[arg(long, value_name = "DIR", env = "NEAP_DATA")]
    pub(crate) data: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = CheckOutput::Full)]
    pub(crate) output: CheckOutput,
}

/// Output format of `neap check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckOutput {
    /// Every check
    Full,
    /// Only notes and failures
    Short,
    /// YAML
    Yaml,
    /// JSON
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Verify that the audit log was not changed or truncated
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(AuditVerifyOptions),
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").args(["data", "file"]).required(true).multiple(true)))]
pub(crate) struct AuditVerifyOptions {
    /// Data folder with the audit log
    #[arg(long, value_name = "DIR", env = "NEAP_DATA")]
    pub(crate) data: Option<PathBuf>,

    /// Audit log file
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// The areas that have a check, each with what it is about.
fn checked_areas() -> impl Iterator<Item = PossibleValue> {
    let areas = areas::all().filter(|area| area.check.is_some());
    areas.map(|area| PossibleValue::new(area.name).help(area.title))
}

#[derive(Debug, Args)]
pub(crate) struct DefinitionsOptions {
    /// Areas; by default all
    #[arg(value_name = "AREA", value_parser = PossibleValuesParser::new(area_names()))]
    pub(crate) areas: Vec<String>,

    /// Install them, and print what was done
    #[arg(long)]
    pub(crate) install: bool,

    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}

#[derive(Debug, Args)]
pub(crate) struct RightsOptions {
    /// Areas; by default all
    #[arg(value_name = "AREA", value_parser = PossibleValuesParser::new(area_names()))]
    pub(crate) areas: Vec<String>,

    /// Namespace of the processes, with their ServiceAccounts
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    pub(crate) namespace: String,
}

/// All areas, each with what it is about.
fn area_names() -> impl Iterator<Item = PossibleValue> {
    areas::all().map(|area| PossibleValue::new(area.name).help(area.title))
}
