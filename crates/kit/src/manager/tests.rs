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
    lease::Leadership,
    server::{Server, nobody},
    site::Site,
    watch::{WatchService, Watches},
};

const SECOND: Duration = Duration::from_secs(1);

/// What runs, and where.
struct Bench {
    site: Site,
    watching: WatchService,
    manager: Manager,
}

/// For services that ask nothing of a server.
fn bench() -> Bench {
    bench_on(nobody())
}

fn bench_on(client: Client) -> Bench {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let (watches, watching) = Watches::new(clock);
    let site = Site {
        client,
        watches,
        leadership: Leadership::alone(clock),
        clock,
    };
    let manager = Manager::new(&site).with_grace(10 * SECOND);
    Bench {
        site,
        watching,
        manager,
    }
}

/// A service that ends when it is told to, and says so.
fn obedient(name: &'static str, log: &Arc<Mutex<Vec<&'static str>>>) -> Service {
    let log = log.clone();
    Service::new(name, move |stop| async move {
        stop.cancelled().await;
        log.lock().push(name);
    })
}

fn stubborn(name: &'static str) -> Service {
    Service::new(name, |_| std::future::pending())
}

/// A token that is cancelled after a while.
fn after(bench: &Bench, time: Duration) -> (CancellationToken, impl Future<Output = ()> + use<>) {
    let (stop, clock) = (CancellationToken::new(), bench.site.clock);
    let cancelled = stop.clone();
    let passing = async move {
        clock.sleep(time).await;
        cancelled.cancel();
    };
    (stop, passing)
}

#[tokio::test(start_paused = true)]
async fn services_run_until_the_stop_and_those_that_others_need_end_last() {
    let mut bench = bench();
    let log = Arc::default();
    bench.manager.add(obedient("ground", &log).outlasting());
    bench.manager.add(obedient("roof", &log));
    bench.manager.add(bench.watching);
    let (stop, clock) = (CancellationToken::new(), bench.site.clock);
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
async fn a_service_that_ends_takes_the_process_with_it() {
    let mut bench = bench();
    let log = Arc::default();
    let clock = bench.site.clock;
    bench.manager.add(obedient("other", &log));
    let short = Service::new("short", move |_| async move { clock.sleep(SECOND).await });
    bench.manager.add(short);
    let ended = bench.manager.run(CancellationToken::new()).await;
    assert_eq!(ended, Err(Error::Ended("short")));
    assert_eq!(*log.lock(), ["other"], "the others end in order");
    let said = "the service short ended, and the process cannot do without it";
    assert_eq!(ended.unwrap_err().to_string(), said);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_told_with_its_words() {
    let mut bench = bench();
    let number = 7;
    let broken = Service::new("broken", move |_| async move { panic!("no {number}") });
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
        "the first cause, not who was late then"
    );
    assert_eq!(health.ills(), ["the service broken panicked: no 7"]);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_end_in_time_is_named() {
    let mut bench = bench();
    bench.manager.add(stubborn("mule"));
    bench.manager.add(stubborn("cat"));
    bench.manager.add(obedient("dog", &Arc::default()));
    let (stop, passing) = after(&bench, SECOND);
    let clock = bench.site.clock;
    let (ended, ()) = tokio::join!(bench.manager.run(stop), passing);
    assert_eq!(
        ended.unwrap_err().to_string(),
        "cat, mule did not end in time: everything has 10s together once it is told to stop"
    );
    assert_eq!(clock.uptime(), 11 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn what_was_done_is_recorded_and_sealed_before_the_ground_goes() {
    let mut bench = bench();
    let log = Arc::default();
    for (name, turn) in [
        ("ground", Turn::Ground),
        ("seal", Turn::Seal),
        ("record", Turn::Record),
        ("work", Turn::Work),
    ] {
        bench.manager.add(obedient(name, &log).in_turn(turn));
    }
    let (stop, passing) = after(&bench, SECOND);
    let (ended, ()) = tokio::join!(bench.manager.run(stop), passing);
    assert_eq!(ended, Ok(()));
    assert_eq!(*log.lock(), ["work", "record", "seal", "ground"]);
}

#[tokio::test(start_paused = true)]
async fn who_is_stuck_leaves_the_others_their_time_to_end() {
    let mut bench = bench();
    let (log, clock): (Arc<Mutex<Vec<_>>>, _) = (Arc::default(), bench.site.clock);
    bench.manager.add(stubborn("mule"));
    let noted = log.clone();
    let slow = Service::new("record", move |stop| async move {
        stop.cancelled().await;
        clock.sleep(SECOND).await;
        noted.lock().push("record");
    });
    bench.manager.add(slow.in_turn(Turn::Record));
    bench.manager.add(obedient("ground", &log).outlasting());
    let (stop, passing) = after(&bench, SECOND);
    let (ended, ()) = tokio::join!(bench.manager.run(stop), passing);
    let late = Error::Late {
        names: vec!["mule"],
        grace: 10 * SECOND,
    };
    assert_eq!(ended, Err(late));
    assert_eq!(*log.lock(), ["record", "ground"]);
    assert_eq!(clock.uptime(), 10 * SECOND, "8s for the mule, 1s to record");
}

#[tokio::test(start_paused = true)]
async fn the_process_is_ready_once_every_watch_and_every_service_is() {
    let server = Server::open().await;
    let mut bench = bench_on(server.client.clone());
    let maps = bench.site.all::<ConfigMap>().unwrap();
    let warm = Arc::new(AtomicBool::new(false));
    let (asked, health) = (warm.clone(), bench.manager.health());
    let oven = obedient("oven", &Arc::default());
    let cold = move || (!asked.load(Ordering::Relaxed)).then(|| "it is cold".to_owned());
    bench.manager.add(oven.ready_once(cold));
    bench.manager.add(bench.watching);
    assert_eq!(
        health.missing(),
        [
            "the services have not been started",
            "the watch of /api/v1/configmaps has not listed yet",
            "oven: it is cold",
        ]
    );
    let stop = CancellationToken::new();
    let looking = async {
        maps.synced().await;
        assert_eq!(health.missing(), ["oven: it is cold"]);
        warm.store(true, Ordering::Relaxed);
        assert_eq!(health.missing(), [""; 0]);
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(bench.manager.run(stop.clone()), looking);
    assert_eq!(ended, Ok(()));
    assert_eq!(health.missing()[0], "the process is stopping");
}
