use std::sync::atomic::{AtomicUsize, Ordering};

use kube::{
    Api, Client, CustomResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use neap_kit::{
    controller::{ControllerOptions, Outcome},
    watch::Watches,
};
use neap_pocket::{Options as Served, Pocket, environment::Environment};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::*;
use crate::trigger::{PrometheusApi, PrometheusDefaults, Query};

/// A Prometheus and resolvers whose results the test sets.
#[derive(Debug, Default)]
struct FakeSource {
    value: Mutex<f64>,
    /// How long resolvers take to respond.
    counting: Mutex<Duration>,
    asked: AtomicUsize,
}

impl PrometheusApi for FakeSource {
    fn query<'a>(&'a self, question: &'a Query) -> BoxFuture<'a, Result<f64, Problem>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let health = format!("{question:?}").contains("min_over_time");
        let value = if health { 1.0 } else { *self.value.lock() };
        let hangs = question.server_origin().contains("hangs");
        Box::pin(async move {
            if hangs {
                let limit = Duration::from_secs(5);
                tokio::time::sleep(limit).await;
                return Err(Problem::Timeout(limit));
            }
            Ok(value)
        })
    }
}

impl RequestCounts for FakeSource {
    fn by_service(&self) -> BoxFuture<'_, Result<BTreeMap<String, RecentRequests>, Problem>> {
        let held = *self.value.lock() as u64;
        let requests = RecentRequests { held, last: None };
        let counted = BTreeMap::from([("default/cart".to_owned(), requests)]);
        let takes = *self.counting.lock();
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            Ok(counted)
        })
    }
}

struct TestMonitor {
    monitor: Arc<TriggerMonitor>,
    source: Arc<FakeSource>,
    service: ElastiService,
    reconciles: Arc<AtomicUsize>,
    clock: Clock,
    tasks: JoinSet<()>,
    services: Api<ElastiService>,
    _pocket: Pocket,
}

fn service(more: &Value) -> ElastiService {
    let mut object = json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1",
        "kind": "ElastiService",
        "metadata": {"name": "sleepy"},
        "spec": {
            "service": "cart",
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"},
            "triggers": [{
                "type": "prometheus",
                "metadata": {"query": "q", "serverAddress": "http://prom", "threshold": "0.5"},
            }],
        },
    });
    for (name, value) in more.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

async fn fixture(more: Value) -> TestMonitor {
    let options = Served::new(Environment::simulated(7));
    let pocket = Pocket::open(options).await.unwrap();
    let client = Client::new(pocket.service(), "default");
    let definitions = Api::all(client.clone());
    let definition = ElastiService::crd();
    let made = definitions
        .create(&PostParams::default(), &definition)
        .await;
    made.unwrap();
    let clock = Clock::starting_at("2026-01-01T12:00:00Z".parse().unwrap());
    clock.sleep(Duration::from_secs(1)).await;
    let object = service(&more);
    let api: Api<ElastiService> = Api::default_namespaced(client.clone());
    let service = api.create(&PostParams::default(), &object).await.unwrap();
    let (watches, watching) = Watches::new(clock);
    let leadership = Leadership::without_election(clock);
    let context = Context {
        client,
        watches,
        leadership,
        clock,
    };
    let source = Arc::<FakeSource>::default();
    let poll = Poller::new(source.clone(), PrometheusDefaults::default(), clock);
    let interval = Duration::from_secs(30);
    let monitor = TriggerMonitor::new(
        &context,
        context.cache().unwrap(),
        poll,
        source.clone(),
        interval,
    );
    let reconciles = Arc::<AtomicUsize>::default();
    let mut tasks = JoinSet::new();
    let stop = CancellationToken::new();
    let controller = context.controller::<Key>(ControllerOptions::new("looks"));
    monitor.enqueue_changes(controller.enqueuer());
    let counted = reconciles.clone();
    let count = move |_: Key| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, neap_kit::apply::Error>(Outcome::Done) }
    };
    let ends = stop.clone();
    tasks.spawn(async move { controller.run(count, ends).await });
    tasks.spawn(watching.run(stop.clone()));
    tasks.spawn(monitor.clone().component(1).run(stop));
    TestMonitor {
        monitor,
        source,
        service,
        reconciles,
        clock,
        tasks,
        services: api,
        _pocket: pocket,
    }
}

