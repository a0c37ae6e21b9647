//! Our registry on a socket, and Debian's, each with the images of a small release.

use std::{
    net::TcpListener as Reserved,
    process::{Child, Command, Stdio},
    time::Duration,
};

use neap_emulators::{
    listen::listen,
    registry::{Access, Registry, Settings},
    system::Emulator,
};
use neap_kit::{client::Client, clock::Clock};
use neap_release::{
    oci::{
        client::{Options, RegistryClient},
        credentials::Credentials,
        reference::ImageRef,
    },
    payload_image::sample,
};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// How long Debian's registry may take to start.
const START_TIMEOUT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A registry on a socket.
pub(super) struct TestRegistry {
    /// Host and port.
    pub(super) address: String,
    /// Ours, with its log of calls and its faults.
    pub(super) ours: Option<Emulator<Registry>>,
    process: Option<Child>,
    _tasks: JoinSet<()>,
    _folder: tempfile::TempDir,
}

impl TestRegistry {
    /// Our registry, with the samples if it is open.
    pub(super) async fn ours(access: Access) -> Self {
        let is_open = matches!(access, Access::Open);
        let clock = Clock::system();
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            access,
            ..Settings::default()
        };
        let registry = Registry::in_folder(settings, clock, folder.path()).await;
        let registry = Emulator::new(registry.unwrap(), clock);
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let serving = listen("registry", socket, clock, registry.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(serving.run(CancellationToken::new()));
        if is_open {
            push_samples(&address).await;
        }
        Self {
            address,
            ours: Some(registry),
            process: None,
            _tasks: tasks,
            _folder: folder,
        }
    }

    /// Debian's registry with the samples.
    pub(super) async fn debian(program: &std::ffi::OsStr) -> Self {
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
        let registry = Self {
            address,
            ours: None,
            process: Some(process),
            _tasks: JoinSet::new(),
            _folder: folder,
        };
        registry.wait().await;
        push_samples(&registry.address).await;
        registry
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

impl Drop for TestRegistry {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

async fn push_samples(address: &str) {
    let http = Client::builder("test", Clock::system()).build().unwrap();
    let client = RegistryClient::new(http, Credentials::none(), Options::default());
    for image in sample::release() {
        let name = format!("{address}/sample/{}:v1", image.name);
        let target: ImageRef = name.parse().unwrap();
        let built = image.build().unwrap();
        sample::push(&client, &built, &target).await.unwrap();
    }
}
