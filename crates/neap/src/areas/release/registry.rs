//! The registry of `neap up`, with sample images of components.
//!
//! The listener is there from the start, since its address is printed. The registry behind it is opened with
//! the first request or the first object of the area; then the samples are pushed, and after them the imports
//! of ImageStreams begin.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use neap_emulators::{
    listen::listen,
    registry::{OpenError, Registry, Settings},
    system::{Emulator, System},
};
use neap_kit::{
    client::{Body, Client},
    clock::Clock,
    context::Context,
    lazy::FirstUse,
    manager::Component,
    why::chain,
};
use neap_release::{
    image_stream::{controller, facts},
    oci::{
        client::{Options, RegistryClient},
        credentials::Credentials,
        reference::ImageRef,
    },
    payload_image::sample,
};
use tokio::{net::TcpListener, sync::OnceCell};

use super::cli::controllers::not_set_up;
use crate::{
    areas::Host,
    exit::{Exit, Failure},
};

/// The port of the registry, at an address of its own.
const PORT: u16 = 5000;
/// The delay before the samples are pushed again, after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// The registry, before it was used.
pub(super) struct UpRegistry {
    emulator: Emulator<LazyRegistry>,
    address: SocketAddr,
    first_use: Arc<OnceLock<FirstUse>>,
}

/// A registry that is opened with the first request.
pub(super) struct LazyRegistry {
    opened: OnceCell<Arc<Registry>>,
    folder: PathBuf,
    clock: Clock,
    first_use: Arc<OnceLock<FirstUse>>,
}

impl LazyRegistry {
    async fn open(&self) -> Result<&Arc<Registry>, OpenError> {
        let open = || async {
            let opened = Registry::in_folder(Settings::default(), self.clock, &self.folder);
            opened.await.map(Arc::new)
        };
        self.opened.get_or_try_init(open).await
    }
}

impl System for LazyRegistry {
    fn respond(self: Arc<Self>, request: Request<Body>) -> BoxFuture<'static, Response<Body>> {
        Box::pin(async move {
            if let Some(first_use) = self.first_use.get() {
                first_use.mark();
            }
            match self.open().await {
                Ok(registry) => registry.clone().respond(request).await,
                Err(error) => {
                    let mut response = Response::new(Body::from(chain(&error)));
                    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                    response
                }
            }
        })
    }
}

/// Adds the listener of the registry, and prints its address.
pub(super) fn add(host: &mut Host<'_>) -> Result<UpRegistry, Failure> {
    let address = SocketAddr::new(host.address()?, PORT);
    let clock = host.context().clock;
    let first_use = Arc::<OnceLock<FirstUse>>::default();
    let registry = LazyRegistry {
        opened: OnceCell::new(),
        folder: host.folder()?.join("registry"),
        clock,
        first_use: first_use.clone(),
    };
    let emulator = Emulator::new(registry, clock);
    let socket = bind(address).map_err(|error| {
        let what = format!("cannot listen on {address} for the image registry");
        Failure::new("NT-RELEASE-0110", Exit::Failed, &what, &error.to_string())
            .remedy("stop the program that uses the address")
    })?;
    host.add([listen("release-registry", socket, clock, emulator.clone())]);
    host.announce("registry", format!("http://{address}"));
    Ok(UpRegistry {
        emulator,
        address,
        first_use,
    })
}

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = std::net::TcpListener::bind(address)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}

impl UpRegistry {
    /// What marks the first use: a request to the registry does, too.
    pub(super) fn first_use(&self) -> Arc<OnceLock<FirstUse>> {
        self.first_use.clone()
    }

    /// The host that image references name.
    pub(super) fn host(&self) -> String {
        self.address.to_string()
    }

    /// Pushes the samples, and then imports the tags of ImageStreams.
    pub(super) fn component(self, context: &Context) -> Result<Component, Failure> {
        let http = Client::builder("release-imports", context.clock).build();
        let http = http.map_err(|error| not_set_up(&error.to_string()))?;
        let client = RegistryClient::new(http, Credentials::none(), Options::default());
        let imports = controller::component(context, client, facts::Settings::default());
        let imports = imports.map_err(|error| not_set_up(&error.to_string()))?;
        let local = Client::builder("release-samples", context.clock);
        let local = local.transport(self.emulator.transport()).build();
        let local = local.map_err(|error| not_set_up(&error.to_string()))?;
        let local = RegistryClient::new(local, Credentials::none(), Options::default());
        let (clock, address, registry) =
            (context.clock, self.address, self.emulator.system().clone());
        Ok(Component::new(
            "release-registry-contents",
            move |stop| async move {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = push_samples(&local, address, clock) => {}
                }
                let collect = async {
                    if let Ok(registry) = registry.open().await {
                        registry.collector().run(stop.clone()).await;
                    }
                };
                tokio::join!(imports.run(stop.clone()), collect);
            },
        ))
    }
}

/// Pushes the samples, until it succeeds. What is there already is not sent again.
async fn push_samples(client: &RegistryClient, address: SocketAddr, clock: Clock) {
    for image in sample::release() {
        let name = format!("{address}/sample/{}:v1", image.name);
        loop {
            match push_sample(client, &image, &name).await {
                Ok(()) => break,
                Err(error) => tracing::warn!("the sample {name} was not pushed: {error}"),
            }
            clock.sleep(RETRY_DELAY).await;
        }
    }
}

async fn push_sample(
    client: &RegistryClient,
    image: &sample::SampleImage,
    name: &str,
) -> Result<(), String> {
    let target = name.parse::<ImageRef>().map_err(|error| chain(&error))?;
    let built = image.build().map_err(|error| chain(&error))?;
    let found = client.find(&target).await.map_err(|error| chain(&error))?;
    if found.is_some() {
        return Ok(());
    }
    sample::push(client, &built, &target)
        .await
        .map_err(|error| chain(&error))
}
