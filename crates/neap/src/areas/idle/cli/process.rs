//! `neap idle operator` and `neap idle resolver`: the processes in a cluster.

use kube::Config;
use neap_idle::{operator::OperatorOptions, options, process, resolver::ResolverOptions};
use neap_kit::why::Coded;

use crate::{
    areas::{
        self,
        role::{block_on_all_threads, clients, failed, identity, stopped_by_signal},
    },
    cli::ClusterOptions,
    exit::{Exit, Failure},
    inspect::cluster,
    up::raise_open_files,
};

/// Runs the operator until a signal stops it.
pub(super) fn operator(words: Vec<String>) -> Result<(), Failure> {
    let options = OperatorOptions::read(words, &variable).map_err(|error| invalid(&error))?;
    block_on_all_threads(async {
        let kubeconfig = options.kubeconfig.clone();
        let config = config(kubeconfig).await?;
        let stop = stopped_by_signal()?;
        let ended = process::operator(clients(config)?, options, identity(), stop).await;
        ended.map_err(|error| failed("the operator", &error))
    })
}

/// Runs the resolver until a signal stops it.
pub(super) fn resolver() -> Result<(), Failure> {
    let options = ResolverOptions::read(&variable).map_err(|error| invalid(&error))?;
    raise_open_files();
    block_on_all_threads(async {
        let clients = clients(config(None).await?)?;
        let stop = stopped_by_signal()?;
        let ended = process::resolver(clients, options, identity(), stop).await;
        ended.map_err(|error| failed("the resolver", &error))
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

async fn config(kubeconfig: Option<String>) -> Result<Config, Failure> {
    let options = ClusterOptions {
        kubeconfig: kubeconfig.map(Into::into),
        context: None,
    };
    cluster::config(&options, None).await
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
