//! A `neap up` with clusters, and the commands of its users.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use neap_kit::clock::Clock;

use crate::{
    command_output::CommandOutput,
    kube_client::connect,
    up::sandbox::{RunningServer, Sandbox},
};

/// The subscription of `neap up`.
pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000001";
/// Bounds every wait; generous for a busy machine.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_mins(1);
/// The pause between two polls.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A `neap up` whose clusters settle at once.
pub(crate) struct FleetServer {
    pub(crate) sandbox: Sandbox,
    server: Option<RunningServer>,
}

impl FleetServer {
    /// One with a data folder.
    pub(crate) fn start() -> Self {
        let mut started = Self {
            sandbox: Sandbox::new(),
            server: None,
        };
        started.start_again();
        started
    }

    /// Starts it, with the data folder that it had.
    pub(crate) fn start_again(&mut self) {
        let data = self.data();
        let data = data.to_str().unwrap();
        let arguments = ["--data", data, "--fleet-settle", "0s"];
        self.server = Some(self.sandbox.up(&arguments));
    }

    /// Stops it. Returns what it logged.
    pub(crate) fn stop(&mut self) -> CommandOutput {
        self.server.take().unwrap().stop("TERM")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.sandbox.path("data")
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.server.as_ref().unwrap().kubeconfig_path()
    }

    /// Runs `neap` against this server.
    pub(crate) fn neap(&self, arguments: &[&str]) -> CommandOutput {
        Command::new(env!("CARGO_BIN_EXE_neap"))
            .args(arguments)
            .env_clear()
            .env("HOME", self.sandbox.home())
            .env("TMPDIR", self.sandbox.temporary())
            .env("PATH", "/usr/bin:/bin")
            .env("KUBECONFIG", self.kubeconfig())
            .output()
            .unwrap()
            .into()
    }

    /// Runs a command that succeeds. Returns what it printed.
    pub(crate) fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.neap(arguments);
        let CommandOutput {
            code,
            stdout,
            stderr,
        } = output;
        assert_eq!(code, Some(0), "{arguments:?}: {stdout}{stderr}");
        stdout
    }

    /// URL and certificate authority of the provider.
    pub(crate) async fn provider(&self) -> (String, String) {
        let client = connect(&self.kubeconfig()).await;
        let maps: Api<ConfigMap> = Api::namespaced(client, "default");
        let found = until("the address is published", async || {
            maps.get_opt("neap-fleet").await.unwrap()
        });
        let mut data = found.await.data.unwrap();
        let mut take = |name: &str| data.remove(name).unwrap();
        (take("url"), take("ca.crt"))
    }
}

/// Waits until there is a value.
pub(crate) async fn until<T>(what: &str, find: impl AsyncFn() -> Option<T>) -> T {
    let clock = Clock::system();
    let waited = async {
        loop {
            if let Some(found) = find().await {
                return found;
            }
            clock.sleep(POLL_INTERVAL).await;
        }
    };
    let found = clock.within(WAIT_TIMEOUT, waited).await;
    found.unwrap_or_else(|| panic!("never reached: {what}"))
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join(path);
    assert!(fs::exists(&file).unwrap(), "{}", file.display());
    file
}
