//! The server that this crate's own tests talk to: one in this process, or a real one.
//!
//! Each test has a `pocket` of its own and the paused clock that it began with. Where
//! `NEAP_KIT_SERVER` names a kubeconfig, the same tests talk to that server over a socket: time
//! then passes as it does, and each has a namespace of its own, so that none sees another's work.
//! What they made stays, so it should be a server that nobody misses.
//!
//! `cargo xtask kit` runs them so; which of them asked the server anything is noted for it in the
//! file that `NEAP_KIT_NOTES` names.

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

/// What is not served after this long never will be.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// A server for one test.
pub(crate) struct Server {
    /// A client whose own namespace is [`Self::namespace`].
    pub(crate) client: Client,
    line: Arc<Line>,
    namespace: String,
    pocket: Option<Pocket>,
}

/// What lies between the test and the server.
#[derive(Debug, Default)]
struct Line {
    requests: AtomicU64,
    cut: AtomicBool,
}

impl Server {
    pub(crate) async fn open() -> Self {
        match env::var_os("NEAP_KIT_SERVER") {
            Some(kubeconfig) => Self::real(kubeconfig.into()).await,
            None => Self::in_process().await,
        }
    }

    async fn in_process() -> Self {
        let options = Options::new(Environment::rehearsal(7));
        let pocket = Pocket::open(options).await.unwrap();
        let namespace = "default".to_owned();
        Self::reached_by(pocket.service(), namespace, Some(pocket))
    }

    async fn real(kubeconfig: PathBuf) -> Self {
        if time_stands_still() {
            // Nobody can wait for a socket under a clock that jumps ahead once everybody waits.
            tokio::time::resume();
        }
        let file = Kubeconfig::read_from(kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(file, &options)
            .await
            .unwrap();
        config.default_retry = false;
        let client = Client::try_from(config).unwrap();
        let namespace = unused();
        let object = serde_json::json!({"metadata": {"name": namespace}});
        let object = serde_json::from_value(object).unwrap();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let made = namespaces.create(&PostParams::default(), &object).await;
        made.unwrap();
        Self::reached_by(through(client), namespace, None)
    }

    fn reached_by<S, B>(transport: S, namespace: String, pocket: Option<Pocket>) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: hyper::body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let line = Arc::<Line>::default();
        let transport = Reached {
            transport,
            line: line.clone(),
        };
        Self {
            client: Client::new(transport, namespace.clone()),
            line,
            namespace,
            pocket,
        }
    }

    /// Where the test may do as it likes.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A name that no other test uses, for what is in no namespace.
    pub(crate) fn unshared(&self, name: &str) -> String {
        format!("{name}-{}", self.namespace)
    }

    /// `virtually` where hours pass in milliseconds, `really` where they do not.
    pub(crate) fn times(&self, virtually: u64, really: u64) -> u64 {
        match self.pocket {
            Some(_) => virtually,
            None => really,
        }
    }

    /// From now on nothing that is sent arrives.
    pub(crate) fn cut(&self) {
        self.line.cut.store(true, Ordering::Release);
    }

    /// Adds a kind, unless another test has, and waits until it is served.
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
                Clock::system().sleep(PAUSE).await;
            }
        };
        let served = Clock::system().within(PATIENCE, served).await;
        served.expect("the definition is served");
    }
}

/// A transport that ends in `client`.
pub(crate) fn through(
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

/// A client that nobody answers.
pub(crate) fn nobody() -> Client {
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

/// Whether the test's clock is paused; a second server finds it going again.
fn time_stands_still() -> bool {
    let clock = Clock::system();
    std::thread::sleep(Duration::from_millis(1));
    clock.uptime().is_zero()
}

/// The name of a namespace that no test of this run or of an earlier one has.
fn unused() -> String {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    let (run, number) = (std::process::id(), TAKEN.fetch_add(1, Ordering::Relaxed));
    let now = Clock::system().now().as_millisecond();
    format!("kit-{now}-{run}-{number}")
}

impl Drop for Server {
    fn drop(&mut self) {
        let requests = self.line.requests.load(Ordering::Relaxed);
        let (None, Some(notes)) = (&self.pocket, env::var_os("NEAP_KIT_NOTES")) else {
            return;
        };
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test without a name");
        // One write, so that lines of tests that run at the same time do not mix. What is not
        // noted is not counted, and that is an error to whoever counts.
        let note = File::options().append(true).open(notes);
        let _ = note
            .and_then(|mut file| file.write_all(format!("SERVED {test}: {requests}\n").as_bytes()));
    }
}

struct Reached<S> {
    transport: S,
    line: Arc<Line>,
}

impl<S, R> Service<Request<Body>> for Reached<S>
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
        if self.line.cut.load(Ordering::Acquire) {
            return future::ready(Err("the line is cut".into())).boxed();
        }
        self.line.requests.fetch_add(1, Ordering::Relaxed);
        self.transport.call(request).err_into().boxed()
    }
}
