//! Queues as held requests use them, under a paused clock.

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
        hold::{HeldRequest, HeldRequests, HoldError, WakeFailed, WakeRequester},
        routes::{Route, RouteDefaults, RouteObjects, RouteTable, RouteTableReader},
    },
};

/// Records wake requests, and answers them after a delay.
struct RecordingRequester {
    clock: Clock,
    delay: Duration,
    failing: usize,
    requests: Mutex<Vec<(Duration, usize)>>,
}

impl WakeRequester for RecordingRequester {
    fn wake(&self, _: Key, waiting: usize) -> BoxFuture<'static, Result<(), WakeFailed>> {
        let mut requests = self.requests.lock();
        requests.push((self.clock.uptime(), waiting));
        let (clock, delay, fails) = (self.clock, self.delay, requests.len() <= self.failing);
        async move {
            clock.sleep(delay).await;
            if fails {
                return Err(WakeFailed("the operator is away".to_owned()));
            }
            Ok(())
        }
        .boxed()
    }
}

struct QueueFixture {
    clock: Clock,
    publish: watch::Sender<Arc<RouteTable>>,
    holds: HeldRequests,
    waker: Arc<RecordingRequester>,
    _stop: tokio_util::sync::DropGuard,
}

impl QueueFixture {
    fn new(failing: usize) -> Self {
        let clock = Clock::system();
        let (publish, route_table) = RouteTableReader::new();
        let waker = Arc::new(RecordingRequester {
            clock,
            delay: Duration::from_millis(30),
            failing,
            requests: Mutex::default(),
        });
        let tasks = TaskTracker::new();
        let meter = events::meter(&Telemetry::default());
        let holds = HeldRequests::new(clock, route_table, waker.clone(), tasks.clone(), meter);
        let stop = CancellationToken::new();
        tasks.spawn(holds.clone().run(stop.clone()));
        let fixture = Self {
            clock,
            publish,
            holds,
            waker,
            _stop: stop.drop_guard(),
        };
        fixture.pods(&[]);
        fixture
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
        let objects = RouteObjects {
            elasti_services: vec![Arc::new(serde_json::from_value(elasti).unwrap())],
            slices: vec![Arc::new(serde_json::from_value(slice).unwrap())],
            ..RouteObjects::default()
        };
        let table = RouteTable::build(&objects, RouteDefaults::default(), &RouteTable::default());
        self.publish.send_replace(Arc::new(table));
    }

    fn route(&self) -> Arc<Route> {
        self.publish.borrow().route(20000).unwrap().clone()
    }

    fn arrive(&self) -> HeldRequest {
        HeldRequest::new(&self.holds, self.route(), 100)
    }

    fn held(&self) -> usize {
        self.holds.queue_size(&Key::new("shop", "cart")).requests
    }

    fn wake_requests(&self) -> Vec<(u64, usize)> {
        let requests = self.waker.requests.lock();
        let times = requests.iter();
        times
            .map(|(time, waiting)| (time.as_millis() as u64, *waiting))
            .collect()
    }
}

fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

