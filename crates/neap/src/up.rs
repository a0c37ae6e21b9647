//! `neap up`: runs the API server, a node and the controllers in this process.
//!
//! The order of the steps lets invalid input fail before anything is written: first the files named on
//! the command line, the folder and the address, then credentials, store and server.

mod address_block;
mod audit;
pub(crate) mod background;
mod cluster_setup;
mod folder;
mod identity;
mod kubeconfig;
mod limits;
mod listen;
pub(crate) mod private;
mod ready_notice;
mod running;
mod runtime;
mod runtimes;
mod server;
mod signals;
mod transcript;
mod world;

use std::{io, path::PathBuf};

use neap_pocket::environment::Environment;
use tokio::runtime::Handle;

use self::{
    cluster_setup::ClusterSetup,
    folder::{Folder, abandoned},
    identity::{Identity, SuppliedCredentials},
    ready_notice::ReadyNotice,
    running::Running,
    runtimes::Runtimes,
    server::{Server, ServerOptions},
    transcript::Transcript,
};
pub(crate) use self::{
    identity::clock_problems,
    limits::{ConnectionLimits, raise_open_files},
    listen::Listen,
    signals::Signals,
};
use crate::{
    allocator::{commit_what_is_used, return_what_is_free_again_and_again},
    cli::UpOptions,
    environment,
    exit::{Exit, Failure},
    symbols::Symbols,
};

/// Runs the server until a signal stops it.
pub(crate) fn run(options: UpOptions, symbols: Symbols) -> Result<(), Failure> {
    if let (true, Some(data)) = (options.detach, &options.data) {
        return background::detach(data, &mut io::stdout().lock());
    }
    commit_what_is_used();
    raise_open_files();
    let runtimes = Runtimes::start().map_err(|error| {
        Failure::new(
            "NT-UP-0010",
            Exit::Failed,
            "cannot start worker threads",
            &error.to_string(),
        )
        .remedy("check the limits on threads and open files: ulimit -a")
    })?;
    let result = runtimes.run(|background| up(options, symbols, background));
    runtimes.shut_down();
    result
}

async fn up(options: UpOptions, symbols: Symbols, background: Handle) -> Result<(), Failure> {
    let supplied = SuppliedCredentials::read(&options)?;
    let mut signals = Signals::listen()?;
    let (environment, mut panics) = environment::system(&background);
    let mut transcript = Transcript::start(environment.clock.clone(), symbols);
    let folder = Folder::open(options.data.as_deref())?;
    remove_abandoned_folders(&environment);
    let returning = return_what_is_free_again_and_again(environment.clock.clone());
    environment
        .spawner
        .spawn("return-memory", Box::pin(returning));
    let starting = start(&options, &supplied, &environment, &folder, &mut transcript);
    let running = tokio::select! {
        running = starting => running?,
        () = signals.next() => return Ok(()),
    };
    let stopped = running.until_stopped(&mut signals, &mut panics, &mut transcript);
    let result = stopped.await;
    drop(folder);
    if result.is_ok() {
        transcript.stopped(options.data.as_deref());
    }
    result
}

/// Removes the private folders of killed servers in the background; the start does not wait for it.
fn remove_abandoned_folders(environment: &Environment) {
    let removed = tokio::task::spawn_blocking(|| abandoned::remove_all(&std::env::temp_dir()));
    let removal = async move {
        if let Err(error) = removed.await {
            tracing::error!(%error, "cannot look for private folders of killed servers");
        }
    };
    environment
        .spawner
        .spawn("abandoned-folders", Box::pin(removal));
}

async fn start(
    options: &UpOptions,
    supplied: &SuppliedCredentials,
    environment: &Environment,
    folder: &Folder,
    transcript: &mut Transcript,
) -> Result<Running, Failure> {
    let kubeconfig = kubeconfig_path(options, folder)?;
    let stored = |name| options.data.is_some().then(|| folder.path().join(name));
    let (listener, address) = options.listen.bind().await?;
    limits::bound_send_buffers(&listener);
    let cluster_setup = ClusterSetup::claim(options, folder).await?;

    let names = address.certificate_names(cluster_setup.kubernetes_service_ip());
    let identity = Identity::load_or_create(stored("identity").as_deref(), &names, environment)?;
    let tls = identity.tls(supplied)?;
    transcript.done("identity", identity.origin().describe());
    let now = environment.clock.now();
    let mut problems = supplied.clock_problems(now);
    if options.data.is_some() {
        problems.extend(clock_problems(folder.path(), now));
    }
    for problem in problems {
        tracing::warn!(problem, "the clock of this machine is wrong");
        transcript.note(&problem);
    }

    let authenticator = identity.authenticator(supplied, environment.clock.clone())?;
    let server_options = ServerOptions {
        store: stored("store"),
        authenticator,
        anonymous: options.anonymous_auth,
        signing_key: identity.signing_key(),
        root_ca: identity.authority().to_owned(),
        port: address.port(),
        advertised: address.host_and_port(),
        service_range: cluster_setup.service_range(),
        runtime: cluster_setup.runtime(),
    };
    let server = Server::open(environment.clone(), server_options).await?;
    transcript.done("store", &store_detail(options));

    let context =
        kubeconfig::context_name(options.data.as_deref(), identity.authority().as_bytes());
    kubeconfig::write(&kubeconfig, &address.url(), &context, &identity)?;
    transcript.done("api", &address.url());
    let world = cluster_setup.build(&server, &address, &identity, folder, transcript)?;
    Ok(Running {
        server,
        world,
        listener,
        tls,
        notice: ReadyNotice::new(options, &address, kubeconfig),
    })
}

fn kubeconfig_path(options: &UpOptions, folder: &Folder) -> Result<PathBuf, Failure> {
    match &options.kubeconfig {
        Some(file) => Ok(kubeconfig::check_path(file)?),
        None => Ok(folder.path().join("kubeconfig")),
    }
}

fn store_detail(options: &UpOptions) -> String {
    match &options.data {
        Some(folder) => format!("stored in {}", folder.display()),
        None => "in memory (keep it with --data ./neap-data)".to_owned(),
    }
}
