//! `neap up`: starts the API server in this process, says so, and stops it cleanly.
//!
//! The order is chosen so that whatever can be refused is refused before anything is written:
//! the files it is given, folder, address, then credentials, store and server.

mod audit;
mod block;
mod folder;
mod identity;
mod idle;
mod kubeconfig;
mod limits;
mod listen;
mod private;
mod running;
mod runtime;
mod server;
mod signals;
mod stages;
mod surroundings;
mod threads;
mod world;

use std::path::PathBuf;

use neap_pocket::environment::Environment;
use tokio::runtime::Handle;

use self::{
    folder::{Folder, abandoned},
    identity::{Given, Identity},
    listen::Address,
    running::Running,
    server::{Plan, Server},
    stages::Stages,
    surroundings::Surroundings,
    threads::Threads,
};
pub(crate) use self::{limits::raise_open_files, listen::Listen, signals::Signals};
use crate::{
    cli::UpOptions,
    environment,
    exit::{Exit, Failure},
    logging,
    symbols::Symbols,
};

/// Runs the server until it is told to stop.
pub(crate) fn run(options: UpOptions, symbols: Symbols) -> Result<(), Failure> {
    raise_open_files();
    let threads = Threads::start().map_err(|error| {
        Failure::new(
            "NT-UP-0010",
            Exit::Failed,
            "cannot start worker threads",
            &error.to_string(),
        )
        .remedy("look at the limits on threads and open files: ulimit -a")
    })?;
    let result = threads.run(|patient| up(options, symbols, patient));
    threads.end();
    result
}

async fn up(options: UpOptions, symbols: Symbols, patient: Handle) -> Result<(), Failure> {
    let given = Given::read(&options)?;
    let mut signals = Signals::listen()?;
    let (environment, mut deaths) = environment::system(&patient);
    let mut stages = Stages::start(environment.clock.clone(), symbols);
    let folder = Folder::open(options.data.as_deref())?;
    tidy(&environment);
    let starting = start(&options, &given, &environment, &folder, &mut stages);
    let running = tokio::select! {
        running = starting => running?,
        () = signals.next() => return Ok(()),
    };
    let stopped = running.until_stopped(&mut signals, &mut deaths, &mut stages);
    let result = stopped.await;
    folder.close();
    if result.is_ok() {
        stages.stopped(options.data.as_deref());
    }
    result
}

/// Removes what killed ones left, beside everything else: nobody waits for it.
fn tidy(environment: &Environment) {
    let removed = tokio::task::spawn_blocking(|| abandoned::remove_all(&std::env::temp_dir()));
    let tidied = async move {
        if let Err(error) = removed.await {
            tracing::error!(%error, "what killed ones left was not looked for");
        }
    };
    environment.spawner.spawn("tidy", Box::pin(tidied));
}

async fn start(
    options: &UpOptions,
    given: &Given,
    environment: &Environment,
    folder: &Folder,
    stages: &mut Stages,
) -> Result<Running, Failure> {
    let kubeconfig = kubeconfig_path(options, folder)?;
    let kept = |name| options.data.is_some().then(|| folder.path().join(name));
    let (listener, address) = options.listen.bind().await?;
    limits::bound_send_buffers(&listener);
    let surroundings = Surroundings::claim(options, folder).await?;

    let names = address.certificate_names(surroundings.kubernetes());
    let identity = Identity::load_or_create(kept("identity").as_deref(), &names, environment)?;
    let tls = identity.tls(given)?;
    stages.done("identity", identity.origin().describe());

    let authenticator = identity.authenticator(given, environment.clock.clone())?;
    let plan = Plan {
        store: kept("store"),
        authenticator,
        anonymous: options.anonymous_auth,
        signing_key: identity.signing_key(),
        root_ca: identity.authority().to_owned(),
        port: address.port(),
        advertised: address.host_and_port(),
        service_range: surroundings.service_range(),
        runtime: surroundings.runtime(),
    };
    let server = Server::open(environment.clone(), plan).await?;
    stages.done("store", &store_detail(options));

    kubeconfig::write(&kubeconfig, &address.url(), &identity)?;
    stages.done("api", &address.url());
    let world = surroundings.build(&server, &address, folder, stages)?;
    announce(options, &address, &kubeconfig, stages);
    Ok(Running {
        server,
        world,
        listener,
        tls,
    })
}

fn kubeconfig_path(options: &UpOptions, folder: &Folder) -> Result<PathBuf, Failure> {
    match &options.kubeconfig {
        Some(file) => Ok(kubeconfig::accept(file)?),
        None => Ok(folder.path().join("kubeconfig")),
    }
}

fn store_detail(options: &UpOptions) -> String {
    match &options.data {
        Some(folder) => format!("kept in {}", folder.display()),
        None => "in memory (keep it with --data ./neap-data)".to_owned(),
    }
}

fn announce(
    options: &UpOptions,
    address: &Address,
    kubeconfig: &std::path::Path,
    stages: &mut Stages,
) {
    if address.reachable_from_outside() {
        stages.note("other machines can reach this address; they need the kubeconfig, or credentials that you give them, to get in");
    }
    let left = match (&options.data, &options.kubeconfig) {
        (Some(data), _) => format!("Ctrl-C; everything stays in {}", data.display()),
        (None, Some(_)) => "Ctrl-C; only the kubeconfig is left behind".to_owned(),
        (None, None) => "Ctrl-C; nothing is left behind".to_owned(),
    };
    stages.ready(kubeconfig, &left);
    if logging::apart() {
        tracing::info!(url = address.url(), kubeconfig = %kubeconfig.display(), "ready");
    }
}
