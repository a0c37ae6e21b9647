//! Logs go to stderr: as text on a terminal, otherwise as JSON.
//!
//! `NEAP_LOG`, or else `RUST_LOG`, holds the filter, in the syntax of `tracing`.

use std::io::{self, IsTerminal};

use neap_kit::{
    telemetry::{self, Exports, Format},
    why::{self, Coded},
};
use rustix::fs::fstat;
use tracing_subscriber::{EnvFilter, fmt};

use crate::{
    cli::Command,
    exit::{Exit, Failure, chain},
};

/// Starts logging; `verbose` is the number of `-v` flags. The operator and the resolver also export
/// traces and errors as their environment configures, until the returned value is dropped.
pub(crate) fn start(verbose: u8, command: &Command) -> Result<Exports, Failure> {
    let terminal = io::stderr().is_terminal();
    let filter = filter(verbose, terminal, role(command).is_some());
    // Before `subscribe`: the Sentry hook reports a panic and then calls the hook installed here.
    std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "task panicked")));
    let exports = if let Some(role) = role(command) {
        let format = if terminal { Format::Text } else { Format::Json };
        telemetry::subscribe(role, format, &filter).map_err(|error| refused(&error))?
    } else {
        print(&filter, terminal);
        Exports::default()
    };
    Ok(exports)
}

/// The service name in traces, for commands that a cluster runs.
fn role(command: &Command) -> Option<&'static str> {
    match command {
        Command::Area(command) => command.role(),
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

fn refused(error: &telemetry::SubscribeError) -> Failure {
    let code = error.code();
    let remedy = why::find(code.0).map_or("", |entry| entry.remedy);
    Failure::new(
        code.0,
        Exit::Refused,
        "cannot start logging and tracing",
        &chain(error),
    )
    .remedy(remedy)
}

/// Whether stderr and stdout are different files. If they are the same, messages that are printed to
/// stdout are not logged as well.
pub(crate) fn separate_from_stdout() -> bool {
    let (printed, logged) = (fstat(io::stdout()), fstat(io::stderr()));
    match (printed, logged) {
        (Ok(printed), Ok(logged)) => {
            (printed.st_dev, printed.st_ino) != (logged.st_dev, logged.st_ino)
        }
        _ => true,
    }
}

fn filter(verbose: u8, terminal: bool, is_role: bool) -> String {
    let chosen = ["NEAP_LOG", "RUST_LOG"].into_iter().find_map(|name| {
        let filter = std::env::var(name).ok()?;
        EnvFilter::try_new(&filter).is_ok().then_some(filter)
    });
    let without_requests = if verbose == 0 && !is_role {
        NO_ACCESS_LOG
    } else {
        ""
    };
    let default = || default_filter(verbose, terminal).to_owned() + without_requests;
    chosen.unwrap_or_else(default)
}

/// `neap up` serves programs on this machine: a line for each of their requests would hide the rest. A process
/// of a cluster logs them.
const NO_ACCESS_LOG: &str = ",neap_kit::http::access=warn";

/// On a terminal the start-up transcript on stdout replaces the info messages. Failed requests are
/// not logged by kube, because the caller reports them.
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
