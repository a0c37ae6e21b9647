//! Commands, flags and help texts.
//!
//! Declarations only: each command is implemented in the module of its name.

mod inspect;
mod output;

use std::{net::Ipv4Addr, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use self::inspect::{
    AuditCommand, AuditVerifyOptions, CheckOptions, CheckOutput, ClusterOptions,
    DefinitionsOptions, ExplainOptions, InspectCommand, RightsOptions, Scope, StatusOptions,
};
pub(crate) use self::output::{DataFormat, ListOutput, ListingOptions, Output};
use crate::{
    areas::{AreasCommand, AreasUpOptions, DemoCommand},
    sample::Sample,
    up::Listen,
};

const EXAMPLES: &str = "\
Examples:
  neap up                          start a small Kubernetes in memory, on 127.0.0.1:6443
  neap up --data ./neap-data       keep objects and credentials across restarts
  neap up --listen 127.0.0.1:0     listen on any free port
  neap up --detach                 start in the background, with ./neap-data; stop with: neap down
  neap status                      show what runs and what has problems
  neap explain pod/web-0           explain the state of an object
  neap explain NT-UP-0001          explain an error code and its remedy
  neap check                       check this machine and the cluster
  neap idle list                   list the services that can sleep, with their state
  source <(neap completion bash)   enable completion in this shell

Exit codes:
  0  success                       5  timed out waiting
  1  failed                        6  refused: a precondition is not met
  2  usage error                   7  server unreachable
  3  not found                   130  interrupted
  4  unauthenticated or forbidden";

const UP_EXAMPLES: &str = "\
Examples:
  neap up
      Keeps everything in memory and in a private temporary folder, which is removed at exit.

  neap up --data ./neap-data
      Stores objects, certificate authority, keys and token in ./neap-data,
      so the kubeconfig stays valid across restarts.

  neap up --listen 127.0.0.1:0 --kubeconfig ./neap.kubeconfig
      Listens on a free port and writes the kubeconfig to a file that stays after exit.

In another terminal, with the kubeconfig path that `neap up` prints:
  export KUBECONFIG=...
  kubectl get namespaces

~/.kube/config is never read or written. The server uses TLS with its own certificate
authority. The kubeconfig authenticates as the user admin, a member of system:masters;
--token-auth-file and --client-ca-file add users, and `kubectl create token` issues tokens for
service accounts. Requests with invalid credentials get 401. Ctrl-C or SIGTERM stops the server
cleanly.";

/// Build it. Release it. Run it. Rest it.
///
/// Neaptide in one binary. It includes a small Kubernetes that runs in this process and runs pods as
/// processes of this machine, without containers and without root.
#[derive(Debug, Parser)]
#[command(name = "neap", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Log more to stderr: -v for info, -vv for debug
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Print ASCII marks instead of Unicode symbols
    #[arg(long, global = true, env = "NEAP_ASCII", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) ascii: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the API server, a node and the controllers in this process until Ctrl-C
    #[command(after_help = UP_EXAMPLES)]
    Up(UpOptions),

    #[command(flatten)]
    Inspect(InspectCommand),

    #[command(flatten)]
    Area(AreasCommand),

    /// Show in `neap up` what happens when something goes wrong
    Demo(DemoCommand),

    /// Print the version of neap and of the Kubernetes API it serves
    Version {
        /// Output format
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },

    /// Run a program that the example pods use
    #[command(hide = true, subcommand)]
    Sample(Sample),

    /// Run one process of a container; used by `neap up`
    #[command(hide = true)]
    Launch {
        /// JSON file that describes the process
        description: PathBuf,
    },

    /// Stop a server that `neap up --detach` started, and wait until it has ended
    Down(DownOptions),

    /// Print the log of a server that `neap up --detach` started
    Logs(LogsOptions),

    /// Write the manual pages of all commands to a folder
    #[command(hide = true)]
    Manual {
        /// Existing folder
        folder: PathBuf,
    },

    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  source <(neap completion bash)
  neap completion zsh > \"${fpath[1]}/_neap\"
  neap completion fish > ~/.config/fish/completions/neap.fish")]
    Completion {
        /// Shell to generate the script for
        shell: Shell,
    },
}

/// The data folder of a server in the background, unless another is named.
const BACKGROUND_DATA: &str = "./neap-data";

/// Flags of `neap down`.
#[derive(Debug, Args)]
pub(crate) struct DownOptions {
    /// Data folder of the server
    #[arg(long, value_name = "DIR", env = "NEAP_DATA", default_value = BACKGROUND_DATA)]
    pub(crate) data: PathBuf,
}

