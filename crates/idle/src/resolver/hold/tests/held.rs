//! Lines as those who wait meet them, under a clock that stands still until everybody waits.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use neap_kit::{clock::Clock, key::Key, telemetry::Telemetry};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    api::{Breakdown, names},
    resolver::{
        events,
        hold::{Holding, Holds, NotWoken, Refused, Waker},
        routes::{Defaults, Objects, Route, Table, Tables},
    },
};

/// Notes when it is asked, and takes its time.
struct Noted {
    clock: Clock,
    takes: Duration,
    failing: usize,
    asked: Mutex<Vec<(Duration, usize)>>,
}

impl Waker for Noted {
    fn wake(&self, _: Key, waiting: usize) -> BoxFuture<'static, Result<(), NotWoken>> {
        let mut asked = self.asked.lock();
        asked.push((self.clock.uptime(), waiting));
        let (clock, takes, fails) = (self.clock, self.takes, asked.len() <= self.failing);
        async move {
            clock.sleep(takes).await;
            if fails {
                return Err(NotWoken("the operator is away".to_owned()));
            }
            Ok(())
        }
        .boxed()
    }
}

struct Scene {
    clock: Clock,
    publish: watch::Sender<Arc<Table>>,
    holds: Holds,
    waker: Arc<Noted>,
    _stop: tokio_util::sync::DropGuard,
}

impl Scene {
    fn new(failing: usize) -> Self {
        let clock = Clock::system();
        let (publish, tables) = Tables::new();
        let waker = Arc::new(Noted {
            clock,
            takes: Duration::from_millis(30),
            failing,
            asked: Mutex::default(),
        });
        let tasks = TaskTracker::new();
        let meter = events::meter(&Telemetry::default());
        let holds = Holds::new(clock, tables, waker.clone(), tasks.clone(), meter);
        let stop = CancellationToken::new();
        tasks.spawn(holds.clone().run(stop.clone()));
        let scene = Self {
            clock,
            publish,
            holds,
            waker,
            _stop: stop.drop_guard(),
        };
        scene.pods(&[]);
        scene
    }

    fn pods(&self, addresses: &[&str]) {
        let endpoints = addresses.iter();
        let endpoints: Vec<_> = endpoints
            .map(|address| json!({"addresses": [address]}))
            .collect();
        self.endpoints(&endpoints);
    }

    fn endpoints(&self, endpoints: &[serde_json::Value]) {
        let elasti = json!({
            "metadata": {"namespace": "shop", "name": "cart"},
            "spec": {
                "service": "cart", "deadlineSeconds": 30, "queue": {"requests": 2},
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"},
            },
            "status": {"ports": [{"name": "", "port": 80, "resolverPort": 20000}]},
        });
        let slice = json!({
            "metadata": {"namespace": "shop", "name": "cart-1", "labels": {
                "kubernetes.io/service-name": names::private_service("cart"),
            }},
            "addressType": "IPv4", "ports": [{"name": "", "port": 8080}], "endpoints": endpoints,
        });
        let objects = Objects {
            elasti_services: vec![Arc::new(serde_json::from_value(elasti).unwrap())],
            slices: vec![Arc::new(serde_json::from_value(slice).unwrap())],
            ..Objects::default()
        };
        let table = Table::of(&objects, Defaults::default(), &Table::default());
        self.publish.send_replace(Arc::new(table));
    }

    fn route(&self) -> Arc<Route> {
        self.publish.borrow().route(20000).unwrap().clone()
    }

    fn arrive(&self) -> Holding {
        Holding::new(&self.holds, self.route(), 100)
    }

    fn held(&self) -> usize {
        self.holds.queued(&Key::new("shop", "cart")).requests
    }

    fn asked(&self) -> Vec<(u64, usize)> {
        let asked = self.waker.asked.lock();
        let times = asked.iter();
        times
            .map(|(time, waiting)| (time.as_millis() as u64, *waiting))
            .collect()
    }
}

fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

#[tokio::test(start_paused = true)]
async fn who_is_held_is_let_go_when_a_pod_is_ready_and_knows_where_the_time_went() {
    let scene = Scene::new(0);
    let mut holding = scene.arrive();
    let ready = async {
        scene.clock.sleep(milliseconds(2000)).await;
        assert_eq!(scene.held(), 1);
        scene.pods(&["10.0.0.1"]);
    };
    let (place, ()) = tokio::join!(holding.place(), ready);
    assert_eq!(place, Ok("10.0.0.1:8080".parse().unwrap()));
    scene.clock.sleep(milliseconds(3)).await;
    holding.connected();
    scene.clock.sleep(milliseconds(5)).await;
    // One time for all parts, from its arrival.
    assert_eq!(holding.left(), milliseconds(30_000 - 2008));
    holding.answered();
    let breakdown = holding.times().breakdown(scene.clock.uptime());
    let expected = Breakdown {
        queue: 0,
        scale: 30,
        ready: 1970,
        connect: 3,
        first_byte: 5,
        ..Breakdown::default()
    };
    assert_eq!(breakdown, expected);
    assert_eq!(scene.asked(), [(0, 1)]);
    assert_eq!(scene.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_seen_before_it_is_ready_had_a_place_to_run_by_then() {
    let scene = Scene::new(0);
    let starting = |ready: bool, ending: bool| {
        let conditions = json!({"ready": ready, "terminating": ending});
        [json!({"addresses": ["10.0.0.1"], "conditions": conditions})]
    };
    // The last of those before does not count.
    scene.endpoints(&starting(false, true));
    let mut holding = scene.arrive();
    let ready = async {
        scene.clock.sleep(milliseconds(700)).await;
        scene.endpoints(&starting(false, false));
        scene.clock.sleep(milliseconds(300)).await;
        scene.endpoints(&starting(true, false));
    };
    let (place, ()) = tokio::join!(holding.place(), ready);
    assert!(place.is_ok());
    let breakdown = holding.times().breakdown(scene.clock.uptime());
    let expected = Breakdown {
        scale: 30,
        schedule: 670,
        ready: 300,
        ..Breakdown::default()
    };
    assert_eq!(breakdown, expected);
    assert_eq!(
        breakdown.most(),
        "0.7 of 1.0 s went by until a pod had a place to run"
    );
}

#[tokio::test(start_paused = true)]
async fn one_wake_is_under_way_however_many_wait_and_it_is_asked_again() {
    let scene = Scene::new(0);
    let (mut first, mut second) = (scene.arrive(), scene.arrive());
    let both = async { tokio::join!(first.place(), second.place()) };
    let (first, second) = both.await;
    assert!(matches!(first, Err(Refused::Late { .. })));
    assert!(matches!(second, Err(Refused::Late { .. })));
    assert_eq!(scene.clock.uptime().as_secs(), 30);
    // Ten seconds after each answer.
    assert_eq!(scene.asked(), [(0, 1), (10030, 2), (20060, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_wake_that_fails_is_tried_again_soon() {
    let scene = Scene::new(3);
    let mut holding = scene.arrive();
    let limit = milliseconds(900);
    assert_eq!(scene.clock.within(limit, holding.place()).await, None);
    assert_eq!(scene.asked(), [(0, 1), (130, 1), (360, 1), (790, 1)]);
}

#[tokio::test(start_paused = true)]
async fn the_time_that_is_up_says_where_it_went() {
    let scene = Scene::new(usize::MAX);
    let mut holding = scene.arrive();
    let Err(Refused::Late {
        service,
        breakdown,
        not_woken: Some(_),
    }) = holding.place().await
    else {
        panic!("nobody was there");
    };
    assert_eq!(service, Key::new("shop", "cart"));
    assert_eq!((breakdown.queue, breakdown.scale), (0, 30_000));
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_makes_room() {
    let scene = Scene::new(0);
    let mut holdings = [scene.arrive(), scene.arrive()];
    for holding in &mut holdings {
        assert_eq!(holding.place().now_or_never(), None);
    }
    let full = scene.arrive().place().await;
    assert_eq!(full, Err(Refused::Full(Key::new("shop", "cart"))));
    drop(holdings);
    assert_eq!(scene.held(), 0);
    assert_eq!(scene.arrive().place().now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn who_left_when_it_was_told_to_go_leaves_its_share_of_the_pod() {
    let scene = Scene::new(0);
    for _ in 0..300 {
        let mut holding = scene.arrive();
        assert_eq!(holding.place().now_or_never(), None);
        scene.pods(&["10.0.0.1"]);
        scene.clock.sleep(milliseconds(1)).await;
        drop(holding);
        scene.pods(&[]);
        scene.clock.sleep(milliseconds(1)).await;
    }
    // A hundred may go to a pod at a time: shares that were kept would have used them up.
    let mut holding = scene.arrive();
    assert_eq!(holding.place().now_or_never(), None);
    scene.pods(&["10.0.0.1"]);
    assert!(holding.place().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_refuses_is_tried_again_and_the_wake_is_asked_for() {
    let scene = Scene::new(0);
    scene.pods(&["10.0.0.1"]);
    let mut holding = scene.arrive();
    for _ in 0..3 {
        assert!(holding.place().await.is_ok());
        holding.refused();
    }
    assert!(holding.place().await.is_ok());
    // 20, 40 and 80 ms.
    assert_eq!(scene.clock.uptime(), milliseconds(140));
    // Nobody was in line when the first was answered, so the next in line asks anew.
    assert_eq!(scene.asked(), [(0, 1), (130, 1)]);
}

#[tokio::test(start_paused = true)]
async fn who_passed_and_was_refused_finds_room_to_wait_or_none_like_everybody() {
    let scene = Scene::new(0);
    scene.pods(&["10.0.0.1"]);
    let mut holdings = [scene.arrive(), scene.arrive(), scene.arrive()];
    for holding in &mut holdings {
        assert!(holding.place().await.is_ok());
    }
    for holding in &mut holdings {
        holding.refused();
    }
    let [one, two, three] = &mut holdings;
    assert_eq!(one.place().now_or_never(), None);
    assert_eq!(two.place().now_or_never(), None);
    let full = Refused::Full(Key::new("shop", "cart"));
    assert_eq!(three.place().await, Err(full));
    // Who has waited comes back to its place, whoever waits.
    assert!(one.place().await.is_ok());
    one.refused();
    let mut other = scene.arrive();
    assert_eq!(other.place().now_or_never(), None);
    assert_eq!(one.place().now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_told_of_the_end() {
    let scene = Scene::new(0);
    let mut holding = scene.arrive();
    assert_eq!(holding.place().now_or_never(), None);
    scene.holds.close();
    assert_eq!(holding.place().await, Err(Refused::Closing));
    let scene = Scene::new(0);
    let mut holding = scene.arrive();
    assert_eq!(holding.place().now_or_never(), None);
    scene.publish.send_replace(Arc::default());
    let gone = holding.place().await;
    assert_eq!(gone, Err(Refused::Gone(Key::new("shop", "cart"))));
}

#[tokio::test(start_paused = true)]
async fn a_wake_for_those_who_have_left_says_nothing_to_those_who_come() {
    let scene = Scene::new(0);
    let mut first = scene.arrive();
    assert_eq!(first.place().now_or_never(), None);
    scene.clock.sleep(milliseconds(10)).await;
    drop(first);
    let mut second = scene.arrive();
    let limit = milliseconds(200);
    assert_eq!(scene.clock.within(limit, second.place()).await, None);
    // A moment after the answer to the first, which has 30 ms.
    assert_eq!(scene.asked(), [(0, 1), (130, 1)]);
}
