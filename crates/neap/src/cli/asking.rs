//! The commands that ask: about a code, an object, a cluster, this machine.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::Output;

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  neap explain                         every code, in a line each; needs no server
  neap explain NT-UP-0001              what a code means, and what to do; needs no server
  neap explain deployment/web -n shop  why it is as it is
  neap explain pod web-0               the same with a space
  neap explain boats.sea.example/tug   any kind that the server has, by its conditions
  neap explain pvc/data -o json        for programs

Without --kubeconfig, KUBECONFIG and then ~/.kube/config are read, as kubectl does, and in a pod its
service account.";

const STATUS_EXAMPLES: &str = "\
Examples:
  neap status             the server, its nodes, and what runs in the context's namespace
  neap status -A          in all namespaces
  neap status -o json     for programs

It ends with 0 however the cluster is, as long as it could be asked; `neap check` ends with 1 if
something is wrong.";

const CHECK_EXAMPLES: &str = "\
Examples:
  neap check                      this machine, and the cluster of the kubeconfig
  neap check --data ./neap-data   the data folder too, and the server that it belongs to
  neap check -o short             only what is not well
  neap check idle                 whether services can sleep, and how those are that may

It ends with 0 if nothing failed, and with 1 otherwise. Notes (!) do not count as failures.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  neap audit verify --data ./neap-data
      The audit of a data folder, and its anchor if the server runs.

  neap audit verify --file ./audit.jsonl --kubeconfig ./neap.kubeconfig
      A copy of the file, and the anchor of that server.

Records are chained by hashes, also from one part to the next (audit.jsonl.000000000001 and so on), so
an edit, a gap, a move or a missing part is found in the files alone. That its end
was cut off, or that all of it was written anew, only the anchor in the cluster can tell.";

#[derive(Debug, Subcommand)]
pub(crate) enum Ask {
    /// Say what a code means, or why an object is as it is
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainOptions),

    /// Show what runs, and what is not well
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusOptions),

    /// Check this machine, the data folder, the server and what runs there
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckOptions),

    /// Look at the record of what was done
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
}

/// Which cluster is asked.
#[derive(Debug, Default, Args)]
pub(crate) struct ClusterOptions {
    /// The kubeconfig of the cluster; otherwise KUBECONFIG, ~/.kube/config, or the pod this runs in
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig, if it is not the current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// A code such as NT-UP-0001, or an object as KIND/NAME; without it, all codes are listed
    pub(crate) what: Option<String>,

    /// The name of the object, if WHAT is its kind
    pub(crate) name: Option<String>,

    /// The namespace of the object; otherwise that of the context
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct StatusOptions {
    /// The namespace to look at; otherwise that of the context
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        conflicts_with = "all_namespaces"
    )]
    pub(crate) namespace: Option<String>,

    /// Look at all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,

    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Only this, and the server: idle means services that sleep
    #[arg(value_enum, value_name = "WHAT")]
    pub(crate) what: Option<CheckWhat>,

    /// Check this data folder too, and ask the server that it belongs to
    #[arg(long, value_name = "DIR", env = "NEAP_DATA")]
    pub(crate) data: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t = CheckOutput::Full)]
    pub(crate) output: CheckOutput,
}

/// What can be checked by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckWhat {
    /// Services that sleep: operator, resolvers, and each of the services
    Idle,
}

/// How checks are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckOutput {
    /// Every check
    Full,
    /// What is not well
    Short,
    /// For programs
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Find out whether the record was changed or cut since it was written
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyOptions),
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").args(["data", "file"]).required(true).multiple(true)))]
pub(crate) struct VerifyOptions {
    /// The data folder whose audit it is
    #[arg(long, value_name = "DIR", env = "NEAP_DATA")]
    pub(crate) data: Option<PathBuf>,

    /// The audit file itself
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}
