//! The registry of a workload: images that exist from the start, and those that Jobs push.

use std::{collections::BTreeMap, sync::Arc};

use futures::executor::block_on;
use http::StatusCode;
use jiff::Timestamp;
use neap_emulators::{
    fault_book::CallMatcher,
    registry::{Registry, Settings},
    system::Emulator,
};
use neap_kit::{
    client::{Client, Fault, Refusal, Transport},
    clock::Clock,
};
use neap_pocket::store::Event;
use neap_release::{
    oci::{
        client::{Options, RegistryClient},
        credentials::Credentials,
        reference::ImageRef,
    },
    payload_image::sample::{self, BuiltSample, SampleImage},
};
use neap_trial::external::{ExternalClient, ExternalService};

/// Its host.
pub(crate) const HOST: &str = "registry.example.com";
/// The registry that refuses, limits, breaks off and lies.
pub(crate) const BAD_HOST: &str = "bad.example.com";
/// The label with the name of a release.
const RELEASE_LABEL: &str = "io.openshift.release";

/// What the bad registry does, by repository.
pub(crate) fn bad_faults() -> [(&'static str, Fault); 4] {
    let limit = Refusal {
        status: StatusCode::TOO_MANY_REQUESTS,
        retry_after: Some(120),
    };
    [
        ("/v2/limited/manifests/*", Fault::Refused(limit)),
        ("/v2/broken/manifests/*", Fault::Truncated(20)),
        ("/v2/lying/manifests/*", Fault::Corrupted(20)),
        (
            "/v2/refused/manifests/*",
            Fault::Refused(Refusal::of(StatusCode::FORBIDDEN)),
        ),
    ]
}

/// A client of a process under test, whose calls faults strike.
pub(crate) fn client(external: &ExternalClient, clock: Clock) -> Option<RegistryClient> {
    client_over(external.transport(), clock)
}

fn client_over(transport: Transport, clock: Clock) -> Option<RegistryClient> {
    let http = Client::builder("registry", clock).transport(transport);
    let http = http.build().ok()?;
    let options = Options::default();
    Some(RegistryClient::new(http, Credentials::none(), options))
}

/// A small image whose label says that it is the release `name`.
pub(crate) fn release_image(name: &str) -> Option<BuiltSample> {
    let sample = SampleImage::new("release", &[(RELEASE_LABEL, name)], &[("release", name)]);
    sample.build().ok()
}

/// The digest of that image.
pub(crate) fn digest_of(name: &str) -> String {
    let image = release_image(name);
    image.map_or_else(String::new, |image| image.manifest.digest.to_string())
}

/// The pull spec of an image in the registry of releases.
pub(crate) fn image(repository: &str, tag: &str) -> Option<ImageRef> {
    image_at(HOST, repository, tag)
}

fn image_at(host: &str, repository: &str, tag: &str) -> Option<ImageRef> {
    format!("{host}/{repository}:{tag}").parse().ok()
}

/// A registry with these images, by repository and tag, which is judged by `check`. It gets the writes
/// to the API server and the pushes to the registry.
pub(crate) fn registry(
    clock: Clock,
    images: &[(&str, &str)],
    check: impl Fn(&[Arc<Event>], &Pushes) -> Vec<String> + Send + Sync + 'static,
) -> ExternalService {
    open(clock, HOST, images, &[], move |history, registry| {
        check(history, &Pushes::of(registry))
    })
}

/// A registry at `host` that fails in these ways at these paths, and is judged by `check`.
pub(crate) fn open(
    clock: Clock,
    host: &'static str,
    images: &[(&str, &str)],
    faults: &[(&str, Fault)],
    check: impl Fn(&[Arc<Event>], &Emulator<Registry>) -> Vec<String> + Send + Sync + 'static,
) -> ExternalService {
    let registry = Emulator::new(Registry::in_memory(Settings::default(), clock), clock);
    // A registry in memory never waits, so this needs no runtime of its own.
    let is_missing = |(repository, tag): &&(&str, &str)| {
        !block_on(push(registry.transport(), clock, host, repository, tag))
    };
    let missing: Vec<_> = images
        .iter()
        .filter(is_missing)
        .map(|(repository, tag)| format!("{repository}:{tag} could not be pushed"))
        .collect();
    registry.calls().clear();
    for (path, fault) in faults {
        registry.faults().inject(CallMatcher::path(*path), *fault);
    }
    let transport = registry.transport();
    ExternalService::new(transport).checked(move |history| {
        let mut problems = missing.clone();
        problems.extend(check(history, &registry));
        problems
    })
}

async fn push(transport: Transport, clock: Clock, host: &str, repository: &str, tag: &str) -> bool {
    let (Some(client), Some(built), Some(target)) = (
        client_over(transport, clock),
        release_image(tag),
        image_at(host, repository, tag),
    ) else {
        return false;
    };
    sample::push(&client, &built, &target).await.is_ok()
}

/// The most calls that a registry got within an hour.
pub(crate) fn most_in_an_hour(registry: &Emulator<Registry>) -> usize {
    let calls: Vec<_> = registry
        .calls()
        .calls()
        .iter()
        .map(|call| call.at)
        .collect();
    let within = |start: &Timestamp| {
        let end = calls.partition_point(|at| at.duration_since(*start).as_hours() < 1);
        end - calls.partition_point(|at| at < start)
    };
    calls.iter().map(within).max().unwrap_or_default()
}

/// When each image was pushed for the first time, by repository and tag.
#[derive(Debug, Default)]
pub struct Pushes(BTreeMap<String, Timestamp>);

impl Pushes {
    fn of(registry: &Emulator<Registry>) -> Self {
        let mut pushes = BTreeMap::new();
        for call in registry.calls().calls() {
            let done = call.status.is_some_and(|status| status.is_success());
            let name = call.path.strip_prefix("/v2/").unwrap_or_default();
            if let Some((repository, tag)) = name.split_once("/manifests/")
                && done
                && call.method == "PUT"
            {
                let image = format!("{repository}:{tag}");
                pushes.entry(image).or_insert(call.at);
            }
        }
        Self(pushes)
    }

    /// Whether the image was there at this time.
    pub fn had(&self, repository: &str, tag: &str, at: Timestamp) -> bool {
        let pushed = self.0.get(&format!("{repository}:{tag}"));
        pushed.is_some_and(|pushed| *pushed <= at)
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, Timestamp); N]> for Pushes {
    fn from(pushes: [(&str, Timestamp); N]) -> Self {
        let pushes = pushes.map(|(image, at)| (image.to_owned(), at));
        Self(pushes.into())
    }
}
