//! `neap farm operator`, the process in a cluster, and the evaluator that it starts.

use std::io::{stdin, stdout};

use kube::{Client, Config, client::ClientBuilder};
use neap_farm::{
    jsonnet,
    operator::{self, bind_address},
};
use neap_kit::{clock::Clock, process::Process, telemetry::CountCalls, why::Coded};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use super::OperatorOptions;
use crate::{
    areas,
    cli::ClusterOptions,
    exit::{Exit, Failure, chain},
    inspect::cluster,
    up::Signals,
};

/// Runs the operator until a signal stops it.
pub(super) fn operator(options: &OperatorOptions) -> Result<(), Failure> {
    let address = |text: &str| {
        bind_address(text).map_err(|why| {
            Failure::new(
                "NT-FARM-0002",
                Exit::Usage,
                "cannot start with these options",
                &why,
            )
            .remedy("give an address such as :8080, or 0 for none")
        })
    };
    let program =
        std::env::current_exe().map_err(|error| failed("NT-FARM-0001", &error.to_string()))?;
    let mut bytes = [0; 8];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    // Without a random number the name of the pod identifies it.
    let _ = random.fill(&mut bytes);
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "neap".to_owned());
    let operator_options = operator::OperatorOptions {
        metrics: address(&options.metrics_bind_address)?,
        health: address(&options.health_probe_bind_address)?,
        leader_elect: options.leader_elect,
        namespace: options.operator_namespace.clone(),
        watched: options.watch_namespace.clone(),
        program,
        identity: format!("{host}_{:016x}", u64::from_le_bytes(bytes)),
    };
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed("NT-UP-0010", &error.to_string()))?;
    let result = runtime.block_on(run(options, operator_options));
    runtime.shutdown_background();
    result
}

async fn run(
    options: &OperatorOptions,
    operator_options: operator::OperatorOptions,
) -> Result<(), Failure> {
    let cluster = ClusterOptions {
        kubeconfig: options.kubeconfig.clone(),
        context: None,
    };
    let config = cluster::config(&cluster, None).await?;
    let mut elect = config.clone();
    elect.default_retry = false;
    let elect = Client::try_from(elect).map_err(|error| invalid_connection(&error))?;
    let process = Process::default();
    let client = counted_client(config, &process)?;
    let mut signals = Signals::listen()?;
    let stop = CancellationToken::new();
    let running = operator::run(client, process, elect, operator_options, stop.clone());
    let mut running = std::pin::pin!(running);
    let ended = tokio::select! {
        ended = &mut running => ended,
        () = signals.next() => {
            tracing::info!("stopping");
            stop.cancel();
            running.await
        }
    };
    ended.map_err(|error| failed(error.code().0, &chain(&error)))
}

fn counted_client(config: Config, process: &Process) -> Result<Client, Failure> {
    let calls = CountCalls::new(process.telemetry().clone(), Clock::system());
    let client = ClientBuilder::try_from(config).map_err(|error| invalid_connection(&error))?;
    Ok(client.with_layer(&calls).build())
}

fn invalid_connection(error: &kube::Error) -> Failure {
    let what = "the cluster cannot be reached with these credentials";
    Failure::new("NT-CLI-0002", Exit::Refused, what, &chain(error))
        .remedy("check the certificates of the kubeconfig or of the pod")
}

fn failed(code: &'static str, why: &str) -> Failure {
    let remedy = areas::catalogue()
        .find(code)
        .map_or("", |entry| entry.remedy);
    Failure::new(
        code,
        Exit::Failed,
        "the operator of build farms cannot continue",
        why,
    )
    .remedy(remedy)
}

/// Evaluates the request on standard input.
pub(super) fn jsonnet() -> Result<(), Failure> {
    jsonnet::serve(stdin().lock(), stdout().lock()).map_err(|error| {
        let what = "the configuration cannot be evaluated";
        Failure::new("NT-FARM-0007", Exit::Failed, what, &error.to_string())
            .remedy("give a request with files, main and variables as JSON")
    })
}
