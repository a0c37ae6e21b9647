//! `neap fleet rp`: the provider as a process.

use std::{fs, net::SocketAddr, path::PathBuf, time::Duration};

use axum::{Router, routing::get};
use clap::Args;
use futures::{StreamExt, stream::FuturesUnordered};
use http::header;
use kube::Client;
use neap_fleet::http::{Authorizer, CertificateAuth, SharedCertificates};
use neap_kit::{
    clock::Clock,
    http::{ClientCertificates, HttpLimits, TlsFiles, reload, server},
    manager::Component,
    telemetry::Telemetry,
};
use tokio_util::sync::CancellationToken;

use crate::{
    areas::{
        fleet::provider::{Provider, ProviderOptions, bind, check_store},
        role::{block_on_all_threads, stopped_by_signal},
    },
    cli::{ClusterOptions, duration},
    exit::{Exit, Failure, chain},
    inspect::cluster,
};

/// Flags of the provider.
#[derive(Debug, Args)]
pub(super) struct RpOptions {
    /// Run the frontend only
    #[arg(long, conflicts_with = "backend")]
    frontend: bool,

    /// Run the backend only
    #[arg(long)]
    backend: bool,

    /// Address of the frontend
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:8443")]
    listen: SocketAddr,

    /// Store: sqlite:FILE or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "ADDRESS", env = "NEAP_FLEET_STORE")]
    store: String,

    /// Folder of the keys that seal secrets and page tokens; all processes of a region share them
    #[arg(long, value_name = "DIR")]
    keys: PathBuf,

    /// Certificate of the frontend, PEM; read again when it changes
    #[arg(long, value_name = "FILE", required_unless_present = "backend")]
    tls_cert: Option<PathBuf>,

    /// Private key of the frontend, PEM
    #[arg(long, value_name = "FILE", required_unless_present = "backend")]
    tls_key: Option<PathBuf>,

    /// Certificates of ARM, PEM: a caller must present one of these certificates; read again when they change
    #[arg(long, value_name = "FILE", required_unless_present_any = ["backend", "development_authorizer"])]
    arm_client_certs: Option<PathBuf>,

    /// Authorities of administrators, PEM
    #[arg(long, value_name = "FILE", requires = "admin_common_name")]
    admin_ca: Option<PathBuf>,

    /// Common name of administrators
    #[arg(long, value_name = "NAME", env = "ADMIN_API_CLIENT_CERT_COMMON_NAME")]
    admin_common_name: Option<String>,

    /// Accept every caller, for development
    #[arg(long, conflicts_with_all = ["arm_client_certs", "admin_ca"])]
    development_authorizer: bool,

    /// Location that the provider serves
    #[arg(long, value_name = "NAME", env = "LOCATION")]
    location: String,

    /// Domain below which clusters get names
    #[arg(long, value_name = "DOMAIN", env = "DOMAIN_NAME")]
    domain: String,

    /// Do not add live cluster data to responses
    #[arg(long)]
    without_enrichment: bool,

    /// Time after the start until the frontend is ready
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration)]
    readiness_delay: Duration,

    /// Address of /metrics and /healthz, without TLS [default: none]
    #[arg(long, value_name = "ADDR")]
    metrics_listen: Option<SocketAddr>,

    /// Kubeconfig of the cluster on which Hive runs
    #[arg(long, value_name = "FILE", env = "HIVE_KUBE_CONFIG_PATH")]
    hive_kubeconfig: Option<PathBuf>,
}

/// Runs the provider until a signal stops it.
pub(super) fn run(options: RpOptions) -> Result<(), Failure> {
    crate::up::raise_open_files();
    block_on_all_threads(serve(options))
}

