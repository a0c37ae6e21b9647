//! The start-up transcript of `neap up` on stdout: each step with its time, then the next steps.
//!
//! Write errors are ignored: a reader that closes the pipe must not stop the server.

use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use neap_pocket::environment::Clock;

use crate::{
    printable::{printable, shell_path},
    symbols::Symbols,
    version,
};

/// Interval of the messages about containers that have not ended.
const WAIT_REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Prints each step when it is done.
pub(super) struct Transcript {
    out: Box<dyn Write + Send>,
    clock: Arc<dyn Clock>,
    symbols: Symbols,
    began: Timestamp,
    last: Timestamp,
}

impl Transcript {
    /// Prints the headline; the first step starts now.
    pub(super) fn start(clock: Arc<dyn Clock>, symbols: Symbols) -> Self {
        Self::on(Box::new(io::stdout()), clock, symbols)
    }

    fn on(out: Box<dyn Write + Send>, clock: Arc<dyn Clock>, symbols: Symbols) -> Self {
        let began = clock.now();
        let mut transcript = Self {
            out,
            clock,
            symbols,
            began,
            last: began,
        };
        transcript.line(&format!(
            "neap {} {} Kubernetes API {} in this process",
            version::NEAP,
            symbols.dot,
            api_minor_version()
        ));
        transcript
    }

    /// Prints a step that is done; the next one starts now.
    pub(super) fn done(&mut self, step: &str, detail: &str) {
        let now = self.clock.now();
        let time = format_duration(now.duration_since(self.last));
        self.last = now;
        self.line(&format!(
            " {} {step:<12} {detail:<56} {time:>7}",
            self.symbols.done
        ));
    }

    /// Prints a note for the user.
    pub(super) fn note(&mut self, text: &str) {
        self.line(&format!(" {} {:<12} {text}", self.symbols.note, "note"));
    }

    /// Prints that the server is ready; `stop` tells how to stop it and what remains.
    pub(super) fn ready(&mut self, kubeconfig: &Path, stop: &str) {
        let time = format_duration(self.clock.now().duration_since(self.began));
        let kubeconfig = shell_path(kubeconfig);
        self.line(&format!("Ready in {time}."));
        self.line(&format!("  kubectl  export KUBECONFIG={kubeconfig}"));
        self.line("  try      kubectl get namespaces");
        self.line(&format!("  stop     {stop}"));
    }

    /// Prints the number of containers that are being stopped; after the first message, the number that
    /// still runs.
    pub(super) fn stopping(&mut self, containers: usize, reported: bool) {
        let s = if containers == 1 { "" } else { "s" };
        let has = if containers == 1 { "has" } else { "have" };
        self.line(&if reported {
            format!("  waiting  {containers} container{s} {has} not stopped yet")
        } else {
            format!("Stopping {containers} container{s}; press Ctrl-C again to kill them.")
        });
    }

    /// Sleeps until the next message about containers is due.
    pub(super) fn wait_report_interval(&self) -> impl Future<Output = ()> + use<> {
        self.clock.sleep(WAIT_REPORT_INTERVAL)
    }

    /// Prints the last line.
    pub(super) fn stopped(&mut self, data: Option<&Path>) {
        match data {
            Some(data) => self.line(&format!("Stopped. All data is in {}.", data.display())),
            None => self.line("Stopped."),
        }
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}", printable(text.trim_end()));
        let _ = self.out.flush();
    }
}

/// `v1.36` for `v1.36.3`.
fn api_minor_version() -> &'static str {
    version::KUBERNETES
        .rsplit_once('.')
        .map_or(version::KUBERNETES, |(api_minor_version, _patch)| {
            api_minor_version
        })
}

fn format_duration(time: SignedDuration) -> String {
    match time.as_millis() {
        millis @ ..1000 => format!("{} ms", millis.max(0)),
        millis => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
    }
}

#[cfg(test)]
mod tests;
