mod answers;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    clock::Clock,
    context::Context,
    lease::Leadership,
    server::{Server, unresponsive_client},
    watch::{WatchRunner, Watches},
};

const SECOND: Duration = Duration::from_secs(1);

/// A manager and what it depends on.
struct ManagerBench {
    context: Context,
    watching: WatchRunner,
    manager: Manager,
}

/// A bench for components that send no requests.
fn bench() -> ManagerBench {
    bench_on(unresponsive_client())
}

fn bench_on(client: Client) -> ManagerBench {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let (watches, watching) = Watches::new(clock);
    let context = Context {
        client,
        watches,
        leadership: Leadership::without_election(clock),
        clock,
    };
    let manager = Manager::new(&context).with_grace(10 * SECOND);
    ManagerBench {
        context,
        watching,
        manager,
    }
}

/// A component that ends when it is stopped, and logs its name.
fn obedient(name: &'static str, log: &Arc<Mutex<Vec<&'static str>>>) -> Component {
    let log = log.clone();
    Component::new(name, move |stop| async move {
        stop.cancelled().await;
        log.lock().push(name);
    })
}

fn stubborn(name: &'static str) -> Component {
    Component::new(name, |_| std::future::pending())
}

/// A token that is cancelled after a while.
fn after(
    bench: &ManagerBench,
    time: Duration,
) -> (CancellationToken, impl Future<Output = ()> + use<>) {
    let (stop, clock) = (CancellationToken::new(), bench.context.clock);
    let cancelled = stop.clone();
    let passing = async move {
        clock.sleep(time).await;
        cancelled.cancel();
    };
    (stop, passing)
}

