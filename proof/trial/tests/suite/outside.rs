//! A controller that calls an OCI registry, under every fault between them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use neap_emulators::{
    registry::{Digest, Registry, Settings},
    system::Emulator,
};
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    client::{self, Client},
    clock::{Clock, Uptime},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    watch::{Cache, WatchesStopped},
};
use neap_pocket::store::Event;
use neap_trial::{
    ClusterTemplate, UserRequest, Workload,
    external::{ExternalClient, ExternalService},
    plan::parse,
    proof,
    run::run,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

const HOST: &str = "registry.example.com";
const PATH: &str = "/api/v1/namespaces/default/configmaps/images";
/// A run without faults needs six; each fault costs a few more.
const MAX_CALLS: u64 = 40;
const IMPORT_RETRY: Duration = Duration::from_secs(10);
const IMPORT_LIFETIME: Duration = Duration::from_hours(1);

/// How the controller treats what the registry says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// It checks every manifest against its digest.
    Checks,
    /// It believes whatever arrives.
    Believes,
}

struct Importer {
    maps: Cache<ConfigMap>,
    tools: Tools,
    registry: Client,
    care: Care,
    /// What was read lately: a write that is refused again and again asks the registry nothing.
    known: Mutex<BTreeMap<String, (Uptime, String)>>,
}

/// The controller: writes the digests of the tags that a ConfigMap asks for into it.
fn importer(
    context: &Context,
    external: &ExternalClient,
    care: Care,
) -> Result<Vec<Component>, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "importer");
    let client = Client::builder("registry", context.clock).transport(external.transport());
    let importer = Importer {
        maps: builder.primary()?,
        tools: builder.tools(),
        registry: client.build().unwrap(),
        care,
        known: Mutex::default(),
    };
    Ok(vec![builder.build(importer, Importer::reconcile)])
}

impl Importer {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(map) = self.maps.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let data = map.data.clone().unwrap_or_default();
        let Some(tags) = data.get("tags") else {
            return Ok(Outcome::Done);
        };
        let mut wanted = data.clone();
        for tag in tags.split(' ') {
            match self.import(tag).await {
                Ok(Some(digest)) => {
                    wanted.insert(format!("digest.{tag}"), digest);
                }
                Ok(None) | Err(_) => return Ok(Outcome::RequeueAfter(IMPORT_RETRY)),
            }
        }
        if wanted != data {
            let mut map = ConfigMap::clone(&map);
            map.data = Some(wanted);
            self.tools.writer.replace(&map).await?;
        }
        Ok(Outcome::Done)
    }

    /// The digest of a tag; none if the manifest is not what the registry says it is.
    async fn import(&self, tag: &str) -> Result<Option<String>, client::Error> {
        let now = self.tools.clock.uptime();
        if let Some((at, digest)) = self.known.lock().get(tag)
            && now.saturating_sub(*at) < IMPORT_LIFETIME
        {
            return Ok(Some(digest.clone()));
        }
        let address = format!("https://{HOST}/v2/ocp/release/manifests/{tag}");
        let manifest = self.registry.get(address).fetch(1 << 20).await?.success()?;
        let digest = Digest::of(&manifest.body).to_string();
        let announced = manifest.header("docker-content-digest");
        if announced != Some(&digest) && self.care == Care::Checks {
            return Ok(None);
        }
        let known = (now, digest.clone());
        self.known.lock().insert(tag.to_owned(), known);
        Ok(Some(digest))
    }
}

/// A registry with an image, which is judged by what was read from it.
fn registry(clock: Clock) -> ExternalService {
    let registry = Emulator::new(Registry::in_memory(Settings::default(), clock), clock);
    let (pushed, transport) = (push(&registry), registry.transport());
    ExternalService::new(transport).checked(move |history| {
        let mut problems: Vec<_> = digests(history)
            .difference(&pushed)
            .map(|digest| format!("{digest} was never in the registry"))
            .collect();
        let calls = registry.calls().count();
        if calls > MAX_CALLS {
            problems.push(format!("{calls} calls"));
        }
        problems
    })
}