async fn serve(options: RpOptions) -> Result<(), Failure> {
    check_store(&options.store)?;
    let clock = Clock::system();
    let stop = stopped_by_signal()?;
    let both = !options.frontend && !options.backend;
    let mut components = Vec::new();
    let authorizer = match Callers::of(&options) {
        Some(callers) => {
            let shared = SharedCertificates::new(callers.read()?);
            components.push(callers.reloading(shared.clone(), clock));
            Authorizer::Certificates(shared)
        }
        None => Authorizer::Development,
    };
    let mut socket = None;
    if let (Some(certificate), Some(key)) = (&options.tls_cert, &options.tls_key) {
        let files = TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
            clients: ClientCertificates::Requested,
        };
        let (identity, reloading) =
            reload(files, clock).map_err(|error| unusable("the certificate", &chain(&error)))?;
        components.push(reloading);
        socket = Some((bind(options.listen).await?, identity));
    }
    let hive = hive_client(options.hive_kubeconfig.as_ref()).await?;
    let provider = ProviderOptions {
        store: options.store,
        folder: options.keys,
        location: options.location,
        domain: options.domain,
        enrich: !options.without_enrichment,
        authorizer,
        readiness_delay: options.readiness_delay,
        condition_poll: None,
    };
    let telemetry = Telemetry::default();
    if let Some(address) = options.metrics_listen {
        let (socket, limits) = (bind(address).await?, HttpLimits::default());
        let routes = metrics(telemetry.clone());
        components.push(server("fleet-metrics", socket, None, routes, limits, clock));
    }
    let provider = Provider::open(provider, telemetry, clock).await?;
    components.push(provider.catalogue());
    if both || options.backend {
        components.extend(provider.backend(hive.clone()));
    }
    if let Some((socket, identity)) = socket.filter(|_| both || options.frontend) {
        let (router, limits) = (provider.router(hive)?, HttpLimits::default());
        let name = "fleet-frontend";
        let frontend = server(name, socket, Some(identity), router, limits, clock);
        components.push(frontend);
    }
    run_until_stopped(components, &stop).await
}

/// A client of the cluster on which Hive runs. None without a kubeconfig.
async fn hive_client(kubeconfig: Option<&PathBuf>) -> Result<Option<Client>, Failure> {
    let Some(file) = kubeconfig else {
        return Ok(None);
    };
    let cluster = ClusterOptions {
        kubeconfig: Some(file.clone()),
        context: None,
    };
    let config = cluster::config(&cluster, None).await?;
    let client = Client::try_from(config)
        .map_err(|error| unusable("the kubeconfig of Hive", &chain(&error)))?;
    Ok(Some(client))
}

/// Runs the components until a signal stops them. One that ends earlier is a failure.
async fn run_until_stopped(
    components: Vec<Component>,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let running = components.into_iter().map(|component| {
        let name = component.name;
        let run = component.run(stop.child_token());
        async move {
            run.await;
            name
        }
    });
    let mut running: FuturesUnordered<_> = running.collect();
    while let Some(name) = running.next().await {
        if !stop.is_cancelled() {
            let what = "a component of the provider ended";
            return Err(Failure::new("NT-KIT-007", Exit::Failed, what, name));
        }
    }
    Ok(())
}

/// The metrics of this process, and whether it runs.
fn metrics(telemetry: Telemetry) -> Router {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let text = move || async move { ([(header::CONTENT_TYPE, kind)], telemetry.text()) };
    Router::new()
        .route("/metrics", get(text))
        .route("/healthz", get(|| async { "ok" }))
}

/// How often the certificates of callers are read again.
const RELOAD_INTERVAL: Duration = Duration::from_secs(30);

/// Where the certificates of callers are.
struct Callers {
    arm: PathBuf,
    admin: Option<PathBuf>,
    admin_name: String,
}

impl Callers {
    /// None if every caller is accepted.
    fn of(options: &RpOptions) -> Option<Self> {
        Some(Self {
            arm: options.arm_client_certs.clone()?,
            admin: options.admin_ca.clone(),
            admin_name: options.admin_common_name.clone().unwrap_or_default(),
        })
    }

    fn read(&self) -> Result<CertificateAuth, Failure> {
        let read = |file: &PathBuf| {
            let text = fs::read_to_string(file);
            text.map_err(|error| {
                let what = format!("cannot use {}", file.display());
                Failure::new(
                    "NT-FLEET-0012",
                    Exit::of_file(&error),
                    &what,
                    &error.to_string(),
                )
                .remedy("check the path of the file, and that you may read it")
            })
        };
        let arm = read(&self.arm)?;
        let admin = self.admin.as_ref().map(read).transpose()?;
        let auth = CertificateAuth::new(&arm, admin.as_deref(), &self.admin_name);
        auth.map_err(|error| unusable("the certificates of callers", &chain(&error)))
    }

    /// Reads the files again and again: ARM changes its certificates.
    fn reloading(self, shared: SharedCertificates, clock: Clock) -> Component {
        Component::new("caller-certificates", move |stop| async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = clock.sleep(RELOAD_INTERVAL) => {}
                }
                match self.read() {
                    Ok(auth) => shared.replace(auth),
                    Err(failure) => tracing::warn!(
                        why = %failure,
                        "the certificates of callers were not read again; the last ones are used"
                    ),
                }
            }
        })
    }
}

fn unusable(what: &str, why: &str) -> Failure {
    let what = format!("cannot use {what}");
    Failure::new("NT-FLEET-0012", Exit::Refused, &what, why).remedy("correct the file")
}
