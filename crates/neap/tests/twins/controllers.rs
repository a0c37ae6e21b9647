//! Controllers as a process: this very program, started to be one.

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
    lease::{Elector, Leadership, Options, Timings},
    site::Site,
    watch::Watches,
};
use neap_world::{deployment, replica_set};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const SERVER: &str = "NEAP_TWIN_SERVER";
const IDENTITY: &str = "NEAP_TWIN_IDENTITY";

/// The controllers of Deployments and ReplicaSets; killed if this value goes.
pub(crate) struct Controllers(Child);

impl Controllers {
    /// Starts them: alone, or as one of several of which one leads.
    pub(crate) fn start(server: &str, identity: Option<&str>) -> Self {
        let mut command = Command::new(this_program());
        command
            .args(["--exact", crate::ROLE, "--nocapture"])
            .env(SERVER, server)
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        if let Some(identity) = identity {
            command.env(IDENTITY, identity);
        }
        Self(command.spawn().unwrap())
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub(crate) fn stop(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success(), "the controllers have ended by themselves");
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn this_program() -> PathBuf {
    env::current_exe().unwrap()
}

/// Works as controllers until whoever started this is gone, if it was started to.
pub(crate) fn play_the_part() -> bool {
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
    runtime.block_on(work(&server, env::var(IDENTITY).ok()));
    true
}

async fn work(server: &str, identity: Option<String>) {
    let clock = Clock::system();
    let client = Client::try_from(Config::new(server.parse().unwrap())).unwrap();
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let leadership = match identity {
        None => Leadership::alone(clock),
        Some(identity) => {
            let options = Options {
                namespace: "kube-system".to_owned(),
                name: "twins".to_owned(),
                identity,
                // The shortest that a Lease can say.
                timings: Timings {
                    duration: Duration::from_secs(1),
                    deadline: Duration::from_millis(700),
                    retry: Duration::from_millis(200),
                },
            };
            let (elector, leadership) = Elector::new(client.clone(), options, clock).unwrap();
            tasks.spawn(elector.run(stop.clone()));
            leadership
        }
    };
    let (watches, watching) = Watches::new(clock);
    let site = Site {
        client,
        watches,
        leadership,
        clock,
    };
    let services = [
        deployment::service(&site).unwrap(),
        replica_set::service(&site).unwrap(),
    ];
    for service in services {
        tasks.spawn(service.run(stop.clone()));
    }
    tasks.spawn(watching.run(stop));
    let ended = tasks.join_next().await;
    assert!(ended.is_none(), "a service has ended: {ended:?}");
}
