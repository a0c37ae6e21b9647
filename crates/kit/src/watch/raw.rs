//! The stream of a watch, before its objects are decoded as a kind.
//!
//! Listing, watching and reopening are the same for every kind. They are compiled once, here, and not
//! again for each kind in each crate that watches it: only decoding is generic.

use std::{
    borrow::Cow,
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::StreamExt;
use kube::{
    Api, Client, Resource,
    api::ObjectMeta,
    core::DynamicResourceScope,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    Selection,
    decoded::{DecodeFailure, Decoded},
};
use crate::{
    backoff::WatchBackoff,
    planted,
    telemetry::{Telemetry, WatchEventReceived, WatchFailed},
};

pub(super) type WatchTask = Pin<Box<dyn Future<Output = ()> + Send>>;
type Sink<const METADATA: bool> = Box<dyn Fn(Event<RawObject<METADATA>>) + Send>;

/// Everything that a watch needs besides the kind of its objects.
pub(super) struct WatchSource {
    pub(super) client: Client,
    /// The path of the collection.
    pub(super) address: String,
    pub(super) selection: Selection,
    pub(super) telemetry: Telemetry,
    /// Set while the server does not serve the kind.
    pub(super) unserved: Arc<AtomicBool>,
}

impl WatchSource {
    /// A task that watches whole objects and passes every event to `sink`.
    pub(super) fn objects(self, sink: Sink<false>) -> WatchTask {
        Box::pin(run(self, sink))
    }

    /// The same for metadata alone.
    pub(super) fn metadata(self, sink: Sink<true>) -> WatchTask {
        Box::pin(run(self, sink))
    }
}

async fn run<const METADATA: bool>(source: WatchSource, sink: Sink<METADATA>) {
    let WatchSource {
        client,
        address,
        selection,
        telemetry,
        unserved,
    } = source;
    let api = Api::<RawObject<METADATA>>::all_with(client, &Address(address.clone()));
    let config = watcher::Config {
        label_selector: selection.labels,
        field_selector: selection.fields,
        ..watcher::Config::default()
    };
    let config = if planted!(AnyAge) {
        config.any_semantic()
    } else {
        config
    };
    let mut events = Box::pin(watcher(api, config).backoff(WatchBackoff::default()));
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if unserved.swap(false, Ordering::Relaxed) {
                    tracing::info!(watch = address, "the server serves this kind now");
                }
                if let Some(event) = event_label(&event) {
                    let watch = &address;
                    telemetry.emit(&WatchEventReceived { watch, event });
                }
                sink(event);
            }
            // Not a failure: the definition may be installed later, and then the watch begins.
            Err(error) if is_unserved(&error) => {
                if !unserved.swap(true, Ordering::Relaxed) {
                    tracing::info!(
                        watch = address,
                        "the server does not serve this kind; what needs it waits until it does"
                    );
                }
            }
            Err(error) => telemetry.emit(&WatchFailed {
                watch: &address,
                error: error.to_string(),
            }),
        }
    }
}

/// Whether the server has no such collection.
fn is_unserved(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(source) | watcher::Error::WatchStartFailed(source)) =
        error
    else {
        return false;
    };
    matches!(source, kube::Error::Api(status) if status.code == 404)
}

/// The value of the `event` label of the metrics.
fn event_label<K>(event: &Event<K>) -> Option<&'static str> {
    match event {
        Event::Init => Some(WatchEventReceived::LISTING),
        Event::InitApply(_) => Some("listed"),
        Event::InitDone => None,
        Event::Apply(_) => Some("applied"),
        Event::Delete(_) => Some("deleted"),
    }
}

/// The path of a collection, which stands for the kind in requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Address(String);

/// An object as the server sent it. With `METADATA` only metadata is requested.
#[derive(Clone)]
pub(super) struct RawObject<const METADATA: bool> {
    /// Name, namespace, uid and version; the rest is in the text alone.
    metadata: ObjectMeta,
    text: Box<RawValue>,
}

impl<const METADATA: bool> fmt::Debug for RawObject<METADATA> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawObject").field(&self.metadata).finish()
    }
}

/// The metadata that the watch itself needs. The others are skipped without being decoded.
#[derive(Deserialize)]
struct Identified {
    #[serde(default)]
    metadata: Identity,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}

impl<'de, const METADATA: bool> Deserialize<'de> for RawObject<METADATA> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let Identified { metadata } =
            serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        let metadata = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, text })
    }
}

impl<const METADATA: bool> Resource for RawObject<METADATA> {
    type DynamicType = Address;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        METADATA
    }

    fn url_path(address: &Address, _namespace: Option<&str>) -> String {
        address.0.clone()
    }

    // Requests are made by the path alone, so the names of the kind are of no consequence.
    fn kind(_: &Address) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn group(_: &Address) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn version(_: &Address) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn plural(_: &Address) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The same event with its object decoded as a `K`, or with the reason why it cannot be.
pub(super) fn decode_event<K: DeserializeOwned, const METADATA: bool>(
    event: Event<RawObject<METADATA>>,
) -> Event<Decoded<K>> {
    match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(decode(object)),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(decode(object)),
        Event::Delete(object) => Event::Delete(decode(object)),
    }
}

pub(super) fn decode<K: DeserializeOwned, const METADATA: bool>(
    object: RawObject<METADATA>,
) -> Decoded<K> {
    let decoded = serde_json::from_str(object.text.get());
    Decoded(decoded.map_err(|problem| DecodeFailure {
        metadata: object.metadata,
        problem: problem.to_string(),
    }))
}
