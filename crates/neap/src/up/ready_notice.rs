//! The last lines of the start-up transcript.

use std::path::PathBuf;

use super::{listen::Address, transcript::Transcript};
use crate::{cli::UpOptions, logging};

/// What is printed when the server is ready.
pub(super) struct ReadyNotice {
    reachable_from_outside: bool,
    url: String,
    kubeconfig: PathBuf,
    /// How to stop the server, and what remains.
    stop: String,
}

impl ReadyNotice {
    pub(super) fn new(options: &UpOptions, address: &Address, kubeconfig: PathBuf) -> Self {
        let stop = match (&options.data, &options.kubeconfig) {
            (Some(data), _) => format!("Ctrl-C; everything stays in {}", data.display()),
            (None, Some(_)) => "Ctrl-C; only the kubeconfig is left behind".to_owned(),
            (None, None) => "Ctrl-C; nothing is left behind".to_owned(),
        };
        Self {
            reachable_from_outside: address.reachable_from_outside(),
            url: address.url(),
            kubeconfig,
            stop,
        }
    }

    pub(super) fn print(&self, transcript: &mut Transcript) {
        if self.reachable_from_outside {
            transcript.note("other machines can connect to this address; they need the kubeconfig or other valid credentials");
        }
        transcript.ready(&self.kubeconfig, &self.stop);
        if logging::separate_from_stdout() {
            tracing::info!(url = self.url, kubeconfig = %self.kubeconfig.display(), "ready");
        }
    }
}