/// Pushes two images; returns their digests.
fn push(registry: &Emulator<Registry>) -> BTreeSet<String> {
    let mut pushed = BTreeSet::new();
    let client = Client::builder("pusher", Clock::system())
        .transport(registry.transport())
        .build()
        .unwrap();
    // A registry in memory never waits, so this needs no runtime of its own.
    futures::executor::block_on(async {
        let config = Digest::of(b"{}");
        let path = format!("https://{HOST}/v2/ocp/release/blobs/uploads/?digest={config}");
        put(client.post(path).body("{}")).await;
        for tag in ["one", "two"] {
            let kind = "application/vnd.oci.image.manifest.v1+json";
            let manifest = json!({
                "schemaVersion": 2, "mediaType": kind, "layers": [],
                "config": {"mediaType": "a/b", "digest": config.to_string(), "size": 2},
                "annotations": {"tag": tag},
            });
            let path = format!("https://{HOST}/v2/ocp/release/manifests/{tag}");
            let request = client.put(path).header("content-type", kind);
            let answer = put(request.body(manifest.to_string())).await;
            pushed.insert(answer);
        }
    });
    registry.calls().clear();
    pushed
}

async fn put(request: client::RequestBuilder) -> String {
    let answer = request.fetch(1 << 20).await.unwrap().success().unwrap();
    let digest = answer.header("docker-content-digest");
    digest.unwrap_or_default().to_owned()
}

/// The digests that were ever written.
fn digests(history: &[Arc<Event>]) -> BTreeSet<String> {
    let data = history.iter().filter_map(|event| {
        let object: Value = event.object.value();
        serde_json::from_value::<BTreeMap<String, String>>(object["data"].clone()).ok()
    });
    data.flatten()
        .filter(|(name, _)| name.starts_with("digest."))
        .map(|(_, digest)| digest)
        .collect()
}

fn workload(care: Care) -> Workload {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "images", "namespace": "default"}, "data": {"tags": "one"},
    });
    let more = json!({"data": {"tags": "one two"}});
    Workload::new("importer")
        .service(HOST, registry)
        .process("controller", None, move |context, external| {
            importer(context, external, care)
        })
        .step("create", [UserRequest::Create(map)])
        .step("change", [UserRequest::Patch(PATH, more)])
        .step("delete", [UserRequest::Delete(PATH)])
}

#[test]
fn an_importer_that_checks_digests_survives_every_fault() -> Result<(), proof::Failure> {
    let faults = proof::every_fault(&workload(Care::Checks))?;
    assert!(faults > 60, "{faults} faults");
    Ok(())
}

#[test]
fn an_importer_that_believes_the_registry_is_reported() {
    let failure = proof::every_fault(&workload(Care::Believes)).unwrap_err();
    let text = failure.to_string();
    assert!(text.contains("corrupt 1"), "{text}");
    assert!(text.contains("was never in the registry"), "{text}");
}

#[test]
fn each_fault_between_a_client_and_a_system_strikes() {
    let template = ClusterTemplate::prepare_blocking().unwrap();
    for (point, actions) in [
        (
            "ext.before",
            "lose,dup,fail 503,fail 429 retry-after 2s,delay 12s,pause 40s,crash",
        ),
        (
            "ext.after",
            "lose,truncate 3,corrupt 3,fail 500,delay 12s,pause 40s,crash",
        ),
    ] {
        for action in actions.split(',') {
            let text = format!(
                "plan p\nworkload importer seed 7\n\
                 on {point} call=GET name={HOST}/v2/ocp/* #1 for any do {action}"
            );
            let plan = parse(&text).unwrap().remove(0);
            let record = run(&workload(Care::Checks), &plan, &template).unwrap();
            assert!(record.idle.is_empty(), "{action} at {point} did not strike");
            assert_eq!(record.violations, [], "{action} at {point}");
        }
    }
}

#[test]
fn a_fault_that_has_no_place_in_a_call_is_refused() {
    for (rule, reason) in [
        ("on write.before for any do lose", "only a call outside"),
        ("on ext.before for any do truncate 1", "ext.after"),
        ("on ext.after for any do dup", "only a watch.event"),
        ("on ext.after for any do truncate", "how many bytes"),
    ] {
        let text = format!("plan p\nworkload w seed 1\n{rule}");
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains(reason), "{rule}: {error}");
    }
}
