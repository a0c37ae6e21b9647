//! A kube-rs controller with no socket, for virtual days: finalizers, owned children, server-side
//! apply, status and events. It acts on every reconcile; repeating it changes nothing, so at rest
//! there is not one write.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{Stream, StreamExt};
use k8s_openapi::{
    api::{core::v1::ConfigMap, events::v1::Event as Occurrence},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::{
        Controller, WatchStreamExt,
        controller::Action,
        events::{Event as News, EventType, Recorder, Reporter},
        finalizer::{self, Event as Turn, finalizer},
        reflector, watcher,
    },
};
use neap_pocket::{Options, Pocket, environment::Environment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const FINALIZER: &str = "garden.example/clear";
const RESYNC_INTERVAL: Duration = Duration::from_mins(10);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// A bed of some rows; each row is a map.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(
    group = "garden.example",
    version = "v1",
    kind = "Bed",
    namespaced,
    status = "BedStatus"
)]
struct BedSpec {
    rows: usize,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
struct BedStatus {
    planted: usize,
}

struct Gardener {
    client: Client,
    recorder: Recorder,
    looks: AtomicUsize,
}

type Outcome = Result<Action, finalizer::Error<kube::Error>>;

async fn reconcile(bed: Arc<Bed>, gardener: Arc<Gardener>) -> Outcome {
    gardener.looks.fetch_add(1, Ordering::Relaxed);
    let namespace = bed.namespace().unwrap();
    let beds: Api<Bed> = Api::namespaced(gardener.client.clone(), &namespace);
    let turn = |turn| async {
        match turn {
            Turn::Apply(bed) => gardener.tend(&bed, &namespace).await,
            Turn::Cleanup(bed) => gardener.clear(&bed, &namespace).await,
        }
    };
    finalizer(&beds, FINALIZER, bed, turn).await
}

impl Gardener {
    fn maps(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), namespace)
    }

    async fn tend(&self, bed: &Bed, namespace: &str) -> Result<Action, kube::Error> {
        let maps = self.maps(namespace);
        for row in 0..bed.spec.rows {
            let name = format!("{}-{row}", bed.name_any());
            let map = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": name, "labels": {"bed": bed.name_any()},
                    "ownerReferences": [bed.controller_owner_ref(&())],
                },
                "data": {"row": row.to_string()},
            });
            let apply = PatchParams::apply("gardener").force();
            maps.patch(&name, &apply, &Patch::Apply(&map)).await?;
        }
        let mine = ListParams::default().labels(&format!("bed={}", bed.name_any()));
        for extra in maps.list_metadata(&mine).await?.items {
            let row = extra.name_any().rsplit('-').next().unwrap().parse();
            if row.is_ok_and(|row: usize| row >= bed.spec.rows) {
                let _ = maps
                    .delete(&extra.name_any(), &DeleteParams::default())
                    .await?;
            }
        }
        self.report(bed, namespace).await?;
        Ok(Action::requeue(RESYNC_INTERVAL))
    }

    async fn report(&self, bed: &Bed, namespace: &str) -> Result<(), kube::Error> {
        let status = BedStatus {
            planted: bed.spec.rows,
        };
        let changed = bed.status.as_ref() != Some(&status);
        let patch = Patch::Merge(json!({"status": status}));
        Api::<Bed>::namespaced(self.client.clone(), namespace)
            .patch_status(&bed.name_any(), &PatchParams::default(), &patch)
            .await?;
        if changed {
            self.announce(bed, "Planted").await?;
        }
        Ok(())
    }

    async fn announce(&self, bed: &Bed, reason: &str) -> Result<(), kube::Error> {
        let news = News {
            type_: EventType::Normal,
            reason: reason.into(),
            note: None,
            action: "Tend".into(),
            secondary: None,
        };
        self.recorder.publish(&news, &bed.object_ref(&())).await
    }

    /// Records in a config map outside of the bed that it was cleared.
    async fn clear(&self, bed: &Bed, namespace: &str) -> Result<Action, kube::Error> {
        let note = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "diary"},
            "data": {bed.name_any(): "cleared"},
        });
        let apply = PatchParams::apply(&format!("clear-{}", bed.name_any()));
        self.maps(namespace)
            .patch("diary", &apply, &Patch::Apply(&note))
            .await?;
        Ok(Action::await_change())
    }
}

