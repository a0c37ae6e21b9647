//! What `neap up` tells its user: each stage with its time, then what to do next.
//!
//! On stdout. A reader that goes away does not stop the server, so failed writes are ignored.

use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use neap_pocket::environment::Clock;

use crate::{symbols::Symbols, version};

/// Between two words about containers that take their time.
const MOMENT: Duration = Duration::from_secs(1);

/// Prints the stages as they end.
pub(super) struct Stages {
    out: Box<dyn Write + Send>,
    clock: Arc<dyn Clock>,
    symbols: Symbols,
    began: Timestamp,
    last: Timestamp,
}

impl Stages {
    /// Prints the headline; the first stage begins now.
    pub(super) fn start(clock: Arc<dyn Clock>, symbols: Symbols) -> Self {
        Self::on(Box::new(io::stdout()), clock, symbols)
    }

    fn on(out: Box<dyn Write + Send>, clock: Arc<dyn Clock>, symbols: Symbols) -> Self {
        let began = clock.now();
        let mut stages = Self {
            out,
            clock,
            symbols,
            began,
            last: began,
        };
        stages.line(&format!(
            "neap {} {} Kubernetes API {} in this process",
            version::NEAP,
            symbols.dot,
            level()
        ));
        stages
    }

    /// A stage has ended, and the next one begins.
    pub(super) fn done(&mut self, stage: &str, detail: &str) {
        let now = self.clock.now();
        let time = human(now.duration_since(self.last));
        self.last = now;
        self.line(&format!(
            " {} {stage:<12} {detail:<56} {time:>7}",
            self.symbols.done
        ));
    }

    /// Something the user should know before going on.
    pub(super) fn note(&mut self, text: &str) {
        self.line(&format!(" {} {:<12} {text}", self.symbols.note, "note"));
    }

    /// The server answers; `left` says how to stop and what stays.
    pub(super) fn ready(&mut self, kubeconfig: &Path, left: &str) {
        let time = human(self.clock.now().duration_since(self.began));
        let kubeconfig = shell_word(&kubeconfig.display().to_string());
        self.line(&format!("Ready in {time}."));
        self.line(&format!("  kubectl  export KUBECONFIG={kubeconfig}"));
        self.line("  try      kubectl get namespaces");
        self.line(&format!("  stop     {left}"));
    }

    /// So many containers are to end now, or have not ended yet.
    pub(super) fn stopping(&mut self, containers: usize, again: bool) {
        let s = if containers == 1 { "" } else { "s" };
        let has = if containers == 1 { "has" } else { "have" };
        self.line(&if again {
            format!("  waiting  {containers} container{s} {has} not ended yet")
        } else {
            format!("Stopping {containers} container{s}; Ctrl-C again ends all at once.")
        });
    }

    /// A moment in which something may change.
    pub(super) fn moment(&self) -> impl Future<Output = ()> + use<> {
        self.clock.sleep(MOMENT)
    }

    /// The last word.
    pub(super) fn stopped(&mut self, data: Option<&Path>) {
        match data {
            Some(data) => self.line(&format!("Stopped. Everything is in {}.", data.display())),
            None => self.line("Stopped."),
        }
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}", text.trim_end());
        let _ = self.out.flush();
    }
}

/// `v1.36` of `v1.36.3`.
fn level() -> &'static str {
    version::KUBERNETES
        .rsplit_once('.')
        .map_or(version::KUBERNETES, |(level, _patch)| level)
}

fn human(time: SignedDuration) -> String {
    match time.as_millis() {
        millis @ ..1000 => format!("{} ms", millis.max(0)),
        millis => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
    }
}

/// The text as one word of a POSIX shell.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests;
