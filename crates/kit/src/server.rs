//! The API server that this crate's own tests use: one in this process, or a real one.
//!
//! Each test has a `pocket` of its own and a paused clock. If `NEAP_KIT_SERVER` names a kubeconfig,
//! the same tests use that server over a socket: the clock is then not paused, and each test has a
//! namespace of its own. Their objects are not deleted, so it should be a disposable server.
//!
//! `cargo xtask kit` runs them like that. Each test appends the number of its requests to the file
//! that `NEAP_KIT_NOTES` names.

use std::{
    env,
    fs::File,
    future,
    io::Write,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt, TryFutureExt};
use http::{Request, Response};
use k8s_openapi::{
    api::core::v1::Namespace,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::PostParams,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use neap_pocket::{Options, Pocket, environment::Environment};
use tower::{BoxError, Service};

use crate::clock::Clock;

/// How long a test waits until a new definition is served.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The time between two reads of a definition.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A server for one test.
pub(crate) struct Server {
    /// A client whose default namespace is [`Self::namespace`].
    pub(crate) client: Client,
    connection: Arc<Connection>,
    namespace: String,
    pocket: Option<Pocket>,
}

/// The connection between the test and the server.
#[derive(Debug, Default)]
struct Connection {
    requests: AtomicU64,
    disconnected: AtomicBool,
}

impl Server {
    pub(crate) async fn open() -> Self {
        match env::var_os("NEAP_KIT_SERVER") {
            Some(kubeconfig) => Self::real(kubeconfig.into()).await,
            None => Self::in_process().await,
        }
    }

    async fn in_process() -> Self {
        let options = Options::new(Environment::simulated(7));
        let pocket = Pocket::open(options).await.unwrap();
        let namespace = "default".to_owned();
        Self::with_transport(pocket.service(), namespace, Some(pocket))
    }

    async fn real(kubeconfig: PathBuf) -> Self {
        if is_clock_paused() {
            // A paused clock jumps ahead whenever all tasks wait, also while they wait for a socket.
            tokio::time::resume();
        }
        let file = Kubeconfig::read_from(kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(file, &options)
            .await
            .unwrap();
        config.default_retry = false;
        let client = Client::try_from(config).unwrap();
        let namespace = unused_namespace();
        let object = serde_json::json!({"metadata": {"name": namespace}});
        let object = serde_json::from_value(object).unwrap();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let made = namespaces.create(&PostParams::default(), &object).await;
        made.unwrap();
        Self::with_transport(transport_of(client), namespace, None)
    }

    fn with_transport<S, B>(transport: S, namespace: String, pocket: Option<Pocket>) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: hyper::body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let connection = Arc::<Connection>::default();
        let transport = Monitored {
            transport,
            connection: connection.clone(),
        };
        Self {
            client: Client::new(transport, namespace.clone()),
            connection,
            namespace,
            pocket,
        }
    }

    /// The namespace of the test.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A name that no other test uses, for cluster-scoped objects.
    pub(crate) fn unique_name(&self, name: &str) -> String {
        format!("{name}-{}", self.namespace)
    }

    /// `virtually` under a paused clock, where hours pass in milliseconds; `really` otherwise.
    pub(crate) fn by_clock(&self, virtually: u64, really: u64) -> u64 {
        match self.pocket {
            Some(_) => virtually,
            None => really,
        }
    }

    /// Makes all further requests fail.
    pub(crate) fn disconnect(&self) {
        self.connection.disconnected.store(true, Ordering::Release);
    }

    /// Installs a definition, unless another test has, and waits until it is served.
    pub(crate) async fn install(&self, definition: &CustomResourceDefinition) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        match definitions.create(&PostParams::default(), definition).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => panic!("{error}"),
        }
        let name = definition.name_any();
        let served = async {
            while !is_established(&definitions.get(&name).await.unwrap()) {
                Clock::system().sleep(POLL_INTERVAL).await;
            }
        };
        let served = Clock::system().within(INSTALL_TIMEOUT, served).await;
        served.expect("the definition is served");
    }
}

/// A transport that sends with `client`.
pub(crate) fn transport_of(
    client: Client,
) -> impl Service<
    Request<Body>,
    Response = Response<Body>,
    Error = kube::Error,
    Future = BoxFuture<'static, kube::Result<Response<Body>>>,
> {
    tower::service_fn(move |request| {
        let client = client.clone();
        async move { client.send(request).await }.boxed()
    })
}

/// A client whose requests are never answered.
pub(crate) fn unresponsive_client() -> Client {
    let silence = tower::service_fn(|_: Request<Body>| {
        future::pending::<Result<Response<Body>, std::convert::Infallible>>()
    });
    Client::new(silence, "default")
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let status = definition.status.iter();
    let mut conditions = status.flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|one| one.type_ == "Established" && one.status == "True")
}

/// Whether the test's clock is paused; it is no longer for the second server of a test.
fn is_clock_paused() -> bool {
    let clock = Clock::system();
    std::thread::sleep(Duration::from_millis(1));
    clock.uptime().is_zero()
}

/// A namespace that no test of this run or of an earlier one uses.
fn unused_namespace() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (run, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let now = Clock::system().now().as_millisecond();
    format!("kit-{now}-{run}-{number}")
}

impl Drop for Server {
    fn drop(&mut self) {
        let requests = self.connection.requests.load(Ordering::Relaxed);
        let (None, Some(path)) = (&self.pocket, env::var_os("NEAP_KIT_NOTES")) else {
            return;
        };
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test without a name");
        // One write, so that lines of concurrent tests do not mix. A missing line is an error for
        // `cargo xtask kit`.
        let file = File::options().append(true).open(path);
        let _ = file
            .and_then(|mut file| file.write_all(format!("SERVED {test}: {requests}\n").as_bytes()));
    }
}

struct Monitored<S> {
    transport: S,
    connection: Arc<Connection>,
}

impl<S, R> Service<Request<Body>> for Monitored<S>
where
    S: Service<Request<Body>, Response = R>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    R: Send + 'static,
{
    type Response = R;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<R, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.transport.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if self.connection.disconnected.load(Ordering::Acquire) {
            return future::ready(Err("disconnected".into())).boxed();
        }
        self.connection.requests.fetch_add(1, Ordering::Relaxed);
        self.transport.call(request).err_into().boxed()
    }
}
