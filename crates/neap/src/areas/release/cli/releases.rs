//! The cluster and namespace of a command, and how releases and streams are read there.

use neap_kit::{
    apply::{Error, Writer},
    clock::Clock,
    key::Key,
    lease::Leadership,
    suggest::nearest,
    why::chain,
};
use neap_release::{
    api::{ReleasePayload, annotations},
    area::{IMAGE_STREAM, RELEASE_PAYLOAD},
    config::{CONFIG_MAP_LIMIT, parse},
    image_stream::api::ImageStream,
    stream::StreamState,
};
use serde::de::DeserializeOwned;

use super::list::needs_note;
use crate::{
    cli::Scope,
    exit::{Exit, Failure},
    inspect::{
        cluster::Cluster,
        read::{self, ResourceType},
    },
};

/// A cluster, and the namespace of a command; all namespaces if there is none.
pub(in crate::areas::release) struct Releases {
    pub(in crate::areas::release) cluster: Cluster,
    pub(in crate::areas::release) namespace: Option<String>,
    pub(in crate::areas::release) clock: Clock,
}

/// A stream: its source and its name.
pub(in crate::areas::release) struct Stream {
    pub(in crate::areas::release) name: String,
    pub(in crate::areas::release) source: ImageStream,
}

impl Stream {
    /// Whether this is its name, or that of its source.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.source.metadata.name.as_deref() == Some(name)
    }
}

impl Releases {
    pub(in crate::areas::release) async fn of(scope: &Scope) -> Result<Self, Failure> {
        let cluster = Cluster::connect(&scope.cluster, None).await?;
        let named = scope
            .namespace
            .clone()
            .unwrap_or_else(|| cluster.namespace.clone());
        Ok(Self {
            cluster,
            namespace: (!scope.all_namespaces).then_some(named),
            clock: Clock::system(),
        })
    }

    async fn all<K: DeserializeOwned>(&self, kind: ResourceType) -> Result<Vec<K>, Failure> {
        let client = &self.cluster.client;
        let found = read::list_served(client, kind, self.namespace.as_deref(), None).await;
        let found = found.map_err(|error| self.cluster.failed(kind.plural, &error))?;
        let found = found.ok_or_else(|| self.unserved())?;
        let read = found.into_iter().map(|one| {
            serde_json::from_value(one).map_err(|error| unreadable(kind.name, &error.to_string()))
        });
        read.collect()
    }

    /// All releases, the newest first.
    pub(in crate::areas::release) async fn payloads(&self) -> Result<Vec<ReleasePayload>, Failure> {
        let mut all: Vec<ReleasePayload> = self.all(RELEASE_PAYLOAD).await?;
        all.sort_by_key(|one| {
            std::cmp::Reverse(one.metadata.creation_timestamp.clone().map(|time| time.0))
        });
        Ok(all)
    }

    /// The release of this name.
    pub(in crate::areas::release) async fn payload(
        &self,
        name: &str,
    ) -> Result<ReleasePayload, Failure> {
        let all = self.payloads().await?;
        let mut found = all
            .into_iter()
            .filter(|one| one.metadata.name.as_deref() == Some(name));
        let first = found.next().ok_or_else(|| self.missing("release", name))?;
        if found.next().is_some() {
            let why = "several namespaces have a release of this name";
            let failure = Failure::new("NT-RELEASE-0002", Exit::Usage, "ambiguous release", why);
            return Err(failure.remedy("name the namespace with -n"));
        }
        Ok(first)
    }

    /// All streams, by name.
    pub(in crate::areas::release) async fn streams(&self) -> Result<Vec<Stream>, Failure> {
        let all: Vec<ImageStream> = self.all(IMAGE_STREAM).await?;
        let mut streams: Vec<_> = all.into_iter().filter_map(stream).collect();
        streams.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(streams)
    }

    /// The stream of this name, or with the source of this name.
    pub(in crate::areas::release) async fn stream(&self, name: &str) -> Result<Stream, Failure> {
        let streams = self.streams().await?;
        self.known_stream(name, &streams)?;
        let found = streams.into_iter().find(|stream| stream.is_called(name));
        found.ok_or_else(|| self.missing("stream", name))
    }

