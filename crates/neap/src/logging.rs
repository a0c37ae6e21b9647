//! Logs: on stderr, for people on a terminal and as JSON anywhere else.
//!
//! `NEAP_LOG`, or else `RUST_LOG`, chooses what is logged, in the syntax of `tracing`.

use std::io::{self, IsTerminal};

use neap_kit::{
    telemetry::{self, Exports, Format},
    why::{self, Coded},
};
use rustix::fs::fstat;
use tracing_subscriber::{EnvFilter, fmt};

use crate::{
    cli::{Command, IdleCommand},
    exit::{Exit, Failure, chain},
};

/// Starts logging; `verbose` is how often `-v` was given. What a cluster runs also sends traces and
/// errors to where its variables say, as long as what this gives is held.
pub(crate) fn start(verbose: u8, command: &Command) -> Result<Exports, Failure> {
    let terminal = io::stderr().is_terminal();
    let filter = filter(verbose, terminal);
    // First, since whoever sends errors elsewhere looks at a panic before it passes it on.
    std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a task panicked")));
    let exports = if let Some(role) = role(command) {
        let format = if terminal { Format::Text } else { Format::Json };
        telemetry::subscribe(role, format, &filter).map_err(|error| unsaid(&error))?
    } else {
        print(&filter, terminal);
        Exports::default()
    };
    Ok(exports)
}

/// What it is to a cluster that runs it.
fn role(command: &Command) -> Option<&'static str> {
    match command {
        Command::Idle {
            command: IdleCommand::Operator { .. },
        } => Some("neap-idle-operator"),
        Command::Idle {
            command: IdleCommand::Resolver,
        } => Some("neap-idle-resolver"),
        _ => None,
    }
}

fn print(filter: &str, terminal: bool) {
    let builder = fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(io::stderr);
    if terminal {
        builder.with_ansi(wants_colour()).init();
    } else {
        builder.json().flatten_event(true).init();
    }
}

fn unsaid(error: &telemetry::SubscribeError) -> Failure {
    let code = error.code();
    let remedy = why::find(code.0).map_or("", |entry| entry.remedy);
    Failure::new(code.0, Exit::Refused, "cannot start so", &chain(error)).remedy(remedy)
}

/// Whether the log goes elsewhere than what is printed: what is in both need not be there twice.
pub(crate) fn apart() -> bool {
    let (printed, logged) = (fstat(io::stdout()), fstat(io::stderr()));
    match (printed, logged) {
        (Ok(printed), Ok(logged)) => {
            (printed.st_dev, printed.st_ino) != (logged.st_dev, logged.st_ino)
        }
        _ => true,
    }
}

fn filter(verbose: u8, terminal: bool) -> String {
    let chosen = ["NEAP_LOG", "RUST_LOG"].into_iter().find_map(|name| {
        let said = std::env::var(name).ok()?;
        EnvFilter::try_new(&said).is_ok().then_some(said)
    });
    chosen.unwrap_or_else(|| default_filter(verbose, terminal).to_owned())
}

/// A person at a terminal sees the stages on stdout and needs no log of them. A request that came to
/// nothing is told by whoever made it.
fn default_filter(verbose: u8, terminal: bool) -> &'static str {
    match (verbose, terminal) {
        (0, true) => "warn,kube_client::client::builder=off",
        (0, false) => "warn,kube_client::client::builder=off,neap=info,neap_pocket=info",
        (1, _) => "warn,neap=info,neap_pocket=info",
        _ => "info,neap=debug,neap_pocket=debug",
    }
}

fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