#[tokio::test(start_paused = true)]
async fn a_held_request_is_released_when_a_pod_is_ready_and_knows_where_its_time_went() {
    let fixture = QueueFixture::new(0);
    let mut held = fixture.arrive();
    let ready = async {
        fixture.clock.sleep(milliseconds(2000)).await;
        assert_eq!(fixture.held(), 1);
        fixture.pods(&["10.0.0.1"]);
    };
    let (place, ()) = tokio::join!(held.assigned_pod(), ready);
    assert_eq!(place, Ok("10.0.0.1:8080".parse().unwrap()));
    fixture.clock.sleep(milliseconds(3)).await;
    held.record_connected();
    fixture.clock.sleep(milliseconds(5)).await;
    // One deadline for all parts, from the arrival.
    assert_eq!(held.remaining(), milliseconds(30_000 - 2008));
    held.record_answered();
    let breakdown = held.times().breakdown(fixture.clock.uptime());
    let expected = Breakdown {
        queue: 0,
        scale: 30,
        ready: 1970,
        connect: 3,
        first_byte: 5,
        ..Breakdown::default()
    };
    assert_eq!(breakdown, expected);
    assert_eq!(fixture.wake_requests(), [(0, 1)]);
    assert_eq!(fixture.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_seen_before_it_is_ready_was_scheduled_by_then() {
    let fixture = QueueFixture::new(0);
    let starting = |ready: bool, ending: bool| {
        let conditions = json!({"ready": ready, "terminating": ending});
        [json!({"addresses": ["10.0.0.1"], "conditions": conditions})]
    };
    // A terminating pod does not count.
    fixture.endpoints(&starting(false, true));
    let mut held = fixture.arrive();
    let ready = async {
        fixture.clock.sleep(milliseconds(700)).await;
        fixture.endpoints(&starting(false, false));
        fixture.clock.sleep(milliseconds(300)).await;
        fixture.endpoints(&starting(true, false));
    };
    let (place, ()) = tokio::join!(held.assigned_pod(), ready);
    assert!(place.is_ok());
    let breakdown = held.times().breakdown(fixture.clock.uptime());
    let expected = Breakdown {
        scale: 30,
        schedule: 670,
        ready: 300,
        ..Breakdown::default()
    };
    assert_eq!(breakdown, expected);
    assert_eq!(
        breakdown.longest_part(),
        "0.7 of 1.0 s were spent waiting for a pod to be scheduled"
    );
}

#[tokio::test(start_paused = true)]
async fn one_wake_request_is_in_flight_for_all_held_requests_and_it_is_repeated() {
    let fixture = QueueFixture::new(0);
    let (mut first, mut second) = (fixture.arrive(), fixture.arrive());
    let both = async { tokio::join!(first.assigned_pod(), second.assigned_pod()) };
    let (first, second) = both.await;
    assert!(matches!(first, Err(HoldError::DeadlineExceeded { .. })));
    assert!(matches!(second, Err(HoldError::DeadlineExceeded { .. })));
    assert_eq!(fixture.clock.uptime().as_secs(), 30);
    // Ten seconds after each response.
    assert_eq!(fixture.wake_requests(), [(0, 1), (10030, 2), (20060, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_wake_request_is_retried_soon() {
    let fixture = QueueFixture::new(3);
    let mut held = fixture.arrive();
    let limit = milliseconds(900);
    assert_eq!(fixture.clock.within(limit, held.assigned_pod()).await, None);
    assert_eq!(
        fixture.wake_requests(),
        [(0, 1), (130, 1), (360, 1), (790, 1)]
    );
}

#[tokio::test(start_paused = true)]
async fn an_exceeded_deadline_reports_where_the_time_went() {
    let fixture = QueueFixture::new(usize::MAX);
    let mut held = fixture.arrive();
    let Err(HoldError::DeadlineExceeded {
        service,
        breakdown,
        wake_error: Some(_),
        not_ready: None,
    }) = held.assigned_pod().await
    else {
        panic!("there is no pod");
    };
    assert_eq!(service, Key::new("shop", "cart"));
    assert_eq!((breakdown.queue, breakdown.scale), (0, 30_000));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_leaves_frees_its_place() {
    let fixture = QueueFixture::new(0);
    let mut requests = [fixture.arrive(), fixture.arrive()];
    for held in &mut requests {
        assert_eq!(held.assigned_pod().now_or_never(), None);
    }
    let full = fixture.arrive().assigned_pod().await;
    assert_eq!(full, Err(HoldError::QueueFull(Key::new("shop", "cart"))));
    drop(requests);
    assert_eq!(fixture.held(), 0);
    assert_eq!(fixture.arrive().assigned_pod().now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_leaves_as_it_is_released_frees_its_share_of_the_pod() {
    let fixture = QueueFixture::new(0);
    for _ in 0..300 {
        let mut held = fixture.arrive();
        assert_eq!(held.assigned_pod().now_or_never(), None);
        fixture.pods(&["10.0.0.1"]);
        fixture.clock.sleep(milliseconds(1)).await;
        drop(held);
        fixture.pods(&[]);
        fixture.clock.sleep(milliseconds(1)).await;
    }
    // The limit of a pod is a hundred: leaked shares would have used it up.
    let mut held = fixture.arrive();
    assert_eq!(held.assigned_pod().now_or_never(), None);
    fixture.pods(&["10.0.0.1"]);
    assert!(held.assigned_pod().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_refuses_is_retried_and_a_wake_is_requested() {
    let fixture = QueueFixture::new(0);
    fixture.pods(&["10.0.0.1"]);
    let mut held = fixture.arrive();
    for _ in 0..3 {
        assert!(held.assigned_pod().await.is_ok());
        held.record_refused();
    }
    assert!(held.assigned_pod().await.is_ok());
    // 20, 40 and 80 ms.
    assert_eq!(fixture.clock.uptime(), milliseconds(140));
    // The queue was empty when the first response came, so the next wait triggers another request.
    assert_eq!(fixture.wake_requests(), [(0, 1), (130, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_that_had_passed_is_admitted_like_a_new_one() {
    let fixture = QueueFixture::new(0);
    fixture.pods(&["10.0.0.1"]);
    let mut requests = [fixture.arrive(), fixture.arrive(), fixture.arrive()];
    for held in &mut requests {
        assert!(held.assigned_pod().await.is_ok());
    }
    for held in &mut requests {
        held.record_refused();
    }
    let [one, two, three] = &mut requests;
    assert_eq!(one.assigned_pod().now_or_never(), None);
    assert_eq!(two.assigned_pod().now_or_never(), None);
    let full = HoldError::QueueFull(Key::new("shop", "cart"));
    assert_eq!(three.assigned_pod().await, Err(full));
    // A request that has waited returns to its place even if the queue is full.
    assert!(one.assigned_pod().await.is_ok());
    one.record_refused();
    let mut other = fixture.arrive();
    assert_eq!(other.assigned_pod().now_or_never(), None);
    assert_eq!(one.assigned_pod().now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn held_requests_are_refused_at_shutdown_and_when_the_service_is_removed() {
    let fixture = QueueFixture::new(0);
    let mut held = fixture.arrive();
    assert_eq!(held.assigned_pod().now_or_never(), None);
    fixture.holds.close();
    assert_eq!(held.assigned_pod().await, Err(HoldError::ShuttingDown));
    let fixture = QueueFixture::new(0);
    let mut held = fixture.arrive();
    assert_eq!(held.assigned_pod().now_or_never(), None);
    fixture.publish.send_replace(Arc::default());
    let gone = held.assigned_pod().await;
    assert_eq!(gone, Err(HoldError::ServiceGone(Key::new("shop", "cart"))));
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_wake_for_former_requests_does_not_count_for_new_ones() {
    let fixture = QueueFixture::new(0);
    let mut first = fixture.arrive();
    assert_eq!(first.assigned_pod().now_or_never(), None);
    fixture.clock.sleep(milliseconds(10)).await;
    drop(first);
    let mut second = fixture.arrive();
    let limit = milliseconds(200);
    assert_eq!(
        fixture.clock.within(limit, second.assigned_pod()).await,
        None
    );
    // 100 ms after the response to the first request, which takes 30 ms.
    assert_eq!(fixture.wake_requests(), [(0, 1), (130, 1)]);
}
