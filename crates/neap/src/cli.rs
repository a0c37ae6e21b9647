//! The commands, their flags, and the help that teaches them.
//!
//! Text and shape only: what a command does lives in the module of its name.

mod asking;
mod idle;

use std::{net::Ipv4Addr, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use self::asking::{
    Ask, AuditCommand, CheckOptions, CheckOutput, CheckWhat, ClusterOptions, ExplainOptions,
    StatusOptions, VerifyOptions,
};
pub(crate) use self::idle::{
    IdleCommand, KeepOptions, ListOptions, Scope, ShowOptions, SleepOptions, UninstallOptions,
    WakeOptions, Which,
};
use crate::{sample::Sample, up::Listen};

const EXAMPLES: &str = "\
Examples:
  neap up                          a small Kubernetes in memory, on 127.0.0.1:6443
  neap up --data ./neap-data       the same, and it is all still there tomorrow
  neap up --listen 127.0.0.1:0     on any free port
  neap status                      what runs there, and what is not well
  neap explain pod/web-0           why it is as it is
  neap explain NT-UP-0001          what a code means, and what to do
  neap check                       whether this machine and the cluster are well
  neap idle list                   the services that may sleep, and what they do
  source <(neap completion bash)   completion for this shell

Exit codes:
  0  done                          5  timed out waiting
  1  failed                        6  refused: a precondition does not hold
  2  wrong usage                   7  server unreachable
  3  not found                   130  interrupted
  4  not signed in or not allowed";

const UP_EXAMPLES: &str = "\
Examples:
  neap up
      Everything is in memory and in a private temporary folder; nothing is left behind.

  neap up --data ./neap-data
      Objects, certificate authority, keys and token are kept in ./neap-data,
      so yesterday's kubeconfig works today.

  neap up --listen 127.0.0.1:0 --kubeconfig ./neap.kubeconfig
      A free port, and a kubeconfig where you want it; that file stays.

In another terminal, with the kubeconfig that `neap up` names:
  export KUBECONFIG=...
  kubectl get namespaces

~/.kube/config is never read or written. The server speaks TLS with its own certificate
authority. The kubeconfig is for the user admin, who may do everything; --token-auth-file and
--client-ca-file name others, and service accounts get tokens with `kubectl create token`.
Wrong credentials are answered with 401. Ctrl-C or SIGTERM stops it cleanly.";

/// Build it. Release it. Run it. Rest it.
///
/// Neaptide in one binary. Today it holds a small Kubernetes that runs in this process, with pods
/// that are processes of this machine: no container, no root.
#[derive(Debug, Parser)]
#[command(name = "neap", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Log more on stderr: -v what happens, -vv how
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Print plain ASCII marks in place of symbols
    #[arg(long, global = true, env = "NEAP_ASCII", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) ascii: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the API, a node and the controllers in this process, and stop them with Ctrl-C
    #[command(after_help = UP_EXAMPLES)]
    Up(UpOptions),

    #[command(flatten)]
    Ask(Ask),

    /// Look at services that sleep, wake them, or be a part of what puts them to sleep
    Idle {
        #[command(subcommand)]
        command: IdleCommand,
    },

    /// Print the version of neap and of the Kubernetes API it serves
    Version {
        /// How to print it
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },

    /// Run a program of the examples; their pods do this
    #[command(hide = true, subcommand)]
    Sample(Sample),

    /// Run one process of a container; `neap up` does this itself
    #[command(hide = true)]
    Launch {
        /// What to run
        description: PathBuf,
    },

    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  source <(neap completion bash)
  neap completion zsh > \"${fpath[1]}/_neap\"
  neap completion fish > ~/.config/fish/completions/neap.fish")]
    Completion {
        /// The shell to complete in
        shell: Shell,
    },
}

/// What `neap up` was asked for.
#[derive(Debug, Args)]
pub(crate) struct UpOptions {
    /// Keep objects, keys and token in this folder; without it nothing is kept
    #[arg(long, value_name = "DIR", env = "NEAP_DATA")]
    pub(crate) data: Option<PathBuf>,

