//! The processes that a cluster runs: `neap <area> <role>`.
//!
//! All of them connect, elect a leader, report their health and stop in one way; an area adds its components.

use std::{net::SocketAddr, path::PathBuf};

use clap::{ArgAction, Args};
use kube::{Client, Config, client::ClientBuilder};
use neap_kit::{
    assembly::{Assembly, Identity, ProcessClients, RoleOptions},
    audit::AnchorOptions,
    clock::Clock,
    manager::Component,
    process::Process,
    telemetry::CountCalls,
    why::Coded,
};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use super::catalogue;
use crate::{
    cli::ClusterOptions,
    exit::{Exit, Failure, chain},
    inspect::cluster,
    up::Signals,
};

/// The flags that all roles share.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct RoleArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,

    /// Namespace of the process, with its Lease
    #[arg(
        long,
        value_name = "NAMESPACE",
        env = "POD_NAMESPACE",
        default_value = "default"
    )]
    pub(crate) namespace: String,

    /// Elect a leader among several processes; only the leader writes
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub(crate) leader_elect: bool,

    /// Watch only this namespace; may be repeated. By default all are watched
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) watch_namespace: Vec<String>,

    /// Address of /healthz, /readyz, /metrics and /debug/state.json
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:8080", value_parser = listen_address)]
    pub(crate) listen: SocketAddr,

    /// Record every write in this file, whose last record is anchored in a ConfigMap
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_file: Option<PathBuf>,
}

/// An address; one without a host, as Go programs take it, is that of all interfaces.
fn listen_address(text: &str) -> Result<SocketAddr, std::net::AddrParseError> {
    match text.strip_prefix(':') {
        Some(port) => format!("0.0.0.0:{port}").parse(),
        None => text.parse(),
    }
}

impl RoleArgs {
    fn options(&self, name: &'static str) -> RoleOptions {
        let audit = self.audit_file.clone().map(|path| AnchorOptions {
            path,
            namespace: self.namespace.clone(),
            name: format!("{name}-audit"),
            ..AnchorOptions::for_data_folder(&PathBuf::new())
        });
        RoleOptions {
            elect: self.leader_elect,
            namespaces: self.watch_namespace.clone(),
            listen: Some(self.listen),
            audit,
            ..RoleOptions::new(name, &self.namespace)
        }
    }
}

/// Runs the role `name` with the components of the area until a signal stops it. The closure also gets a random
/// number that differs between the processes of the role.
pub(crate) fn run(
    name: &'static str,
    args: &RoleArgs,
    components: impl FnOnce(&Assembly, u64) -> Result<Vec<Component>, Failure>,
) -> Result<(), Failure> {
    block_on_all_threads(async {
        let config = cluster::config(&args.cluster, None).await?;
        let (clients, identity) = (clients(config)?, identity());
        let (seed, stop) = (identity.seed, stopped_by_signal()?);
        let options = args.options(name);
        let assembly = Assembly::new(clients, options, identity, Clock::system()).await;
        let mut assembly = assembly.map_err(|error| failed(name, &error))?;
        let components = components(&assembly, seed)?;
        assembly.add(components);
        let ended = assembly.run(stop).await;
        ended.map_err(|error| failed(name, &error))
    })
}

/// Runs `work` on one thread per core.
pub(crate) fn block_on_all_threads(
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        let why = error.to_string();
        Failure::new(
            "NT-UP-0010",
            Exit::Failed,
            "cannot start worker threads",
            &why,
        )
        .remedy("check the limits on threads and open files: ulimit -a")
    })?;
    let result = runtime.block_on(work);
    // Tasks that still run are dropped.
    runtime.shutdown_background();
    result
}

/// The clients of a process: one whose calls are counted, and one for the election, which does not retry.
pub(crate) fn clients(config: Config) -> Result<ProcessClients, Failure> {
    let mut election = config.clone();
    election.default_retry = false;
    let process = Process::default();
    let calls = CountCalls::new(process.telemetry().clone(), Clock::system());
    let client = ClientBuilder::try_from(config).map_err(|error| invalid_connection(&error))?;
    Ok(ProcessClients {
        client: client.with_layer(&calls).build(),
        election: Client::try_from(election).map_err(|error| invalid_connection(&error))?,
        process,
    })
}

fn invalid_connection(error: &kube::Error) -> Failure {
    let what = "the cluster cannot be reached with these credentials";
    Failure::new("NT-CLI-0002", Exit::Refused, what, &chain(error))
        .remedy("check the certificates of the kubeconfig or of the pod")
}

/// Cancelled at the first signal. A second one has no effect; SIGKILL ends the process.
pub(crate) fn stopped_by_signal() -> Result<CancellationToken, Failure> {
    let mut signals = Signals::listen()?;
    let stop = CancellationToken::new();
    let cancelled = stop.clone();
    tokio::runtime::Handle::current().spawn(async move {
        signals.next().await;
        tracing::info!("stopping");
        cancelled.cancel();
    });
    Ok(stop)
}

/// The name of the pod, and a random number that distinguishes it from its predecessors.
pub(crate) fn identity() -> Identity {
    let mut bytes = [0; 8];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    // Without a random number, processes that started together only poll together.
    let _ = random.fill(&mut bytes);
    let seed = u64::from_le_bytes(bytes);
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "neap".to_owned());
    Identity {
        name: format!("{host}_{seed:016x}"),
        seed,
    }
}

/// The failure of a process, with the remedy of its code.
pub(crate) fn failed<E: std::error::Error + Coded>(what: &str, error: &E) -> Failure {
    let code = error.code();
    let remedy = catalogue().find(code.0).map_or("", |entry| entry.remedy);
    let what = format!("{what} cannot continue");
    Failure::new(code.0, Exit::Failed, &what, &chain(error)).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_host_is_that_of_all_interfaces() {
        let address = |text: &str| listen_address(text).map(|it| it.to_string());
        assert_eq!(address(":8080").unwrap(), "0.0.0.0:8080");
        assert_eq!(address("127.0.0.1:9").unwrap(), "127.0.0.1:9");
        assert!(address("8080").is_err() && address(":x").is_err());
    }
}
