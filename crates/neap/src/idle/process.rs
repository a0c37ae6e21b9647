//! `neap idle operator` and `neap idle resolver`: the processes that a cluster runs.

use kube::{Client, Config, client::ClientBuilder};
use neap_idle::{
    operator::settings::{self, Flags, ResolverSettings, Settings},
    process::{self, Identity, Means},
};
use neap_kit::{
    clock::Clock,
    process::Process,
    telemetry::CountCalls,
    why::{self, Coded},
};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use crate::{
    ask::cluster,
    cli::ClusterOptions,
    exit::{Exit, Failure, chain},
    up::{Signals, raise_open_files},
};

/// Keeps services asleep until it is told to stop.
pub(super) fn operator(words: Vec<String>) -> Result<(), Failure> {
    let flags = Flags::read(words).map_err(|error| unsaid(&error))?;
    let settings = Settings::read(&variable, flags).map_err(|error| unsaid(&error))?;
    on_all_threads(async {
        let kubeconfig = settings.flags.kubeconfig.clone();
        let config = config(kubeconfig).await?;
        let mut elect = config.clone();
        elect.default_retry = false;
        let (means, elect) = (means(config)?, client(elect)?);
        let stop = stopped_by_signal()?;
        let ended = process::operator(means, elect, settings, identity(), stop).await;
        ended.map_err(|error| failed("the operator", &error))
    })
}

/// Answers for services that sleep until it is told to stop.
pub(super) fn resolver() -> Result<(), Failure> {
    let settings = ResolverSettings::read(&variable).map_err(|error| unsaid(&error))?;
    raise_open_files();
    on_all_threads(async {
        let means = means(config(None).await?)?;
        let stop = stopped_by_signal()?;
        let ended = process::resolver(means, settings, stop).await;
        ended.map_err(|error| failed("the resolver", &error))
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn on_all_threads(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        let why = error.to_string();
        Failure::new(
            "NT-UP-0010",
            Exit::Failed,
            "cannot start worker threads",
            &why,
        )
        .remedy("look at the limits on threads and open files: ulimit -a")
    })?;
    let result = runtime.block_on(work);
    // What is still busy is dropped, not waited for.
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
    Client::try_from(config).map_err(|error| unreachable_so(&error))
}

/// A client whose calls are counted, and who counts them.
fn means(config: Config) -> Result<Means, Failure> {
    let process = Process::default();
    let calls = CountCalls::new(process.telemetry().clone(), Clock::system());
    let client = ClientBuilder::try_from(config).map_err(|error| unreachable_so(&error))?;
    let client = client.with_layer(&calls).build();
    Ok(Means { client, process })
}

fn unreachable_so(error: &kube::Error) -> Failure {
    let what = "the cluster cannot be reached so";
    Failure::new("NT-CLI-0002", Exit::Refused, what, &chain(error))
        .remedy("look at the certificates of the kubeconfig or of the pod")
}

/// Cancelled at the first signal. A second one is not heard: what ends the process then is SIGKILL.
fn stopped_by_signal() -> Result<CancellationToken, Failure> {
    let mut signals = Signals::listen()?;
    let stop = CancellationToken::new();
    let told = stop.clone();
    tokio::runtime::Handle::current().spawn(async move {
        signals.next().await;
        tracing::info!("stopping");
        told.cancel();
    });
    Ok(stop)
}

/// The name of the pod, and something that no former life of it had.
fn identity() -> Identity {
    let mut bytes = [0; 8];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    // Without chance two that started together ask together, and that is all.
    let _ = random.fill(&mut bytes);
    let seed = u64::from_le_bytes(bytes);
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "neap".to_owned());
    Identity {
        name: format!("{host}_{seed:016x}"),
        seed,
    }
}

fn unsaid(error: &settings::Error) -> Failure {
    let code = error.code();
    let remedy = why::find(code.0).map_or("", |entry| entry.remedy);
    let exit = match error {
        settings::Error::Flag { .. } => Exit::Usage,
        _ => Exit::Refused,
    };
    Failure::new(code.0, exit, "cannot start so", &error.to_string()).remedy(remedy)
}

fn failed(what: &str, error: &process::Error) -> Failure {
    let code = error.code();
    let remedy = why::find(code.0).map_or("", |entry| entry.remedy);
    let what = format!("{what} cannot go on");
    Failure::new(code.0, Exit::Failed, &what, &chain(error)).remedy(remedy)
}
