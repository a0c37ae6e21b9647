//! Settings for all services of a namespace, which users write as annotations on the Namespace.

mod switches;

use std::{collections::HashMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt, api::ObjectMeta};
use neap_kit::{
    builder::ControllerBuilder,
    clock::Clock,
    context::Context,
    controller::Enqueuer,
    key::Key,
    watch::{Cache, Change, Metadata, Selection, WatchesStopped},
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

pub use self::switches::Switches;

/// The time between two reads of namespaces that may not be watched.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Called with the namespace whose switches changed; with an empty name if the change is for all.
pub(crate) type OnChange = Arc<dyn Fn(&str, &Enqueuer<Key>) + Send + Sync>;

/// The switches of all namespaces. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Namespaces {
    /// The namespace of the operator, whose switches apply everywhere.
    operator_namespace: String,
    source: Source,
}

#[derive(Clone)]
enum Source {
    Watched(Cache<Metadata<Namespace>>),
    /// A process that may see only some namespaces can read each of them, but not watch it: a watch of a
    /// single Namespace is a request to all of them, for which no Role counts.
    Polled(Arc<PolledNamespaces>),
}

struct PolledNamespaces {
    namespaces: Vec<String>,
    api: Api<Namespace>,
    clock: Clock,
    switches: Mutex<HashMap<String, Switches>>,
    on_change: OnChange,
    enqueuer: Enqueuer<Key>,
    operator_namespace: String,
}

impl Namespaces {
    pub(crate) fn new(
        builder: &mut ControllerBuilder,
        context: &Context,
        operator_namespace: &str,
        on_change: OnChange,
    ) -> Result<Self, WatchesStopped> {
        let client = context.client.clone();
        let operator_namespace = operator_namespace.to_owned();
        if context.watches.namespaces().is_empty() {
            let cache = builder.selected(Api::all(client), Selection::default())?;
            let operator = operator_namespace.clone();
            builder.on_change(&cache, move |change, enqueuer| {
                if let Change::Modified { old, new } = change
                    && switches(old) != switches(new)
                {
                    on_change(scope(&operator, change.key().name()), enqueuer);
                }
            });
            return Ok(Self {
                operator_namespace,
                source: Source::Watched(cache),
            });
        }
        let polled = Arc::new(PolledNamespaces {
            namespaces: context.watches.namespaces().to_vec(),
            api: Api::all(client),
            clock: context.clock,
            switches: Mutex::default(),
            on_change,
            enqueuer: builder.enqueuer(),
            operator_namespace: operator_namespace.clone(),
        });
        let first = polled.clone();
        builder.wait_for(async move { first.poll().await });
        Ok(Self {
            operator_namespace,
            source: Source::Polled(polled),
        })
    }

    /// The switches that apply to the services of a namespace.
    pub(crate) fn switches(&self, namespace: &str) -> Switches {
        let everywhere = self.of(&self.operator_namespace);
        self.of(namespace).or(everywhere)
    }

    fn of(&self, namespace: &str) -> Switches {
        match &self.source {
            Source::Watched(cache) => {
                let found = cache.get(&Key::new("", namespace));
                found.map(|found| switches(&found)).unwrap_or_default()
            }
            Source::Polled(polled) => {
                let switches = polled.switches.lock();
                switches.get(namespace).copied().unwrap_or_default()
            }
        }
    }

    /// Whether a namespace is being deleted. Without a response it counts as not being deleted.
    pub(crate) async fn is_terminating(&self, namespace: &str) -> bool {
        let terminating = |metadata: &ObjectMeta| metadata.deletion_timestamp.is_some();
        match &self.source {
            Source::Watched(cache) => {
                let found = cache.get(&Key::new("", namespace));
                found.is_some_and(|found| terminating(&found.metadata))
            }
            Source::Polled(polled) => {
                let found = polled.api.get_metadata(namespace).await;
                found.is_ok_and(|found| terminating(&found.metadata))
            }
        }
    }

    /// Waits until the switches are known.
    pub(crate) async fn synced(&self) {
        match &self.source {
            Source::Watched(cache) => cache.synced().await,
            Source::Polled(polled) => polled.poll().await,
        }
    }

    /// Polls until `stop`, if the namespaces are not watched.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let Source::Polled(polled) = self.source else {
            return;
        };
        let polling = async {
            loop {
                polled.clock.sleep(POLL_INTERVAL).await;
                polled.poll().await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = polling => {}
        }
    }
}

impl PolledNamespaces {
    async fn poll(&self) {
        for namespace in &self.namespaces {
            // Without a response the former switches stay.
            let Ok(found) = self.api.get_metadata(namespace).await else {
                continue;
            };
            let now = Switches::of(found.annotations());
            let before = self.switches.lock().insert(namespace.clone(), now);
            if before.unwrap_or_default() != now {
                (self.on_change)(scope(&self.operator_namespace, namespace), &self.enqueuer);
            }
        }
    }
}

/// The namespace to which switches apply: all, if they are on the operator's.
fn scope<'a>(operator_namespace: &str, namespace: &'a str) -> &'a str {
    if namespace == operator_namespace {
        ""
    } else {
        namespace
    }
}

fn switches(namespace: &Metadata<Namespace>) -> Switches {
    Switches::of(namespace.annotations())
}
