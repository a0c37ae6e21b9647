//! `neap release`: commands about streams and releases, and the controllers as processes.

mod change;
pub(super) mod controllers;
mod example;
mod list;
mod moving;
pub(crate) mod original_flags;
mod plan;
pub(super) mod releases;
mod show;
mod upgrades;
mod validate;

use std::{io::Write, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args, Subcommand};
use neap_release::hand_over::Owner;

use self::controllers::{ControllerOptions, PayloadsOptions};
pub(super) use self::list::why;
use super::tools::ToolCommand;
use crate::{
    areas::AreaCommand,
    cli::{ListingOptions, Output, Scope, duration},
    exit::Failure,
    inspect::block_on,
    symbols::Symbols,
};

const ACCEPT_EXAMPLES: &str = "\
Examples:
  neap release accept 4.21.0-0.nightly-2026-01-02-030405 --reason 'the failure is JIRA-123'
  neap release accept 4.21.0-0.nightly-2026-01-02-030405 --clear    let the jobs decide again

An override takes precedence over the results of jobs. It does not replace the image: a release whose
image could not be created cannot be accepted.";

const REJECT_EXAMPLES: &str = "\
Examples:
  neap release reject 4.21.0-0.nightly-2026-01-02-030405 --reason 'it loses data, see JIRA-123'
  neap release reject 4.21.0-0.nightly-2026-01-02-030405 --clear    let the jobs decide again

An override takes precedence over the results of jobs. Tags that were published before stay.";

const RETRY_EXAMPLES: &str = "\
Examples:
  neap release retry 4.21.0-0.nightly-2026-01-02-030405             cut a new release of the same images
  neap release retry 4.21.0-0.nightly-2026-01-02-030405 --job aws   run one verification job once more";

const PLAN_HELP: &str = "\
The decision is made with the settings of the controller that looked at the stream last, which are part of
its state; flags override them. Nothing is written. Where the job configuration of Prow is not known, every
job of the stream counts as known.";

const SHADOW_HELP: &str = "\
Every release is judged by its recorded facts, Jobs and ProwJobs, and the result is compared with the phase in
its status. Nothing is written. neap release payloads --shadow does the same all the time.";

const HAND_OVER_HELP: &str = "\
OpenShift's release-controller owns streams whose configuration is in the annotation
release.openshift.io/config; a controller with --handed-over-only owns those whose configuration is in a
ConfigMap. The owner changes in two steps, and in between the stream has no owner. A change that was
interrupted is finished or undone by the same commands.";

const VALIDATE_HELP: &str = "\
Checks every *.json file below DIR, and the configurations of ImageStreams in manifests there: unknown
fields, values that are not valid, periodic jobs that are used twice. Each problem is printed with the file and the path of the field. Nothing is read from a
cluster and nothing is written.";

const APPLY_HELP: &str = "\
The file NAME.json is the configuration of the stream whose source is the ImageStream NAME. Nothing is
written if a file is not valid. A configuration that is too large for an annotation is written into the
ConfigMap NAME-release-config, which the annotation release.openshift.io/config-ref names.";

/// Manage streams of releases, or run their controllers
#[derive(Debug, Args)]
pub(crate) struct Command {
    #[command(subcommand)]
    command: ReleaseCommand,
}

impl AreaCommand for Command {
    fn run(self, symbols: Symbols, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            ReleaseCommand::Example(options) => block_on(example::run(&options, out)),
            ReleaseCommand::Streams(options) => block_on(list::streams(&options, out)),
            ReleaseCommand::List(options) => block_on(list::releases(&options, out)),
            ReleaseCommand::Show(options) => block_on(show::show(&options, out)),
            ReleaseCommand::Jobs(options) => block_on(show::jobs(&options, out)),
            ReleaseCommand::Plan(options) => block_on(plan::run(&options, symbols, out)),
            ReleaseCommand::Replay(options) => block_on(show::replay(&options, symbols, out)),
            ReleaseCommand::Accept(options) => {
                block_on(change::decide(&options, "Accepted", symbols, out))
            }
            ReleaseCommand::Reject(options) => {
                block_on(change::decide(&options, "Rejected", symbols, out))
            }
            ReleaseCommand::Retry(options) => block_on(change::retry(&options, symbols, out)),
            ReleaseCommand::Pause(options) => block_on(change::pause(&options, symbols, out)),
            ReleaseCommand::Validate(options) => validate::validate(&options, symbols, out),
            ReleaseCommand::Apply(options) => block_on(validate::apply(&options, symbols, out)),
            ReleaseCommand::Upgrades(options) => block_on(upgrades::run(&options, out)),
            ReleaseCommand::Shadow(options) => block_on(moving::shadow(&options, out)),
            ReleaseCommand::HandOver(options) => {
                block_on(moving::move_to(Owner::Neaptide, &options, symbols, out))
            }
            ReleaseCommand::HandBack(options) => {
                block_on(moving::move_to(Owner::Original, &options, symbols, out))
            }
            ReleaseCommand::Controller(options) => controllers::controller(*options, symbols, out),
            ReleaseCommand::Payloads(options) => controllers::payloads(*options),
            ReleaseCommand::Tools(command) => command.run(out),
        }
    }

    fn role(&self) -> Option<&'static str> {
        match &self.command {
            ReleaseCommand::Controller(_) => Some("neap-release-controller"),
            ReleaseCommand::Payloads(_) => Some("neap-release-payloads"),
            ReleaseCommand::Tools(command) => command.role(),
            _ => None,
        }
    }
}