#[tokio::test(start_paused = true)]
async fn components_run_until_the_stop_and_infrastructure_ends_last() {
    let mut bench = bench();
    let log = Arc::default();
    bench.manager.add(obedient("ground", &log).stopped_last());
    bench.manager.add(obedient("roof", &log));
    bench.manager.add(bench.watching);
    let (stop, clock) = (CancellationToken::new(), bench.context.clock);
    let stopping = async {
        clock.sleep(SECOND).await;
        assert!(log.lock().is_empty());
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(bench.manager.run(stop.clone()), stopping);
    assert_eq!(ended, Ok(()));
    assert_eq!(*log.lock(), ["roof", "ground"]);
}

#[tokio::test(start_paused = true)]
async fn a_component_that_ends_stops_the_process() {
    let mut bench = bench();
    let log = Arc::default();
    let clock = bench.context.clock;
    bench.manager.add(obedient("other", &log));
    let short = Component::new("short", move |_| async move { clock.sleep(SECOND).await });
    bench.manager.add(short);
    let ended = bench.manager.run(CancellationToken::new()).await;
    assert_eq!(ended, Err(Error::Ended("short")));
    assert_eq!(*log.lock(), ["other"], "the others end in order");
    let message = "the component short ended, and the process cannot run without it";
    assert_eq!(ended.unwrap_err().to_string(), message);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_reported_with_its_message() {
    let mut bench = bench();
    let number = 7;
    let broken = Component::new("broken", move |_| async move { panic!("no {number}") });
    bench.manager.add(broken);
    bench.manager.add(stubborn("mule"));
    let health = bench.manager.health();
    let ended = bench.manager.run(CancellationToken::new()).await;
    let panicked = Error::Panicked {
        name: "broken",
        message: "no 7".into(),
    };
    assert_eq!(
        ended,
        Err(panicked),
        "the first cause, not the timeout that followed"
    );
    assert_eq!(health.failures(), ["the component broken panicked: no 7"]);
}

#[tokio::test(start_paused = true)]
async fn components_that_do_not_end_in_time_are_named() {
    let mut bench = bench();
    bench.manager.add(stubborn("mule"));
    bench.manager.add(stubborn("cat"));
    bench.manager.add(obedient("dog", &Arc::default()));
    let (stop, passing) = after(&bench, SECOND);
    let clock = bench.context.clock;
    let (ended, ()) = tokio::join!(bench.manager.run(stop), passing);
    assert_eq!(
        ended.unwrap_err().to_string(),
        "cat, mule did not end in time: all components together have 10s to stop"
    );
    assert_eq!(clock.uptime(), 11 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn phases_are_stopped_in_order() {
    let mut bench = bench();
    let log = Arc::default();
    for (name, phase) in [
        ("ground", ShutdownPhase::Infrastructure),
        ("seal", ShutdownPhase::AuditAnchor),
        ("record", ShutdownPhase::Audit),
        ("work", ShutdownPhase::Workers),
    ] {
        bench.manager.add(obedient(name, &log).in_phase(phase));
    }
    let (stop, passing) = after(&bench, SECOND);
    let (ended, ()) = tokio::join!(bench.manager.run(stop), passing);
    assert_eq!(ended, Ok(()));
    assert_eq!(*log.lock(), ["work", "record", "seal", "ground"]);
}

#[tokio::test(start_paused = true)]
async fn a_component_that_hangs_leaves_time_for_the_later_phases() {
    let mut bench = bench();
    let (log, clock): (Arc<Mutex<Vec<_>>>, _) = (Arc::default(), bench.context.clock);
    bench.manager.add(stubborn("mule"));
    let entries = log.clone();
    let slow = Component::new("record", move |stop| async move {
        stop.cancelled().await;
        clock.sleep(SECOND).await;
        entries.lock().push("record");
    });
    bench.manager.add(slow.in_phase(ShutdownPhase::Audit));
    bench.manager.add(obedient("ground", &log).stopped_last());
    let (stop, passing) = after(&bench, SECOND);
    let (ended, ()) = tokio::join!(bench.manager.run(stop), passing);
    let late = Error::ShutdownTimeout {
        names: vec!["mule"],
        grace: 10 * SECOND,
    };
    assert_eq!(ended, Err(late));
    assert_eq!(*log.lock(), ["record", "ground"]);
    assert_eq!(
        clock.uptime(),
        10 * SECOND,
        "8s for the mule, 1s for the audit"
    );
}

#[tokio::test(start_paused = true)]
async fn the_process_is_ready_once_every_watch_and_every_component_is() {
    let server = Server::open().await;
    let mut bench = bench_on(server.client.clone());
    let maps = bench.context.cache::<ConfigMap>().unwrap();
    let warm = Arc::new(AtomicBool::new(false));
    let (is_warm, health) = (warm.clone(), bench.manager.health());
    let oven = obedient("oven", &Arc::default());
    let cold = move || (!is_warm.load(Ordering::Relaxed)).then(|| "it is cold".to_owned());
    bench.manager.add(oven.ready_when(cold));
    bench.manager.add(bench.watching);
    assert_eq!(
        health.not_ready(),
        [
            "the components have not started",
            "the watch of /api/v1/configmaps has not listed yet",
            "oven: it is cold",
        ]
    );
    let stop = CancellationToken::new();
    let script = async {
        maps.synced().await;
        assert_eq!(health.not_ready(), ["oven: it is cold"]);
        warm.store(true, Ordering::Relaxed);
        assert_eq!(health.not_ready(), [""; 0]);
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(bench.manager.run(stop.clone()), script);
    assert_eq!(ended, Ok(()));
    assert_eq!(health.not_ready()[0], "the process is stopping");
}

#[tokio::test(start_paused = true)]
async fn two_components_of_one_name_are_refused_before_anything_starts() {
    let mut bench = bench();
    let log = Arc::default();
    bench.manager.add(obedient("web", &log));
    bench.manager.add(stubborn("web"));
    let ended = bench.manager.run(CancellationToken::new()).await;
    assert_eq!(ended, Err(Error::DuplicateName("web")));
    assert!(log.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_component_that_is_added_later_is_supervised_like_the_others() {
    let mut bench = bench();
    let (log, clock): (Arc<Mutex<Vec<_>>>, _) = (Arc::default(), bench.context.clock);
    bench.manager.add(obedient("ground", &log).stopped_last());
    let (starter, health) = (bench.manager.starter(), bench.manager.health());
    let late = obedient("late", &log).ready_when(|| Some("it is cold".to_owned()));
    let (stop, passing) = after(&bench, SECOND);
    let starting = async {
        clock.sleep(SECOND / 2).await;
        assert_eq!(health.not_ready(), [""; 0]);
        starter.start(late).await;
        clock.sleep(SECOND / 4).await;
        assert_eq!(health.not_ready(), ["late: it is cold"]);
    };
    let (ended, ..) = tokio::join!(bench.manager.run(stop), starting, passing);
    assert_eq!(ended, Ok(()));
    assert_eq!(
        *log.lock(),
        ["late", "ground"],
        "in the order of the phases"
    );
}

#[tokio::test(start_paused = true)]
async fn a_later_component_whose_name_is_taken_stops_the_process() {
    let mut bench = bench();
    bench.manager.add(obedient("web", &Arc::default()));
    let starter = bench.manager.starter();
    let running = bench.manager.run(CancellationToken::new());
    let (ended, ()) = tokio::join!(running, starter.start(stubborn("web")));
    assert_eq!(ended, Err(Error::DuplicateName("web")));
}