    /// Where to listen: HOST:PORT, HOST or PORT. Port 0 picks a free one; only loopback is
    /// reachable unless another address is named
    #[arg(long, value_name = "ADDR", env = "NEAP_LISTEN", default_value_t = Listen::default())]
    pub(crate) listen: Listen,

    /// Write the kubeconfig to this file, and leave it there at the end; without it, it is in
    /// the data folder or in a private temporary one
    #[arg(long, value_name = "FILE", env = "NEAP_KUBECONFIG")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Know the users of this table too: a line for each token with
    /// token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE", env = "NEAP_TOKEN_AUTH_FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,

    /// Know the holders of client certificates that these authorities (PEM) signed: the common
    /// name is the user, each organization is a group
    #[arg(long, value_name = "FILE", env = "NEAP_CLIENT_CA_FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,

    /// The API alone: no node and no controllers, so nothing runs and nothing is done about objects
    #[arg(long, env = "NEAP_BARE", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) bare: bool,

    /// Where services of a bare API get their addresses, as a network: 10.0.0.0/16 [default: 10.0.0.0/24]
    #[arg(long, value_name = "NETWORK", value_parser = network, requires = "bare")]
    pub(crate) service_range: Option<(Ipv4Addr, u8)>,

    /// Which commands of this machine run for which images: a TOML file with [[image]] tables
    #[arg(
        long,
        value_name = "FILE",
        env = "NEAP_IMAGES",
        conflicts_with = "bare"
    )]
    pub(crate) images: Option<PathBuf>,

    /// Connections to services follow their pods so much later, as on a slow network: 500ms, 2s
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration, conflicts_with = "bare")]
    pub(crate) service_lag: Duration,

    /// Leave services that sleep to an operator and resolvers that you install, as deploy/idle has them
    #[arg(long, conflicts_with = "bare")]
    pub(crate) without_idle: bool,

    /// Take a request without credentials for one of system:anonymous, who may see little more
    /// than whether the server is well; with false it is refused
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub(crate) anonymous_auth: bool,
}

/// A time as people write it: 500ms, 2s, 1m, 3d.
fn duration(text: &str) -> Result<Duration, String> {
    const WANTS: &str = "write it like 500ms, 90s, 2h or 3d";
    let span = text.parse().or_else(|_| in_days(text)).map_err(|_| WANTS)?;
    Duration::try_from(span).map_err(|_| "it cannot be negative".to_owned())
}

/// The same with days, of which each has 24 hours here.
fn in_days(text: &str) -> Result<jiff::SignedDuration, jiff::Error> {
    let span: jiff::Span = text.parse()?;
    span.to_duration(jiff::SpanRelativeTo::days_are_24_hours())
}

/// A moment, with what it is in: nobody has to guess whose noon is meant.
fn moment(text: &str) -> Result<jiff::Timestamp, String> {
    let wants = "write it like 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00";
    text.parse().map_err(|_| wants.to_owned())
}

/// A network in IPv4 that has room for services.
fn network(text: &str) -> Result<(Ipv4Addr, u8), String> {
    const WANTS: &str = "write it like 10.0.0.0/16, with a length from 8 to 28";
    let (address, length) = text.split_once('/').ok_or(WANTS)?;
    let (address, length): (Result<Ipv4Addr, _>, Result<u8, _>) = (address.parse(), length.parse());
    let (Ok(address), Ok(length @ 8..=28)) = (address, length) else {
        return Err(WANTS.to_owned());
    };
    let first = Ipv4Addr::from(u32::from(address) & (u32::MAX << (32 - length)));
    if first != address {
        return Err(format!(
            "the network begins earlier; write {first}/{length}"
        ));
    }
    Ok((address, length))
}

/// How a command prints what it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Text,
    /// For programs
    Json,
}
