//! Logs: on stderr, for people on a terminal and as JSON anywhere else.
//!
//! `NEAP_LOG`, or else `RUST_LOG`, chooses what is logged, in the syntax of `tracing`.

use std::io::{self, IsTerminal};

use rustix::fs::fstat;
use tracing_subscriber::{EnvFilter, fmt};

/// Starts logging; `verbose` is how often `-v` was given.
pub(crate) fn start(verbose: u8) {
    let terminal = io::stderr().is_terminal();
    let builder = fmt()
        .with_env_filter(filter(verbose, terminal))
        .with_writer(io::stderr);
    if terminal {
        builder.with_ansi(wants_colour()).init();
    } else {
        builder.json().flatten_event(true).init();
    }
    std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a task panicked")));
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

fn filter(verbose: u8, terminal: bool) -> EnvFilter {
    let chosen = ["NEAP_LOG", "RUST_LOG"]
        .into_iter()
        .find_map(|name| EnvFilter::try_from_env(name).ok());
    chosen.unwrap_or_else(|| EnvFilter::new(default_filter(verbose, terminal)))
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