/// Flags of `neap logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsOptions {
    /// Data folder of the server
    #[arg(long, value_name = "DIR", env = "NEAP_DATA", default_value = BACKGROUND_DATA)]
    pub(crate) data: PathBuf,

    /// Keep printing what the server writes until it ends
    #[arg(short, long)]
    pub(crate) follow: bool,
}

/// Flags of `neap up`.
#[derive(Debug, Args)]
pub(crate) struct UpOptions {
    /// Start the server in the background and return when it is ready; stop it with `neap down`
    #[arg(long)]
    pub(crate) detach: bool,

    /// Store objects, keys and token in this folder; by default nothing is stored, or with --detach
    /// ./neap-data is the folder
    #[arg(
        long,
        value_name = "DIR",
        env = "NEAP_DATA",
        default_value_if("detach", "true", BACKGROUND_DATA)
    )]
    pub(crate) data: Option<PathBuf>,

    /// Address to listen on: HOST:PORT, HOST or PORT. Port 0 picks a free port; the default host
    /// accepts connections from this machine only
    #[arg(long, value_name = "ADDR", env = "NEAP_LISTEN", default_value_t = Listen::default())]
    pub(crate) listen: Listen,

    /// Write the kubeconfig to this file and keep it after exit; by default it is written to the
    /// data folder or to a private temporary folder
    #[arg(long, value_name = "FILE", env = "NEAP_KUBECONFIG")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Also accept the tokens of this file, one per line:
    /// token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE", env = "NEAP_TOKEN_AUTH_FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,

    /// Also accept client certificates signed by these certificate authorities (PEM): the common
    /// name is the user, each organization is a group
    #[arg(long, value_name = "FILE", env = "NEAP_CLIENT_CA_FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,

    /// Run the API server only, without a node and without controllers
    #[arg(long, env = "NEAP_BARE", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) bare: bool,

    /// Network for the cluster IPs of services with --bare: 10.0.0.0/16 [default: 10.0.0.0/24]
    #[arg(long, value_name = "NETWORK", value_parser = network, requires = "bare")]
    pub(crate) service_range: Option<(Ipv4Addr, u8)>,

    /// TOML file with [[image]] tables that map images to commands of this machine
    #[arg(
        long,
        value_name = "FILE",
        env = "NEAP_IMAGES",
        conflicts_with = "bare"
    )]
    pub(crate) images: Option<PathBuf>,

    /// Delay before the service proxy follows endpoint changes, as on a slow network: 500ms, 2s
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration, conflicts_with = "bare")]
    pub(crate) service_lag: Duration,

    #[command(flatten)]
    pub(crate) areas: AreasUpOptions,

    /// Refuse pods that use hostPath volumes or run as root. Pods still see the files of this machine
    /// that the user who starts neap can read
    #[arg(long, conflicts_with = "bare")]
    pub(crate) restricted: bool,

    /// Accept requests without credentials as system:anonymous, which may read little more than
    /// the health of the server; false refuses them
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub(crate) anonymous_auth: bool,
}

/// Parses a duration such as 500ms, 2s, 1m or 3d.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const EXPECTED: &str = "write it like 500ms, 90s, 2h or 3d";
    let span = text
        .parse()
        .or_else(|_| in_days(text))
        .map_err(|_| EXPECTED)?;
    Duration::try_from(span).map_err(|_| "it cannot be negative".to_owned())
}

/// Parses a duration with days, each of 24 hours.
fn in_days(text: &str) -> Result<jiff::SignedDuration, jiff::Error> {
    let span: jiff::Span = text.parse()?;
    span.to_duration(jiff::SpanRelativeTo::days_are_24_hours())
}

/// Parses a timestamp. It must have a UTC offset, so that it is unambiguous.
pub(crate) fn timestamp(text: &str) -> Result<jiff::Timestamp, String> {
    let expected = "write it like 2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00";
    text.parse().map_err(|_| expected.to_owned())
}

/// Parses an IPv4 network that has room for services.
fn network(text: &str) -> Result<(Ipv4Addr, u8), String> {
    const EXPECTED: &str = "write it like 10.0.0.0/16, with a length from 8 to 28";
    let (address, length) = text.split_once('/').ok_or(EXPECTED)?;
    let (address, length): (Result<Ipv4Addr, _>, Result<u8, _>) = (address.parse(), length.parse());
    let (Ok(address), Ok(length @ 8..=28)) = (address, length) else {
        return Err(EXPECTED.to_owned());
    };
    let first = Ipv4Addr::from(u32::from(address) & (u32::MAX << (32 - length)));
    if first != address {
        return Err(format!(
            "{address} is not the first address of the network; write {first}/{length}"
        ));
    }
    Ok((address, length))
}
