use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;

use super::*;

/// Responds after a delay, or never, and records concurrent queries.
#[derive(Debug)]
struct FakePrometheus {
    clock: Clock,
    record: Mutex<QueryRecord>,
}

#[derive(Debug, Default)]
struct QueryRecord {
    asked: Vec<String>,
    open: HashMap<String, usize>,
    most: HashMap<String, usize>,
}

impl FakePrometheus {
    fn new(clock: Clock) -> Arc<Self> {
        let record = Mutex::default();
        Arc::new(Self { clock, record })
    }

    fn count(&self, server: &str, by: isize) {
        let mut record = self.record.lock();
        for who in [server, "all"] {
            let open = record.open.entry(who.to_owned()).or_default();
            *open = open.checked_add_signed(by).unwrap();
            let open = *open;
            let most = record.most.entry(who.to_owned()).or_default();
            *most = open.max(*most);
        }
    }
}

impl PrometheusApi for FakePrometheus {
    fn query<'a>(&'a self, question: &'a Query) -> BoxFuture<'a, Result<f64, Problem>> {
        Box::pin(async move {
            let server = question.server_origin();
            let address = question.address(self.clock.now());
            self.record.lock().asked.push(address.clone());
            self.count(&server, 1);
            let limit = if server.contains("slow") { 5000 } else { 10 };
            self.clock.sleep(Duration::from_millis(limit)).await;
            self.count(&server, -1);
            match server.contains("slow") {
                true => Err(Problem::Timeout(Duration::from_millis(limit))),
                false if address.contains("min_over_time") => Ok(1.0),
                false => Ok(0.0),
            }
        })
    }
}

fn service(name: &str, server: &str, query: &str) -> PolledService {
    let metadata = json!({"query": query, "serverAddress": server, "threshold": "0.5"});
    PolledService {
        key: Key::new("shop", name),
        cooldown: Duration::from_mins(15),
        triggers: vec![Trigger {
            kind: TriggerKind::Prometheus,
            metadata: Some(metadata),
        }],
        requests: Ok(RecentRequests::default()),
    }
}

fn clock() -> Clock {
    Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap())
}

fn poller(prometheus: &Arc<FakePrometheus>) -> Poller {
    Poller::new(
        prometheus.clone(),
        PrometheusDefaults::default(),
        prometheus.clock,
    )
}

