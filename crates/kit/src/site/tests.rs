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

const PATIENCE: Duration = Duration::from_secs(30);

fn site(server: &Server, watches: Watches, clock: Clock) -> Site {
    Site {
        client: server.client.clone(),
        watches,
        leadership: Leadership::alone(clock),
        clock,
    }
}

fn map(server: &Server, name: &str) -> ConfigMap {
    let map = json!({"metadata": {"namespace": server.namespace(), "name": name}});
    serde_json::from_value(map).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_is_written_at_a_site_is_counted_and_noted() {
    let server = Server::open().await;
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::system();
    let (audit, notes) = Audit::open(&folder.path().join("audit"), clock).unwrap();
    let process = Process::default().witnessed_by(Arc::new(audit.clone()));
    let (watches, _) = Watches::in_process(clock, process.clone());
    let site = site(&server, watches, clock);
    let stop = CancellationToken::new();
    let writing = async {
        let map = map(&server, "m");
        site.hand("sorter").create(&map).await.unwrap();
        stop.cancel();
    };
    tokio::join!(notes.run(stop.clone()), writing);
    assert_eq!(audit.head().index, 1);
    let counted = r#"neaptide_writes_total{manager="sorter",verb="create",result="written"} 1"#;
    assert!(process.metrics().contains(counted));
}

/// Keeps a copy of the map `a` by the name `b`.
#[derive(Clone)]
struct Copier {
    maps: Cache<ConfigMap>,
    hand: Hand,
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
            if let Some(made) = self.hand.create(&copy).await? {
                let version = made.resource_version().unwrap();
                self.maps.shows(&version, PATIENCE).await.unwrap();
            }
        }
        Ok(Outcome::Settled)
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_makes_what_is_missing_whenever_it_is_and_only_then() {
    let server = Server::open().await;
    let clock = Clock::system();
    let (watches, watching) = Watches::new(clock);
    let site = site(&server, watches.clone(), clock);
    let api = Api::default_namespaced(site.client.clone());
    let maps: Cache<ConfigMap> = watches.of(api, Selection::default()).unwrap();
    let controller = site.controller::<Key>(Options::new("copier"));
    let (trigger, source) = (controller.trigger(), Key::of(&map(&server, "a")));
    maps.follow(move |_| trigger.changed(source.clone()));
    let copier = Copier {
        maps: maps.clone(),
        hand: site.hand("copier"),
    };
    let reconcile = move |key| {
        let copier = copier.clone();
        async move { copier.reconcile(key).await }
    };
    let stop = CancellationToken::new();
    let known = async { maps.synced().await };
    let script = async {
        let api: Api<ConfigMap> = Api::default_namespaced(site.client.clone());
        let source = map(&server, "a");
        api.create(&PostParams::default(), &source).await.unwrap();
        let first = copied(&api, clock, None).await;
        api.delete("b", &DeleteParams::default()).await.unwrap();
        copied(&api, clock, first).await;
        // Its own writes lead to looks, and those to nothing.
        clock.sleep(Duration::from_secs(1)).await;
        stop.cancel();
    };
    tokio::join!(
        watching.run(stop.clone()),
        controller.run_once_known(known, reconcile, stop.clone()),
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

/// The uid of the copy, once there is one and it is another than `former`.
async fn copied(api: &Api<ConfigMap>, clock: Clock, former: Option<String>) -> Option<String> {
    let there = async {
        loop {
            let uid = api.get_opt("b").await.unwrap().and_then(|map| map.uid());
            if uid.is_some() && uid != former {
                return uid;
            }
            clock.sleep(Duration::from_millis(20)).await;
        }
    };
    clock.within(PATIENCE, there).await.expect("a copy")
}

/// A controller that writes once for its key and is then asked to look again: how often it had
/// looked shortly after, and when its patience was over.
async fn looks(watching_goes_on: bool) -> (usize, usize, String) {
    let server = Server::open().await;
    let clock = Clock::system();
    let (watches, watching) = Watches::new(clock);
    let site = site(&server, watches.clone(), clock);
    let api = Api::default_namespaced(site.client.clone());
    let maps: Cache<ConfigMap> = watches.of(api, Selection::default()).unwrap();
    let controller = site.controller::<Key>(Options::new("twice"));
    let (trigger, hand) = (controller.trigger(), site.hand("twice"));
    let (made, key) = (map(&server, "made"), Key::new("", "key"));
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let reconcile = move |_| {
        let (hand, made) = (hand.clone(), made.clone());
        let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if first {
                hand.create(&made).await?;
            }
            Ok::<_, Error>(Outcome::Settled)
        }
    };
    let (stop, blind) = (CancellationToken::new(), CancellationToken::new());
    let script = async {
        maps.synced().await;
        if !watching_goes_on {
            blind.cancel();
        }
        trigger.changed(key.clone());
        clock.sleep(Duration::from_secs(5)).await;
        trigger.changed(key.clone());
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
async fn a_key_is_looked_at_again_once_the_watch_shows_what_was_written_for_it() {
    assert_eq!(looks(true).await, (2, 2, String::new()));
    let late = r#"neaptide_late_echoes_total{controller="twice"} 1"#;
    assert_eq!(looks(false).await, (1, 2, late.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_site_of_some_namespaces_shows_what_is_in_them_and_every_change_of_it() {
    let server = Server::open().await;
    let clock = Clock::system();
    let (first, second) = (server.namespace().to_owned(), server.unshared("second"));
    let other = server.unshared("other");
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
    let site = site(&server, watches.within(only), clock);
    let maps = site.here::<ConfigMap>(&Selection::default()).unwrap();
    let stop = CancellationToken::new();
    let looking = async {
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
    let done = async { tokio::join!(watching.run(stop.clone()), looking) };
    clock.within(PATIENCE, done).await.unwrap();
}
