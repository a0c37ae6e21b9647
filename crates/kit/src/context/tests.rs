use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    apply::Error, audit::Audit, controller::Outcome, key::Key, process::Process, server::Server,
};

/// How long a test waits for a controller or a watch.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

fn context(server: &Server, watches: Watches, clock: Clock) -> Context {
    Context {
        client: server.client.clone(),
        watches,
        leadership: Leadership::without_election(clock),
        clock,
    }
}

fn map(server: &Server, name: &str) -> ConfigMap {
    let map = json!({"metadata": {"namespace": server.namespace(), "name": name}});
    serde_json::from_value(map).unwrap()
}

#[tokio::test(start_paused = true)]
async fn writes_of_a_context_are_counted_and_audited() {
    let server = Server::open().await;
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::system();
    let (audit, audit_writer) = Audit::open(&folder.path().join("audit"), clock).unwrap();
    let process = Process::default().with_write_observer(Arc::new(audit.clone()));
    let (watches, _) = Watches::in_process(clock, process.clone());
    let context = context(&server, watches, clock);
    let stop = CancellationToken::new();
    let writing = async {
        let map = map(&server, "m");
        let writer = context.writer("sorter").with_reason("it was asked for");
        writer.create(&map).await.unwrap();
        stop.cancel();
    };
    tokio::join!(audit_writer.run(stop.clone()), writing);
    assert_eq!(audit.head().index, 1);
    let log = std::fs::read_to_string(folder.path().join("audit")).unwrap();
    assert!(log.contains(r#""reason":"it was asked for""#), "{log}");
    let counted = r#"neaptide_writes_total{manager="sorter",verb="create",result="written"} 1"#;
    assert!(process.metrics().contains(counted));
}

/// Maintains a copy of the map `a` with the name `b`.
#[derive(Clone)]
struct Copier {
    maps: Cache<ConfigMap>,
    writer: Writer,
}

impl Copier {
    async fn reconcile(&self, source: Key) -> Result<Outcome, Error> {
        let Some(found) = self.maps.get(&source) else {
            return Ok(Outcome::Gone);
        };
        if self.maps.get(&Key::new(source.namespace(), "b")).is_none() {
            let mut copy = ConfigMap::clone(&found);
            copy.metadata = kube::api::ObjectMeta {
                namespace: found.namespace(),
                name: Some("b".into()),
                ..Default::default()
            };
            if let Some(made) = self.writer.create(&copy).await? {
                let version = made.resource_version().unwrap();
                self.maps
                    .wait_for_version(&version, TEST_TIMEOUT)
                    .await
                    .unwrap();
            }
        }
        Ok(Outcome::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_creates_an_object_whenever_it_is_missing_and_only_then() {
    let server = Server::open().await;
    let clock = Clock::system();
    let (watches, watching) = Watches::new(clock);
    let context = context(&server, watches.clone(), clock);
    let api = Api::default_namespaced(context.client.clone());
    let maps: Cache<ConfigMap> = watches.cache(api, Selection::default()).unwrap();
    let controller = context.controller::<Key>(ControllerOptions::new("copier"));
    let (enqueuer, source) = (controller.enqueuer(), Key::of(&map(&server, "a")));
    maps.subscribe(move |_| enqueuer.enqueue(source.clone()));
    let copier = Copier {
        maps: maps.clone(),
        writer: context.writer("copier"),
    };
    let reconcile = move |key| {
        let copier = copier.clone();
        async move { copier.reconcile(key).await }
    };
    let stop = CancellationToken::new();
    let synced = async { maps.synced().await };
    let script = async {
        let api: Api<ConfigMap> = Api::default_namespaced(context.client.clone());
        let source = map(&server, "a");
        api.create(&PostParams::default(), &source).await.unwrap();
        let first = copied(&api, clock, None).await;
        api.delete("b", &DeleteParams::default()).await.unwrap();
        copied(&api, clock, first).await;
        // Its own writes cause reconciles, and those write nothing.
        clock.sleep(Duration::from_secs(1)).await;
        stop.cancel();
    };
    tokio::join!(
        watching.run(stop.clone()),
        controller.run_when(synced, reconcile, stop.clone()),
        script
    );
    let metrics = watches.process().metrics();
    let written: Vec<_> = metrics
        .lines()
        .filter(|line| line.starts_with("neaptide_writes_total{"))
        .collect();
    let twice = r#"neaptide_writes_total{manager="copier",verb="create",result="written"} 2"#;
    assert_eq!(written, [twice]);
}

/// Waits for a copy whose uid differs from `previous`, and returns its uid.
async fn copied(api: &Api<ConfigMap>, clock: Clock, previous: Option<String>) -> Option<String> {
    let copy = async {
        loop {
            let uid = api.get_opt("b").await.unwrap().and_then(|map| map.uid());
            if uid.is_some() && uid != previous {
                return uid;
            }
            clock.sleep(Duration::from_millis(20)).await;
        }
    };
    clock.within(TEST_TIMEOUT, copy).await.expect("a copy")
}

/// The maps of which one was written.
fn selected_maps() -> Selection {
    Selection {
        labels: Some("kept=yes".to_owned()),
        fields: None,
    }
}

/// Runs a controller that writes once for its key and is then enqueued again. Returns the number of
/// reconciles shortly after, the number after the timeout for own writes, and the metric of timeouts.
async fn reconciles(
    watches_keep_running: bool,
    selection: Selection,
    label: &str,
) -> (usize, usize, String) {
    let server = Server::open().await;
    let clock = Clock::system();
    let (watches, watching) = Watches::new(clock);
    let context = context(&server, watches.clone(), clock);
    let api = Api::default_namespaced(context.client.clone());
    let maps: Cache<ConfigMap> = watches.cache(api, selection).unwrap();
    let controller = context.controller::<Key>(ControllerOptions::new("twice"));
    let (enqueuer, writer) = (controller.enqueuer(), context.writer("twice"));
    let (mut made, key) = (map(&server, "made"), Key::new("", "key"));
    made.labels_mut()
        .insert("kept".to_owned(), label.to_owned());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let reconcile = move |_| {
        let (writer, made) = (writer.clone(), made.clone());
        let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if first {
                writer.create(&made).await?;
            }
            Ok::<_, Error>(Outcome::Done)
        }
    };
    let (stop, blind) = (CancellationToken::new(), CancellationToken::new());
    let script = async {
        maps.synced().await;
        if !watches_keep_running {
            blind.cancel();
        }
        enqueuer.enqueue(key.clone());
        clock.sleep(Duration::from_secs(5)).await;
        enqueuer.enqueue(key.clone());
        clock.sleep(Duration::from_secs(5)).await;
        let soon = count.load(Ordering::Relaxed);
        clock.sleep(Duration::from_mins(1)).await;
        stop.cancel();
        blind.cancel();
        soon
    };
    let (soon, (), ()) = tokio::join!(
        script,
        watching.run(blind.clone()),
        controller.run(reconcile, stop.clone()),
    );
    let late = watches.process().metrics();
    let late = late
        .lines()
        .find(|line| line.starts_with("neaptide_late_echoes_total{"));
    let late = late.unwrap_or_default().to_owned();
    (soon, count.load(Ordering::Relaxed), late)
}

#[tokio::test(start_paused = true)]
async fn a_key_is_reconciled_again_once_the_watch_shows_what_was_written_for_it() {
    let all = Selection::default();
    assert_eq!(
        reconciles(true, all.clone(), "yes").await,
        (2, 2, String::new())
    );
    let late = r#"neaptide_late_echoes_total{controller="twice"} 1"#;
    assert_eq!(reconciles(false, all, "yes").await, (1, 2, late.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_write_to_a_selected_object_is_awaited_and_one_that_no_watch_shows_is_not() {
    let late = r#"neaptide_late_echoes_total{controller="twice"} 1"#;
    assert_eq!(
        reconciles(true, selected_maps(), "yes").await,
        (2, 2, String::new())
    );
    assert_eq!(
        reconciles(false, selected_maps(), "yes").await,
        (1, 2, late.to_owned()),
        "the watch would show it"
    );
    assert_eq!(
        reconciles(false, selected_maps(), "no").await,
        (2, 2, String::new()),
        "the watch never shows it"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_the_selection_is_awaited_until_the_watch_drops_it() {
    let server = Server::open().await;
    let clock = Clock::system();
    let (watches, watching) = Watches::new(clock);
    let context = context(&server, watches.clone(), clock);
    let api = Api::default_namespaced(context.client.clone());
    let maps: Cache<ConfigMap> = watches.cache(api.clone(), selected_maps()).unwrap();
    let mut kept = map(&server, "kept");
    kept.labels_mut()
        .insert("kept".to_owned(), "yes".to_owned());
    api.create(&PostParams::default(), &kept).await.unwrap();
    let controller = context.controller::<Key>(ControllerOptions::new("releaser"));
    let (enqueuer, writer) = (controller.enqueuer(), context.writer("releaser"));
    let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let (entries, cache) = (seen.clone(), maps.clone());
    let again = enqueuer.clone();
    let reconcile = move |key: Key| {
        let (entries, cache, writer) = (entries.clone(), cache.clone(), writer.clone());
        let again = again.clone();
        async move {
            let found = cache.get(&key);
            entries.lock().push(found.is_some());
            if let Some(found) = found {
                let mut released = ConfigMap::clone(&found);
                released.labels_mut().clear();
                writer.replace(&released).await?;
                again.enqueue(key);
            }
            Ok::<_, Error>(Outcome::Done)
        }
    };
    let stop = CancellationToken::new();
    let script = async {
        maps.synced().await;
        enqueuer.enqueue(Key::of(&kept));
        clock.sleep(Duration::from_secs(5)).await;
        stop.cancel();
    };
    tokio::join!(
        script,
        watching.run(stop.clone()),
        controller.run(reconcile, stop.clone()),
    );
    assert_eq!(
        *seen.lock(),
        [true, false],
        "the second reconcile sees the first"
    );
    let late = watches.process().metrics();
    assert!(!late.contains("late_echoes_total{"), "{late}");
}

#[tokio::test(start_paused = true)]
async fn a_context_of_some_namespaces_shows_their_objects_and_every_change() {
    let server = Server::open().await;
    let clock = Clock::system();
    let (first, second) = (server.namespace().to_owned(), server.unique_name("second"));
    let other = server.unique_name("other");
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(server.client.clone());
    for name in [&second, &other] {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        let made = namespaces.create(&PostParams::default(), &namespace).await;
        made.unwrap();
    }
    let put = async |namespace: &str, name: &str| {
        let maps: Api<ConfigMap> = Api::namespaced(server.client.clone(), namespace);
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
        maps
    };
    put(&first, "a").await;
    put(&other, "hidden").await;
    let (watches, watching) = Watches::new(clock);
    let only = [first.clone(), second.clone()];
    let context = context(&server, watches.in_namespaces(only), clock);
    let maps = context
        .scoped_cache::<ConfigMap>(&Selection::default())
        .unwrap();
    let stop = CancellationToken::new();
    let script = async {
        maps.synced().await;
        let there = |namespace: &str, name: &str| maps.get(&Key::new(namespace, name)).is_some();
        assert!(there(&first, "a"));
        let seconds = put(&second, "b").await;
        while !there(&second, "b") {
            clock.sleep(Duration::from_millis(10)).await;
        }
        let parameters = DeleteParams::default();
        seconds.delete("b", &parameters).await.unwrap();
        while there(&second, "b") {
            clock.sleep(Duration::from_millis(10)).await;
        }
        assert!(!there(&other, "hidden"));
        stop.cancel();
    };
    let done = async { tokio::join!(watching.run(stop.clone()), script) };
    clock.within(TEST_TIMEOUT, done).await.unwrap();
}