impl TestMonitor {
    fn reason_name(&self) -> &'static str {
        self.monitor.latest(&self.service).reason().name
    }

    async fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    /// Creates another service.
    async fn create_service(&self, name: &str, triggers: Value) {
        let mut more = service(&json!({ "triggers": triggers }));
        more.metadata.name = Some(name.to_owned());
        let made = self.services.create(&PostParams::default(), &more).await;
        made.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn verdicts_are_in_memory_and_changes_are_enqueued() {
    let fixture = fixture(json!({})).await;
    assert_eq!(fixture.reason_name(), "NotPolled");
    fixture.pass(5).await;
    assert_eq!(fixture.reason_name(), "Idle");
    fixture.pass(120).await;
    assert_eq!(fixture.reconciles.load(Ordering::Relaxed), 1);
    *fixture.source.value.lock() = 1.0;
    assert_eq!(fixture.reason_name(), "Idle");
    assert_eq!(
        fixture
            .monitor
            .poll_now(&fixture.service)
            .await
            .reason()
            .name,
        "Busy"
    );
    fixture.pass(35).await;
    assert_eq!(fixture.reason_name(), "Busy");
    assert!(fixture.reconciles.load(Ordering::Relaxed) >= 2);
}

#[tokio::test(start_paused = true)]
async fn another_object_of_the_name_is_not_spoken_of() {
    let fixture = fixture(json!({})).await;
    fixture.pass(5).await;
    let mut other = fixture.service.clone();
    other.metadata.uid = Some("other".into());
    assert_eq!(fixture.monitor.latest(&other).reason().name, "NotPolled");
}

#[tokio::test(start_paused = true)]
async fn an_old_verdict_is_unknown() {
    let mut fixture = fixture(json!({})).await;
    fixture.pass(5).await;
    fixture.tasks.abort_all();
    fixture.pass(80).await;
    assert_eq!(fixture.reason_name(), "Idle");
    fixture.pass(10).await;
    assert_eq!(fixture.reason_name(), "NotPolled");
}

#[tokio::test(start_paused = true)]
async fn outside_of_its_window_it_is_wanted() {
    for (period, reason) in [
        (
            json!({"schedule": "0 22 * * *", "duration": "8h"}),
            "WindowClosed",
        ),
        (json!({"schedule": "0 12 * * *", "duration": "8h"}), "Idle"),
        (
            json!({"schedule": "often", "duration": "8h"}),
            "WindowInvalid",
        ),
    ] {
        let fixture = fixture(json!({"enabledPeriod": period})).await;
        fixture.pass(5).await;
        assert_eq!(fixture.reason_name(), reason, "{period}");
        let anew = fixture.monitor.poll_now(&fixture.service).await;
        assert_eq!(anew.reason().name, reason, "{period}");
    }
}

#[tokio::test(start_paused = true)]
async fn resolvers_are_queried_for_requests_triggers() {
    let fixture = fixture(json!({"triggers": [{"type": "requests"}]})).await;
    fixture.pass(5).await;
    assert_eq!(fixture.reason_name(), "Idle");
    *fixture.source.value.lock() = 2.0;
    let anew = fixture.monitor.poll_now(&fixture.service).await;
    assert_eq!(anew.reason().name, "Busy");
    assert_eq!(fixture.source.asked.load(Ordering::Relaxed), 0);
}

fn at(server: &str, query: &str) -> Value {
    let metadata = json!({"query": query, "serverAddress": server, "threshold": "0.5"});
    json!([{"type": "prometheus", "metadata": metadata}])
}

#[tokio::test(start_paused = true)]
async fn a_slow_round_delays_no_other_verdict() {
    let fixture = fixture(json!({})).await;
    // Eight at a time, five seconds each: more than two minutes.
    for n in 0..200 {
        let query = format!("q{n}");
        fixture
            .create_service(&format!("slow{n}"), at("http://hangs", &query))
            .await;
    }
    fixture.pass(5).await;
    for second in 0..300 {
        assert_eq!(fixture.reason_name(), "Idle", "after {second} s");
        fixture.pass(1).await;
    }
    *fixture.source.value.lock() = 1.0;
    fixture.pass(35).await;
    assert_eq!(fixture.reason_name(), "Busy");
    assert!(
        fixture.monitor.polling.lock().len() > 100,
        "the polls of others are in progress"
    );
}

#[tokio::test(start_paused = true)]
async fn slow_resolvers_delay_only_requests_triggers() {
    let fixture = fixture(json!({})).await;
    *fixture.source.counting.lock() = Duration::from_secs(20);
    fixture
        .create_service("counted", json!([{"type": "requests"}]))
        .await;
    fixture.pass(3).await;
    assert_eq!(fixture.reason_name(), "Idle");
    *fixture.source.value.lock() = 1.0;
    let counted = fixture.services.get("counted").await.unwrap();
    // Ten seconds after both were polled again.
    fixture.pass(37).await;
    assert_eq!(fixture.reason_name(), "Busy");
    assert_eq!(fixture.monitor.latest(&counted).reason().name, "NotPolled");
    fixture.pass(15).await;
    assert_eq!(fixture.monitor.latest(&counted).reason().name, "Busy");
}

#[tokio::test(start_paused = true)]
async fn a_verdict_of_former_triggers_is_dropped() {
    let fixture = fixture(json!({"triggers": at("http://hangs", "q")})).await;
    fixture.pass(3).await;
    assert_eq!(fixture.reason_name(), "NotPolled");
    let change = json!({"spec": {"triggers": at("http://prom", "q")}});
    let change = Patch::Merge(change);
    let options = PatchParams::default();
    let changed = fixture.services.patch("sleepy", &options, &change).await;
    changed.unwrap();
    fixture.pass(10).await;
    assert_eq!(fixture.reason_name(), "NotPolled");
    fixture.pass(25).await;
    assert_eq!(fixture.reason_name(), "Idle");
}
