//! `neap fleet`: commands about clusters, and the provider process.

mod apply;
pub(super) mod client;
mod clusters;
mod rp;
mod versions;

use std::{io::Write, path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use crate::{
    areas::AreaCommand,
    cli::{ClusterOptions, ListingOptions, duration},
    exit::Failure,
    inspect::block_on,
    symbols::Symbols,
};

const CREATE_EXAMPLES: &str = "\
Examples:
  neap fleet create blue                      create a cluster with default values, and wait
  neap fleet create blue --no-wait            return when the request was accepted
  neap fleet create blue --file cluster.json  with the body of a PUT
  neap fleet create blue --dry-run            show what would happen

Follow it in another terminal: neap operations watch";

/// Manage clusters, or run the provider that installs them
#[derive(Debug, Args)]
pub(crate) struct Command {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Run the provider: frontend, backend, or both
    Rp(rp::RpOptions),

    /// Create a cluster
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateOptions),

    /// List the clusters of the subscription
    List(ListOptions),

    /// Show one cluster as JSON
    Show(NameOptions),

    /// Delete a cluster
    Delete(DeleteOptions),

    /// Print the password of kubeadmin, or a kubeconfig of an administrator
    Credentials(CredentialsOptions),

    /// List or change the versions that can be installed
    Versions {
        #[command(subcommand)]
        command: VersionsCommand,
    },

    /// Validate the body of a PUT, without a provider
    Validate(ValidateOptions),
}

/// Where the provider is.
#[derive(Debug, Args)]
pub(crate) struct ProviderArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,

    /// URL of the provider; by default that of the `neap up` of the kubeconfig
    #[arg(long, value_name = "URL", env = "NEAP_FLEET_SERVER", requires = "ca")]
    pub(super) server: Option<String>,

    /// Certificate authority of the provider, PEM
    #[arg(long, value_name = "FILE", env = "NEAP_FLEET_CA")]
    pub(super) ca: Option<PathBuf>,

    /// Certificate with which the provider recognises an administrator, PEM
    #[arg(
        long,
        value_name = "FILE",
        env = "NEAP_FLEET_CLIENT_CERT",
        requires = "client_key"
    )]
    pub(super) client_cert: Option<PathBuf>,

    /// Private key of that certificate, PEM
    #[arg(long, value_name = "FILE", env = "NEAP_FLEET_CLIENT_KEY")]
    pub(super) client_key: Option<PathBuf>,

    /// Subscription of the clusters
    #[arg(long, value_name = "ID", env = "NEAP_FLEET_SUBSCRIPTION")]
    pub(super) subscription: Option<String>,

    /// Resource group of the clusters; `fleet` if absent, and all of them in a list
    #[arg(short = 'g', long, value_name = "NAME")]
    pub(super) resource_group: Option<String>,
}

impl ProviderArgs {
    /// Whether they name a provider, and not the cluster of a kubeconfig.
    pub(crate) fn is_named(&self) -> bool {
        self.server.is_some()
    }
}

#[derive(Debug, Args)]
struct CreateOptions {
    /// Name of the cluster
    name: String,

    /// JSON file with the body of the request; by default a small cluster
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Version of OpenShift; by default that of the provider
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    /// Show what would happen, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Return when the request was accepted
    #[arg(long)]
    no_wait: bool,

    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = duration)]
    timeout: Duration,

    #[command(flatten)]
    provider: ProviderArgs,
}

#[derive(Debug, Args)]
struct ListOptions {
    #[command(flatten)]
    listing: ListingOptions,

    #[command(flatten)]
    provider: ProviderArgs,
}

#[derive(Debug, Args)]
struct NameOptions {
    /// Name of the cluster
    name: String,

    #[command(flatten)]
    provider: ProviderArgs,
}

#[derive(Debug, Args)]
struct DeleteOptions {
    /// Name of the cluster
    name: String,

    /// Return when the request was accepted
    #[arg(long)]
    no_wait: bool,

    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = duration)]
    timeout: Duration,

    #[command(flatten)]
    provider: ProviderArgs,
}

#[derive(Debug, Args)]
struct CredentialsOptions {
    /// Name of the cluster
    name: String,

    /// Print a kubeconfig instead of the password
    #[arg(long)]
    kubeconfig_of_admin: bool,

    #[command(flatten)]
    provider: ProviderArgs,
}

#[derive(Debug, Subcommand)]
enum VersionsCommand {
    /// List the versions that can be installed
    List(ListOptions),

    /// Make the versions and role sets of a file those of the provider: create, change, and delete what is not in it
    Apply(ApplyOptions),
}

#[derive(Debug, Args)]
struct ApplyOptions {
    /// JSON file with {"versions": […], "roleSets": […]}; a list that is absent is left alone
    file: PathBuf,

    /// Show what would happen, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    provider: ProviderArgs,
}

#[derive(Debug, Args)]
struct ValidateOptions {
    /// JSON file with the body of a PUT
    file: PathBuf,

    /// API version of the body
    #[arg(long, value_name = "VERSION", default_value = "2025-07-25")]
    api_version: String,

    /// Location of the provider
    #[arg(long, value_name = "NAME", default_value = "local")]
    location: String,

    /// Resource id of the cluster; by default one of the subscription in the body
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

impl AreaCommand for Command {
    fn run(self, symbols: Symbols, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            FleetCommand::Rp(options) => rp::run(options),
            FleetCommand::Create(options) => block_on(clusters::create(&options, symbols, out)),
            FleetCommand::List(options) => block_on(clusters::list(&options, out)),
            FleetCommand::Show(options) => block_on(clusters::show(&options, out)),
            FleetCommand::Delete(options) => block_on(clusters::delete(&options, symbols, out)),
            FleetCommand::Credentials(options) => block_on(clusters::credentials(&options, out)),
            FleetCommand::Versions { command } => match command {
                VersionsCommand::List(options) => block_on(versions::list(&options, out)),
                VersionsCommand::Apply(options) => block_on(apply::apply(&options, symbols, out)),
            },
            FleetCommand::Validate(options) => versions::validate(&options, symbols, out),
        }
    }

    fn role(&self) -> Option<&'static str> {
        match self.command {
            FleetCommand::Rp(_) => Some("neap-fleet-rp"),
            _ => None,
        }
    }
}
