//! Our registry on a socket, and Debian's.

use std::{
    net::TcpListener as Reserved,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use neap_emulators::{
    listen::listen,
    registry::{Access, Registry, Settings},
    system::Emulator,
};
use neap_kit::{client::Client, clock::Clock};
use neap_load::skip::skipped;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// How long Debian's registry may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Our registry on a socket.
pub(crate) struct Ours {
    /// Host and port.
    pub(crate) address: String,
    pub(crate) registry: Emulator<Registry>,
    _tasks: JoinSet<()>,
    _folder: tempfile::TempDir,
}

impl Ours {
    pub(crate) async fn start(access: Access) -> Self {
        let clock = Clock::system();
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            access,
            max_page: 2,
            ..Settings::default()
        };
        let registry = Registry::in_folder(settings, clock, folder.path()).await;
        let registry = Emulator::new(registry.unwrap(), clock);
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let serving = listen("registry", socket, clock, registry.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(serving.run(CancellationToken::new()));
        Self {
            address,
            registry,
            _tasks: tasks,
            _folder: folder,
        }
    }
}

/// Debian's `docker-registry`.
pub(crate) struct Debian {
    pub(crate) address: String,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Debian {
    /// None if the program is not there, and the test is listed as skipped.
    pub(crate) async fn start(test: &str) -> Option<Self> {
        let program = program(test, "NEAP_DOCKER_REGISTRY")?;
        let folder = tempfile::tempdir().unwrap();
        let free = Reserved::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let config = folder.path().join("config.yml");
        let data = folder.path().join("data");
        let text = format!(
            "version: 0.1\nlog: {{level: error}}\nhttp: {{addr: '{address}'}}\n\
             storage: {{filesystem: {{rootdirectory: '{}'}}, delete: {{enabled: true}}}}\n",
            data.display()
        );
        std::fs::write(&config, text).unwrap();
        let process = Command::new(program)
            .arg("serve")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Self {
            address,
            process,
            _folder: folder,
        };
        started.wait().await;
        Some(started)
    }

    async fn wait(&self) {
        let clock = Clock::system();
        let client = Client::builder("test", clock).build().unwrap();
        let address = format!("http://{}/v2/", self.address);
        let answers = async {
            while client.get(&address).send().await.is_err() {
                clock.sleep(POLL_INTERVAL).await;
            }
        };
        let started = clock.within(START_TIMEOUT, answers).await;
        assert!(started.is_some(), "docker-registry did not start");
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The program that a variable names; without it the test is listed as skipped.
pub(crate) fn program(test: &str, variable: &str) -> Option<std::ffi::OsString> {
    let program = std::env::var_os(variable);
    if program.is_none() {
        skipped(
            test,
            &format!("{variable} is not set; run cargo xtask test"),
        );
    }
    program
}

/// Runs a program to its end; its output, or what it complains about.
pub(crate) fn run(program: &std::ffi::OsStr, home: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(args)
        .env("HOME", home)
        .env("DOCKER_CONFIG", home)
        .env("XDG_RUNTIME_DIR", home)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{args:?}: {}", text(&output.stderr)))
    }
}
