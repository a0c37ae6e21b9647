//! `neap idle operator` and `neap idle resolver`: the processes in a cluster.

use kube::{Client, Config, client::ClientBuilder};
use neap_idle::{
    operator::OperatorOptions,
    options,
    process::{self, Identity, ProcessClient},
    resolver::ResolverOptions,
};
use neap_kit::{clock::Clock, process::Process, telemetry::CountCalls, why::Coded};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use crate::{
    areas,
    cli::ClusterOptions,
    exit::{Exit, Failure, chain},
    inspect::cluster,
    up::{Signals, raise_open_files},
};

/// Runs the operator until a signal stops it.
pub(super) fn operator(words: Vec<String>) -> Result<(), Failure> {
    let options = OperatorOptions::read(words, &variable).map_err(|error| invalid(&error))?;
    block_on_all_threads(async {
        let kubeconfig = options.kubeconfig.clone();
        let config = config(kubeconfig).await?;
        let mut elect = config.clone();
        elect.default_retry = false;
        let (client, elect) = (counted_client(config)?, client(elect)?);
        let stop = stopped_by_signal()?;
        let ended = process::operator(client, elect, options, identity(), stop).await;
        ended.map_err(|error| failed("the operator", &error))
    })
}

/// Runs the resolver until a signal stops it.
pub(super) fn resolver() -> Result<(), Failure> {
    let options = ResolverOptions::read(&variable).map_err(|error| invalid(&error))?;
    raise_open_files();
    block_on_all_threads(async {
        let client = counted_client(config(None).await?)?;
        let stop = stopped_by_signal()?;
        let ended = process::resolver(client, options, stop).await;
        ended.map_err(|error| failed("the resolver", &error))
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn block_on_all_threads(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
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

async fn config(kubeconfig: Option<String>) -> Result<Config, Failure> {
    let options = ClusterOptions {
        kubeconfig: kubeconfig.map(Into::into),
        context: None,
    };
    cluster::config(&options, None).await
}

fn client(config: Config) -> Result<Client, Failure> {
    Client::try_from(config).map_err(|error| invalid_connection(&error))
}

/// A client whose calls are counted, and the process that counts them.
fn counted_client(config: Config) -> Result<ProcessClient, Failure> {
    let process = Process::default();
    let calls = CountCalls::new(process.telemetry().clone(), Clock::system());
    let client = ClientBuilder::try_from(config).map_err(|error| invalid_connection(&error))?;
    let client = client.with_layer(&calls).build();
    Ok(ProcessClient { client, process })
}

fn invalid_connection(error: &kube::Error) -> Failure {
    let what = "the cluster cannot be reached with these credentials";
    Failure::new("NT-CLI-0002", Exit::Refused, what, &chain(error))
        .remedy("check the certificates of the kubeconfig or of the pod")
}

/// Cancelled at the first signal. A second one has no effect; SIGKILL ends the process.
fn stopped_by_signal() -> Result<CancellationToken, Failure> {
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
fn identity() -> Identity {
    let mut bytes = [0; 8];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    // Without a random number, operators that started together only poll together.
    let _ = random.fill(&mut bytes);
    let seed = u64::from_le_bytes(bytes);
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "neap".to_owned());
    Identity {
        name: format!("{host}_{seed:016x}"),
        seed,
    }
}

fn invalid(error: &options::Error) -> Failure {
    let code = error.code();
    let remedy = areas::catalogue()
        .find(code.0)
        .map_or("", |entry| entry.remedy);
    let exit = match error {
        options::Error::UnknownFlag { .. } => Exit::Usage,
        _ => Exit::Refused,
    };
    Failure::new(
        code.0,
        exit,
        "cannot start with these options",
        &error.to_string(),
    )
    .remedy(remedy)
}

fn failed(what: &str, error: &process::Error) -> Failure {
    let code = error.code();
    let remedy = areas::catalogue()
        .find(code.0)
        .map_or("", |entry| entry.remedy);
    let what = format!("{what} cannot continue");
    Failure::new(code.0, Exit::Failed, &what, &chain(error)).remedy(remedy)
}
