//! The registry of `neap up`, with sample images of components.
//!
//! The listener is there from the start, since its address is printed. The registry behind it is opened with
//! the first request or the first object of the area; then the samples are pushed, and after them the imports
//! of ImageStreams begin. Requests wait until the samples are there.

pub(super) mod hosting;

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
use tokio_util::sync::CancellationToken;

use super::cli::controllers::not_set_up;
use crate::{
    areas::Host,
    exit::{Exit, Failure},
};

/// The port of the registry, at an address of its own.
const PORT: u16 = 5000;
/// The delay before the samples are pushed again, after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Bounds the time that a request waits for the samples.
const SAMPLES_TIMEOUT: Duration = Duration::from_secs(20);

/// The registry, before it was used.
pub(super) struct UpRegistry {
    registry: Arc<LazyRegistry>,
    address: SocketAddr,
    samples: Arc<Samples>,
}

/// A registry that is opened with the first request.
struct LazyRegistry {
    opened: OnceCell<Arc<Registry>>,
    folder: PathBuf,
    clock: Clock,
}

/// Whether the registry was used, and whether it has its samples.
#[derive(Default)]
struct Samples {
    first_use: OnceLock<FirstUse>,
    pushed: CancellationToken,
}

/// The registry as its users see it: the first request makes it be filled, and waits until it is.
struct SampledRegistry {
    registry: Arc<LazyRegistry>,
    samples: Arc<Samples>,
}

impl System for SampledRegistry {
    fn respond(self: Arc<Self>, request: Request<Body>) -> BoxFuture<'static, Response<Body>> {
        Box::pin(async move {
            if let Some(first_use) = self.samples.first_use.get() {
                first_use.mark();
            }
            tokio::select! {
                () = self.samples.pushed.cancelled() => {}
                // Without its samples, it is a registry all the same; the log says why they are missing.
                () = self.registry.clock.sleep(SAMPLES_TIMEOUT) => {}
            }
            self.registry.clone().respond(request).await
        })
    }
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
    let registry = Arc::new(LazyRegistry {
        opened: OnceCell::new(),
        folder: host.folder()?.join("registry"),
        clock,
    });
    let samples = Arc::<Samples>::default();
    let sampled = SampledRegistry {
        registry: registry.clone(),
        samples: samples.clone(),
    };
    let emulator = Emulator::new(sampled, clock);
    let socket = bind(address).map_err(|error| {
        let what = format!("cannot listen on {address} for the image registry");
        Failure::new("NT-RELEASE-0110", Exit::Failed, &what, &error.to_string())
            .remedy("stop the program that uses the address")
    })?;
    host.add([listen("release-registry", socket, clock, emulator)]);
    let published = hosting::component(host.context(), address);
    host.add([published]);
    host.announce("registry", format!("http://{address}"));
    Ok(UpRegistry {
        registry,
        address,
        samples,
    })
}

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = std::net::TcpListener::bind(address)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}

impl UpRegistry {
    /// What a request to the registry marks: it is a use, too.
    pub(super) fn starts_with(&self) -> impl FnOnce(FirstUse) + use<> {
        let samples = self.samples.clone();
        move |first_use| {
            let _ = samples.first_use.set(first_use);
        }
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
        let imports = controller::component(context, &client, facts::Settings::default());
        let imports = imports.map_err(|error| not_set_up(&error.to_string()))?;
        // What fills the registry does not wait until it is filled.
        let transport = Emulator::sharing(self.registry.clone(), context.clock).transport();
        let local = Client::builder("release-samples", context.clock);
        let local = local.transport(transport).build();
        let local = local.map_err(|error| not_set_up(&error.to_string()))?;
        let local = RegistryClient::new(local, Credentials::none(), Options::default());
        let (clock, address) = (context.clock, self.address);
        let (registry, samples) = (self.registry, self.samples);
        Ok(Component::new(
            "release-registry-contents",
            move |stop| async move {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = push_samples(&local, address, clock) => {}
                }
                samples.pushed.cancel();
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