#[derive(Debug, Subcommand)]
enum ReleaseCommand {
    /// Print the example of a stream, with the registry of this neap up, to be piped into kubectl apply -f -
    Example(example::ExampleOptions),

    /// List the streams: what each does, or why it does nothing
    Streams(ListOptions),

    /// List the releases, of one stream or of all
    List(ListOptions),

    /// Show one release: its verdict, the reason and its life so far
    Show(NameOptions),

    /// Show the verification jobs of a release, with every attempt
    Jobs(JobsOptions),

    /// Show what the controller would do now about a stream, and why not more
    #[command(after_help = PLAN_HELP)]
    Plan(PlanOptions),

    /// Compute the verdict about a release again from the recorded facts
    Replay(NameOptions),

    /// Accept a release, whatever its jobs say
    #[command(after_help = ACCEPT_EXAMPLES)]
    Accept(DecideOptions),

    /// Reject a release, whatever its jobs say
    #[command(after_help = REJECT_EXAMPLES)]
    Reject(DecideOptions),

    /// Try a release or one of its jobs again
    #[command(after_help = RETRY_EXAMPLES)]
    Retry(RetryOptions),

    /// Pause or resume a stream: a paused one gets no new releases
    Pause(PauseOptions),

    /// Check the configurations of streams below a directory
    #[command(after_help = VALIDATE_HELP)]
    Validate(ValidateOptions),

    /// Put the configurations of a directory onto their ImageStreams
    #[command(after_help = APPLY_HELP)]
    Apply(ApplyOptions),

    /// List the recorded results of upgrades, from or to one release or of all
    Upgrades(UpgradesOptions),

    /// List the releases about which another controller has a verdict that would differ
    #[command(after_help = SHADOW_HELP)]
    Shadow(ShadowOptions),

    /// Make neap release controller the owner of a stream of OpenShift's release-controller
    #[command(after_help = HAND_OVER_HELP)]
    HandOver(MoveOptions),

    /// Make OpenShift's release-controller the owner of a stream again
    #[command(after_help = HAND_OVER_HELP)]
    HandBack(MoveOptions),

    /// Run the release controller: streams, Jobs, verification, publication, garbage collection
    Controller(Box<ControllerOptions>),

    /// Run the payload controller, which gives the verdicts
    Payloads(Box<PayloadsOptions>),

    #[command(flatten)]
    Tools(ToolCommand),
}

#[derive(Debug, Args)]
struct ListOptions {
    /// Name of a stream
    stream: Option<String>,

    #[command(flatten)]
    scope: Scope,

    #[command(flatten)]
    listing: ListingOptions,
}

#[derive(Debug, Args)]
struct NameOptions {
    /// Name of the release
    name: String,

    #[command(flatten)]
    scope: Scope,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Args)]
struct JobsOptions {
    /// Name of the release
    name: String,

    #[command(flatten)]
    scope: Scope,

    #[command(flatten)]
    listing: ListingOptions,
}

#[derive(Debug, Args)]
struct UpgradesOptions {
    /// Name of a release
    release: Option<String>,

    #[command(flatten)]
    scope: Scope,

    #[command(flatten)]
    listing: ListingOptions,
}

#[derive(Debug, Args)]
struct ShadowOptions {
    /// Namespace with the Secret of run tokens; by default that of the command
    #[arg(long, value_name = "NAMESPACE")]
    release_namespace: Option<String>,

    #[command(flatten)]
    scope: Scope,

    #[command(flatten)]
    listing: ListingOptions,
}

#[derive(Debug, Args)]
struct MoveOptions {
    /// Name of the stream, or of its source ImageStream
    stream: String,

    /// How long the stream is without an owner, so that what the old one has begun ends
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    wait: Duration,

    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Args)]
struct PlanOptions {
    /// Name of the stream, or of its source ImageStream
    stream: String,

    /// File or folder with the job configuration of Prow; may be repeated
    #[arg(long, visible_alias = "prow-config", value_name = "PATH")]
    job_config: Vec<PathBuf>,

    /// Namespace of the Jobs that assemble releases
    #[arg(long, value_name = "NAMESPACE")]
    job_namespace: Option<String>,

    /// Namespace of ProwJobs
    #[arg(long, value_name = "NAMESPACE")]
    prow_namespace: Option<String>,

    /// Registry of ImageStreams whose status names no public repository
    #[arg(long, value_name = "HOST")]
    registry: Option<String>,

    #[command(flatten)]
    scope: Scope,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["reason", "clear"]).required(true)))]
struct DecideOptions {
    /// Name of the release
    name: String,

    /// Why; shown with the release, in Events and in the audit
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Remove the override, so that the jobs decide again
    #[arg(long)]
    clear: bool,

    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Args)]
struct RetryOptions {
    /// Name of the release
    name: String,

    /// Run this verification job once more
    #[arg(long, value_name = "NAME")]
    job: Option<String>,

    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["reason", "resume"]).required(true)))]
struct PauseOptions {
    /// Name of the stream
    stream: String,

    /// Why; shown with the stream
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Resume the stream
    #[arg(long)]
    resume: bool,

    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Args)]
struct ValidateOptions {
    /// The directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// The file with the global qualifiers
    #[arg(long, value_name = "FILE")]
    qualifiers: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ApplyOptions {
    /// The directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    #[command(flatten)]
    scope: Scope,
}
