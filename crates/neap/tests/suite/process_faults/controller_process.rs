//! Controllers in a process of their own: this test executable, started to run one test.

use std::{
    env,
    io::{Read, stdin},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use kube::{Client, Config};
use neap_kit::{
    clock::Clock,
    context::Context,
    lease::{ElectionOptions, Elector, Leadership, LeaseTimings},
    watch::Watches,
};
use neap_world::{deployment, replica_set};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const SERVER: &str = "NEAP_TWIN_SERVER";
const IDENTITY: &str = "NEAP_TWIN_IDENTITY";

/// A process with the controllers of Deployments and ReplicaSets; killed on drop.
pub(crate) struct ControllerProcess(Child);

impl ControllerProcess {
    /// Starts the process; with an identity, it takes part in leader election.
    pub(crate) fn start(server: &str, identity: Option<&str>) -> Self {
        let mut command = Command::new(this_program());
        command
            .args(["--exact", super::CONTROLLER_TEST, "--nocapture"])
            .env(SERVER, server)
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        if let Some(identity) = identity {
            command.env(IDENTITY, identity);
        }
        Self(command.spawn().unwrap())
    }

    /// Sends SIGKILL and waits for the end.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub(crate) fn stop(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success(), "the controllers ended unexpectedly");
    }
}

impl Drop for ControllerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn this_program() -> PathBuf {
    env::current_exe().unwrap()
}

/// Runs the controllers until the parent process ends, if this process was started for that; otherwise
/// returns false.
pub(crate) fn run_as_controllers() -> bool {
    let Ok(server) = env::var(SERVER) else {
        return false;
    };
    std::thread::Builder::new()
        .name("parent".to_owned())
        .spawn(|| {
            let _ = stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        })
        .unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(run_controllers(&server, env::var(IDENTITY).ok()));
    true
}

async fn run_controllers(server: &str, identity: Option<String>) {
    let clock = Clock::system();
    let client = Client::try_from(Config::new(server.parse().unwrap())).unwrap();
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let leadership = match identity {
        None => Leadership::without_election(clock),
        Some(identity) => {
            let options = ElectionOptions {
                namespace: "kube-system".to_owned(),
                name: "twins".to_owned(),
                identity,
                // A Lease cannot express a shorter duration.
                timings: LeaseTimings {
                    lease_duration: Duration::from_secs(1),
                    renew_deadline: Duration::from_millis(700),
                    retry_period: Duration::from_millis(200),
                },
            };
            let (elector, leadership) = Elector::new(client.clone(), options, clock).unwrap();
            tasks.spawn(elector.run(stop.clone()));
            leadership
        }
    };
    let (watches, watching) = Watches::new(clock);
    let context = Context {
        client,
        watches,
        leadership,
        clock,
    };
    let components = [
        deployment::component(&context).unwrap(),
        replica_set::component(&context).unwrap(),
    ];
    for component in components {
        tasks.spawn(component.run(stop.clone()));
    }
    tasks.spawn(watching.run(stop));
    let ended = tasks.join_next().await;
    assert!(ended.is_none(), "a component has ended: {ended:?}");
}