/// A server with the definition of beds, and a gardener for it.
async fn garden() -> (Pocket, Client, Arc<Gardener>) {
    let pocket = Pocket::open(Options::new(Environment::simulated(7)))
        .await
        .unwrap();
    let client = Client::new(pocket.service(), "default");
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions
        .create(&PostParams::default(), &Bed::crd())
        .await
        .unwrap();
    let gardener = Gardener {
        client: client.clone(),
        recorder: Recorder::new(client.clone(), Reporter::from("gardener")),
        looks: AtomicUsize::new(0),
    };
    (pocket, client, Arc::new(gardener))
}

/// Runs the gardener while `script` runs; it must not end before the script does.
async fn tended<T>(
    gardener: Arc<Gardener>,
    config: watcher::Config,
    script: impl Future<Output = T>,
) -> T {
    let client = gardener.client.clone();
    let looks = Controller::new(Api::<Bed>::all(client.clone()), config.clone())
        .owns(Api::<ConfigMap>::all(client), config)
        .run(reconcile, |_, _, _| Action::requeue(MINUTE), gardener)
        .for_each(|_| std::future::ready(()));
    tokio::select! {
        biased;
        () = looks => panic!("the controller ended"),
        end = script => end,
    }
}

fn bed(name: &str, rows: usize) -> Bed {
    Bed::new(name, BedSpec { rows })
}

async fn rows(client: &Client, bed: &str) -> BTreeMap<String, String> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let list = maps
        .list(&ListParams::default().labels(&format!("bed={bed}")))
        .await
        .unwrap();
    let row = |map: ConfigMap| (map.name_any(), map.data.unwrap()["row"].clone());
    list.items.into_iter().map(row).collect()
}

fn expected(bed: &str, rows: usize) -> BTreeMap<String, String> {
    (0..rows)
        .map(|row| (format!("{bed}-{row}"), row.to_string()))
        .collect()
}

/// Both ways to start a watch.
fn configs() -> [watcher::Config; 2] {
    [
        watcher::Config::default(),
        watcher::Config::default().streaming_lists(),
    ]
}