    /// Fails if none of `streams` has this name, and names the one that was probably meant.
    pub(super) fn known_stream(&self, name: &str, streams: &[Stream]) -> Result<(), Failure> {
        if streams.iter().any(|stream| stream.is_called(name)) {
            return Ok(());
        }
        let failure = self.missing("stream", name);
        let names = streams.iter().map(|stream| stream.name.as_str());
        Err(match nearest(name, names) {
            Some(near) => failure.remedy(format!("did you mean {near}?")),
            None => failure,
        })
    }

    /// A writer without leader election.
    pub(in crate::areas::release) fn writer(&self) -> Writer {
        let leadership = Leadership::without_election(self.clock);
        Writer::new(
            self.cluster.client.clone(),
            "neap-cli",
            leadership,
            self.clock,
        )
    }

    /// The same for commands that write: they change one object, of one namespace.
    pub(in crate::areas::release) async fn of_one_namespace(
        scope: &Scope,
    ) -> Result<Self, Failure> {
        if scope.all_namespaces {
            let why = "this command changes the objects of one namespace, and -A names all";
            let what = "a namespace is missing";
            return Err(Failure::new("NT-RELEASE-0002", Exit::Usage, what, why)
                .remedy("name the namespace with -n; nothing was changed"));
        }
        Self::of(scope).await
    }

    /// What an empty list says.
    pub(super) fn none_of(&self, what: &str) -> String {
        match &self.namespace {
            Some(namespace) => {
                format!("There is no {what} in namespace {namespace}; -A shows all namespaces.")
            }
            None => format!("There is no {what} in any namespace."),
        }
    }

    /// The ImageStreams, if one of the releases must not be published: it may still be. None if they cannot be read.
    pub(super) async fn publishing(&self, payloads: &[ReleasePayload]) -> Vec<ImageStream> {
        if !payloads.iter().any(needs_note) {
            return Vec::new();
        }
        self.all(IMAGE_STREAM).await.unwrap_or_default()
    }

    fn missing(&self, what: &str, name: &str) -> Failure {
        let place = self.namespace.as_deref();
        let place = place.map_or("any namespace".to_owned(), |it| format!("namespace {it}"));
        let why = format!("there is no {what} {name} in {place}");
        Failure::new(
            "NT-RELEASE-0002",
            Exit::NotFound,
            &format!("{what} not found"),
            &why,
        )
        .remedy("list what there is: neap release streams -A, neap release list -A")
    }

    fn unserved(&self) -> Failure {
        let why = format!(
            "{} does not serve the kinds of releases",
            self.cluster.address
        );
        Failure::new(
            "NT-RELEASE-0003",
            Exit::NotFound,
            "there are no releases",
            &why,
        )
        .remedy("install deploy/release, or try it in neap up")
    }
}

/// The stream whose source this is, also if its configuration cannot be read. The name of a stream whose
/// configuration is elsewhere is in its state.
fn stream(source: ImageStream) -> Option<Stream> {
    let all = source.metadata.annotations.as_ref()?;
    let text = all.get(annotations::CONFIG);
    let elsewhere = [annotations::CONFIG_REF, annotations::HAND_OVER];
    if text.is_none() && !elsewhere.iter().any(|name| all.contains_key(*name)) {
        return None;
    }
    let config = text.and_then(|text| parse(text, CONFIG_MAP_LIMIT).ok());
    let state = all.get(annotations::STREAM_STATE);
    let state: Option<StreamState> = state.and_then(|text| serde_json::from_str(text).ok());
    let recorded = state
        .map(|state| state.stream)
        .filter(|name| !name.is_empty());
    let name = config
        .map(|config| config.name)
        .or(recorded)
        .or_else(|| source.metadata.name.clone());
    Some(Stream {
        name: name.unwrap_or_default(),
        source,
    })
}

pub(in crate::areas::release) fn write_failed(key: &Key, error: &Error) -> Failure {
    let what = format!("{key} cannot be changed");
    Failure::new("NT-RELEASE-0002", Exit::Failed, &what, &chain(error))
        .remedy("check your rights: kubectl auth can-i patch releasepayloads.release.openshift.io")
}

fn unreadable(kind: &str, why: &str) -> Failure {
    let what = format!("{kind} objects cannot be decoded");
    Failure::new("NT-RELEASE-0001", Exit::Failed, &what, why)
        .remedy("install the definition of this version: deploy/release")
}
