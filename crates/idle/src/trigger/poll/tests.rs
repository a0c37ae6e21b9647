use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;

use super::*;

/// Answers after a while, or never, and notes who asked what at the same time.
#[derive(Debug)]
struct Clerk {
    clock: Clock,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    asked: Vec<String>,
    open: HashMap<String, usize>,
    most: HashMap<String, usize>,
}

impl Clerk {
    fn new(clock: Clock) -> Arc<Self> {
        let notes = Mutex::default();
        Arc::new(Self { clock, notes })
    }

    fn count(&self, server: &str, by: isize) {
        let mut notes = self.notes.lock();
        for who in [server, "all"] {
            let open = notes.open.entry(who.to_owned()).or_default();
            *open = open.checked_add_signed(by).unwrap();
            let open = *open;
            let most = notes.most.entry(who.to_owned()).or_default();
            *most = open.max(*most);
        }
    }
}

impl Oracle for Clerk {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<f64, Problem>> {
        Box::pin(async move {
            let server = question.asked_of();
            let address = question.address(self.clock.now());
            self.notes.lock().asked.push(address.clone());
            self.count(&server, 1);
            let limit = if server.contains("slow") { 5000 } else { 10 };
            self.clock.sleep(Duration::from_millis(limit)).await;
            self.count(&server, -1);
            match server.contains("slow") {
                true => Err(Problem::Late(Duration::from_millis(limit))),
                false if address.contains("min_over_time") => Ok(1.0),
                false => Ok(0.0),
            }
        })
    }
}

fn service(name: &str, server: &str, query: &str) -> Watched {
    let metadata = json!({"query": query, "serverAddress": server, "threshold": "0.5"});
    Watched {
        key: Key::new("shop", name),
        cooldown: Duration::from_mins(15),
        triggers: vec![Trigger {
            kind: TriggerKind::Prometheus,
            metadata: Some(metadata),
        }],
        quiet: Ok(Quiet::default()),
    }
}

fn clock() -> Clock {
    Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap())
}

fn poll(clerk: &Arc<Clerk>) -> Poll {
    Poll::new(clerk.clone(), Defaults::default(), clerk.clock)
}

#[tokio::test(start_paused = true)]
async fn what_many_want_to_know_is_asked_once() {
    let clerk = Clerk::new(clock());
    let services: Vec<_> = (0..100)
        .map(|n| service(&format!("s{n}"), "http://prom", &format!("q{}", n % 4)))
        .collect();
    let verdicts = poll(&clerk).round(&services, &mut Jitter::new(1)).await;
    assert_eq!(verdicts.len(), 100);
    let idle = verdicts.values().all(|one| matches!(one, Verdict::Idle(_)));
    assert!(idle, "{verdicts:?}");
    // Four queries, and one for the health of all.
    assert_eq!(clerk.notes.lock().asked.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_holds_up_nobody_else() {
    let clerk = Clerk::new(clock());
    let mut services: Vec<_> = (0..200)
        .map(|n| service(&format!("slow{n}"), "http://slow", &format!("q{n}")))
        .collect();
    services.push(service("quick", "http://quick", "q"));
    let poll = poll(&clerk);
    let mut told = Vec::new();
    let tell = |index: usize, verdict: Verdict| {
        let reason = verdict.because().reason;
        told.push((index, reason, clerk.clock.uptime()));
    };
    poll.each(&services, &mut Jitter::new(2), tell).await;
    assert_eq!(told.len(), 201);
    let (first, reason, at) = told[0];
    assert_eq!((first, reason), (200, "Idle"));
    // Its two questions take 10 ms.
    let quickly = poll.spread + Duration::from_millis(10);
    assert!(at <= quickly, "{at:?}");
    let slow = told[1..].iter();
    for (index, reason, at) in slow {
        assert_eq!(*reason, "PrometheusUnreachable", "{index}");
        assert!(*at >= Duration::from_secs(5), "{index}: {at:?}");
    }
    let notes = clerk.notes.lock();
    assert_eq!(notes.most["http://slow:80"], PER_SERVER);
}

#[tokio::test(start_paused = true)]
async fn rounds_that_overlap_share_the_places_at_a_server() {
    let clerk = Clerk::new(clock());
    let asked = |round: usize| -> Vec<Watched> {
        let query = |n| format!("round{round}-{n}");
        let all = (0..20).map(|n| service(&format!("s{n}"), "http://slow", &query(n)));
        all.collect()
    };
    let (first, second) = (asked(1), asked(2));
    let poll = poll(&clerk);
    let (mut one, mut other) = (Jitter::new(5), Jitter::new(6));
    tokio::join!(
        poll.round(&first, &mut one),
        poll.round(&second, &mut other)
    );
    assert_eq!(clerk.notes.lock().most["http://slow:80"], PER_SERVER);
    assert_eq!(poll.places.servers.lock().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn there_are_only_so_many_questions_at_once() {
    let clerk = Clerk::new(clock());
    let services: Vec<_> = (0..300)
        .map(|n| service(&format!("s{n}"), &format!("http://prom{n}"), "q"))
        .collect();
    let mut poll = poll(&clerk);
    poll.spread = Duration::ZERO;
    poll.round(&services, &mut Jitter::new(3)).await;
    assert_eq!(clerk.notes.lock().most["all"], CONCURRENCY);
}

#[tokio::test(start_paused = true)]
async fn a_seed_asks_in_the_same_order_again() {
    let services: Vec<_> = (0..30)
        .map(|n| service(&format!("s{n}"), "http://prom", &format!("q{n}")))
        .collect();
    let mut rows = Vec::new();
    for seed in [7, 7, 8] {
        let clerk = Clerk::new(clock());
        poll(&clerk).round(&services, &mut Jitter::new(seed)).await;
        let asked = clerk.notes.lock().asked.clone();
        let queries = asked
            .iter()
            .map(|one| one.split('&').next().unwrap().to_owned());
        rows.push(queries.collect::<Vec<_>>());
    }
    assert_eq!(rows[0], rows[1]);
    assert_ne!(rows[0], rows[2]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_is_not_known() {
    let clerk = Clerk::new(clock());
    let mut counted = service("counted", "", "");
    counted.triggers[0].kind = TriggerKind::Requests;
    let mut untriggered = service("untriggered", "", "");
    untriggered.triggers.clear();
    let services = [service("nowhere", "", "q"), counted, untriggered];
    let verdicts = poll(&clerk).round(&services, &mut Jitter::new(4)).await;
    let reasons: Vec<_> = verdicts.values().map(|one| one.because().reason).collect();
    assert_eq!(reasons, ["Idle", "PrometheusUnknown", "NoTriggers"]);
    assert_eq!(clerk.notes.lock().asked.len(), 0);
}