#[tokio::test(start_paused = true)]
async fn world_converges_to_what_is_wanted_whatever_happens_to_it() {
    for config in configs() {
        let (_pocket, client, gardener) = garden().await;
        let beds: Api<Bed> = Api::default_namespaced(client.clone());
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        tended(gardener, config, async {
            beds.create(&PostParams::default(), &bed("herbs", 3))
                .await
                .unwrap();
            tokio::time::sleep(MINUTE).await;
            assert_eq!(rows(&client, "herbs").await, expected("herbs", 3));
            let tended = beds.get("herbs").await.unwrap();
            assert_eq!(tended.finalizers(), [FINALIZER]);
            assert_eq!(tended.status, Some(BedStatus { planted: 3 }));

            // Owned objects are restored, by name and by content.
            maps.delete("herbs-1", &DeleteParams::default())
                .await
                .unwrap();
            let meddle = Patch::Merge(json!({"data": {"row": "weeds"}}));
            maps.patch("herbs-2", &PatchParams::default(), &meddle)
                .await
                .unwrap();
            tokio::time::sleep(MINUTE).await;
            assert_eq!(rows(&client, "herbs").await, expected("herbs", 3));

            for wanted in [5, 1] {
                let patch = Patch::Merge(json!({"spec": {"rows": wanted}}));
                beds.patch("herbs", &PatchParams::default(), &patch)
                    .await
                    .unwrap();
                tokio::time::sleep(MINUTE).await;
                assert_eq!(rows(&client, "herbs").await, expected("herbs", wanted));
            }
        })
        .await;
        let news: Api<Occurrence> = Api::default_namespaced(client);
        let news = news.list(&ListParams::default()).await.unwrap().items;
        let told = |event: &Occurrence| {
            let count = event.series.as_ref().map_or(1, |series| series.count);
            (event.reason.clone().unwrap(), count)
        };
        // Three identical events within minutes are aggregated into one.
        assert_eq!(
            news.iter().map(told).collect::<Vec<_>>(),
            [("Planted".into(), 3)]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_at_rest() {
    for config in configs() {
        let (pocket, client, gardener) = garden().await;
        let beds: Api<Bed> = Api::default_namespaced(client);
        tended(gardener.clone(), config, async {
            for name in ["herbs", "roses"] {
                beds.create(&PostParams::default(), &bed(name, 4))
                    .await
                    .unwrap();
            }
            // The first events expire within hours, which is a write of its own.
            tokio::time::sleep(DAY).await;
            let (looks, revision) = (
                gardener.looks.load(Ordering::Relaxed),
                pocket.store().revision(),
            );
            tokio::time::sleep(DAY).await;
            let looked = gardener.looks.load(Ordering::Relaxed) - looks;
            assert!(looked >= 2 * 143, "only {looked} looks in a day");
            assert_eq!(pocket.store().revision(), revision);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_object_waits_for_its_finalizer_and_takes_its_children() {
    let (_pocket, client, gardener) = garden().await;
    let beds: Api<Bed> = Api::default_namespaced(client.clone());
    let create = async || {
        for name in ["herbs", "roses"] {
            beds.create(&PostParams::default(), &bed(name, 2))
                .await
                .unwrap();
        }
        tokio::time::sleep(MINUTE).await;
    };
    tended(gardener.clone(), watcher::Config::default(), create()).await;

    // Without a controller to clear its finalizer, it stays.
    beds.delete("herbs", &DeleteParams::default())
        .await
        .unwrap();
    tokio::time::sleep(DAY).await;
    let held = beds.get("herbs").await.unwrap();
    assert!(held.meta().deletion_timestamp.is_some());
    assert_eq!(rows(&client, "herbs").await, expected("herbs", 2));

    tended(
        gardener,
        watcher::Config::default(),
        tokio::time::sleep(MINUTE),
    )
    .await;
    assert!(beds.get_opt("herbs").await.unwrap().is_none());
    assert!(rows(&client, "herbs").await.is_empty());
    assert_eq!(rows(&client, "roses").await, expected("roses", 2));
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let diary = maps.get("diary").await.unwrap();
    assert_eq!(diary.data.unwrap()["herbs"], "cleared");
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

/// Polls a reflector until its next complete list; returns whether its revision had expired.
async fn relist<S>(stream: &mut S) -> bool
where
    S: Stream<Item = watcher::Result<watcher::Event<ConfigMap>>> + Unpin,
{
    let mut gone = false;
    loop {
        match stream.next().await.unwrap() {
            Ok(watcher::Event::InitDone) => return gone,
            Ok(_) => {}
            Err(watcher::Error::WatchError(status)) => gone |= status.code == 410,
            Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))) => {
                gone |= status.code == 410;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn reflector_recovers_when_its_revision_is_gone() {
    for config in configs() {
        let (pocket, client, _) = garden().await;
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let create = async |name| {
            maps.create(&PostParams::default(), &map(name))
                .await
                .unwrap()
        };
        create("a").await;
        create("b").await;
        let (reader, writer) = reflector::store();
        let stream = watcher(maps.clone(), config);
        let mut stream = Box::pin(stream.default_backoff().reflect(writer));
        assert!(!relist(&mut stream).await);

        // The stream is not read while the history that it needs is dropped.
        maps.delete("a", &DeleteParams::default()).await.unwrap();
        create("c").await;
        pocket.store().compact(pocket.store().revision());
        tokio::time::sleep(DAY).await;
        assert!(relist(&mut stream).await, "the loss went unnoticed");
        let mut names: Vec<String> = reader.state().iter().map(|map| map.name_any()).collect();
        names.sort();
        assert_eq!(names, ["b", "c"]);

        // The watch continues from there.
        create("d").await;
        let next = stream.next().await.unwrap().unwrap();
        assert!(matches!(next, watcher::Event::Apply(map) if map.name_any() == "d"));
    }
}