#[tokio::test(start_paused = true)]
async fn a_shared_query_is_sent_once() {
    let prometheus = FakePrometheus::new(clock());
    let services: Vec<_> = (0..100)
        .map(|n| service(&format!("s{n}"), "http://prom", &format!("q{}", n % 4)))
        .collect();
    let verdicts = poller(&prometheus)
        .poll_all(&services, &mut Jitter::new(1))
        .await;
    assert_eq!(verdicts.len(), 100);
    let idle = verdicts.values().all(|one| matches!(one, Verdict::Idle(_)));
    assert!(idle, "{verdicts:?}");
    // Four queries, and one for the health that all share.
    assert_eq!(prometheus.record.lock().asked.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_delays_no_other() {
    let prometheus = FakePrometheus::new(clock());
    let mut services: Vec<_> = (0..200)
        .map(|n| service(&format!("slow{n}"), "http://slow", &format!("q{n}")))
        .collect();
    services.push(service("quick", "http://quick", "q"));
    let poller = poller(&prometheus);
    let mut verdicts = Vec::new();
    let on_verdict = |index: usize, verdict: Verdict| {
        let reason = verdict.reason().name;
        verdicts.push((index, reason, prometheus.clock.uptime()));
    };
    poller
        .poll(&services, &mut Jitter::new(2), on_verdict)
        .await;
    assert_eq!(verdicts.len(), 201);
    let (first, reason, at) = verdicts[0];
    assert_eq!((first, reason), (200, "Idle"));
    // Its two queries take 10 ms.
    let quickly = poller.spread + Duration::from_millis(10);
    assert!(at <= quickly, "{at:?}");
    let slow = verdicts[1..].iter();
    for (index, reason, at) in slow {
        assert_eq!(*reason, "PrometheusUnreachable", "{index}");
        assert!(*at >= Duration::from_secs(5), "{index}: {at:?}");
    }
    let record = prometheus.record.lock();
    assert_eq!(record.most["http://slow:80"], MAX_QUERIES_PER_SERVER);
}

#[tokio::test(start_paused = true)]
async fn rounds_that_overlap_share_the_places_at_a_server() {
    let prometheus = FakePrometheus::new(clock());
    let asked = |round: usize| -> Vec<PolledService> {
        let query = |n| format!("round{round}-{n}");
        let all = (0..20).map(|n| service(&format!("s{n}"), "http://slow", &query(n)));
        all.collect()
    };
    let (first, second) = (asked(1), asked(2));
    let poller = poller(&prometheus);
    let (mut one, mut other) = (Jitter::new(5), Jitter::new(6));
    tokio::join!(
        poller.poll_all(&first, &mut one),
        poller.poll_all(&second, &mut other)
    );
    assert_eq!(
        prometheus.record.lock().most["http://slow:80"],
        MAX_QUERIES_PER_SERVER
    );
    assert_eq!(poller.slots.servers.lock().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn concurrent_queries_are_limited() {
    let prometheus = FakePrometheus::new(clock());
    let services: Vec<_> = (0..300)
        .map(|n| service(&format!("s{n}"), &format!("http://prom{n}"), "q"))
        .collect();
    let mut poller = poller(&prometheus);
    poller.spread = Duration::ZERO;
    poller.poll_all(&services, &mut Jitter::new(3)).await;
    assert_eq!(prometheus.record.lock().most["all"], MAX_QUERIES);
}

#[tokio::test(start_paused = true)]
async fn a_seed_asks_in_the_same_order_again() {
    let services: Vec<_> = (0..30)
        .map(|n| service(&format!("s{n}"), "http://prom", &format!("q{n}")))
        .collect();
    let mut rows = Vec::new();
    for seed in [7, 7, 8] {
        let prometheus = FakePrometheus::new(clock());
        poller(&prometheus)
            .poll_all(&services, &mut Jitter::new(seed))
            .await;
        let asked = prometheus.record.lock().asked.clone();
        let queries = asked
            .iter()
            .map(|one| one.split('&').next().unwrap().to_owned());
        rows.push(queries.collect::<Vec<_>>());
    }
    assert_eq!(rows[0], rows[1]);
    assert_ne!(rows[0], rows[2]);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_trigger_is_unknown() {
    let prometheus = FakePrometheus::new(clock());
    let mut counted = service("counted", "", "");
    counted.triggers[0].kind = TriggerKind::Requests;
    let mut untriggered = service("untriggered", "", "");
    untriggered.triggers.clear();
    let services = [service("nowhere", "", "q"), counted, untriggered];
    let verdicts = poller(&prometheus)
        .poll_all(&services, &mut Jitter::new(4))
        .await;
    let reasons: Vec<_> = verdicts.values().map(|one| one.reason().name).collect();
    assert_eq!(reasons, ["Idle", "PrometheusUnknown", "NoTriggers"]);
    assert_eq!(prometheus.record.lock().asked.len(), 0);
}

/// Has no value for either query.
#[derive(Debug)]
struct EmptyPrometheus;

impl PrometheusApi for EmptyPrometheus {
    fn query<'a>(&'a self, _: &'a Query) -> BoxFuture<'a, Result<f64, Problem>> {
        Box::pin(async { Err(Problem::NoValue) })
    }
}

#[tokio::test(start_paused = true)]
async fn an_uptime_query_without_a_value_is_named() {
    let poller = Poller::new(
        Arc::new(EmptyPrometheus),
        PrometheusDefaults::default(),
        clock(),
    );
    let services = [service("a", "http://prometheus:9090", "sum(requests)")];
    let verdicts = poller.poll_all(&services, &mut Jitter::new(1)).await;
    let verdict = verdicts.into_values().next().unwrap();
    let reason = verdict.reason();
    assert_eq!(reason.name, "NoValue");
    assert!(
        reason
            .message
            .contains(r#"min_over_time((max(up{container="prometheus"})"#),
        "{reason}"
    );
    assert!(!reason.message.contains("sum(requests)"), "{reason}");
}
