use std::sync::atomic::{AtomicUsize, Ordering};

use kube::{
    Api, Client, CustomResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use neap_kit::{
    controller::{Options, Outcome},
    watch::Watches,
};
use neap_pocket::{Options as Served, Pocket, environment::Environment};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::*;
use crate::trigger::{Defaults, Oracle, Question};

/// Says what it is told to say.
#[derive(Debug, Default)]
struct Clerk {
    value: Mutex<f64>,
    /// So long resolvers take to say what they counted.
    counting: Mutex<Duration>,
    asked: AtomicUsize,
}

impl Oracle for Clerk {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<f64, Problem>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let health = format!("{question:?}").contains("min_over_time");
        let value = if health { 1.0 } else { *self.value.lock() };
        let hangs = question.asked_of().contains("hangs");
        Box::pin(async move {
            if hangs {
                let limit = Duration::from_secs(5);
                tokio::time::sleep(limit).await;
                return Err(Problem::Late(limit));
            }
            Ok(value)
        })
    }
}

impl Counters for Clerk {
    fn quiet(&self) -> BoxFuture<'_, Result<BTreeMap<String, Quiet>, Problem>> {
        let held = *self.value.lock() as u64;
        let quiet = Quiet { held, last: None };
        let counted = BTreeMap::from([("default/cart".to_owned(), quiet)]);
        let takes = *self.counting.lock();
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            Ok(counted)
        })
    }
}

struct Stage {
    judge: Arc<Judge>,
    clerk: Arc<Clerk>,
    service: ElastiService,
    looks: Arc<AtomicUsize>,
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

async fn stage(more: Value) -> Stage {
    let options = Served::new(Environment::rehearsal(7));
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
    let leadership = Leadership::alone(clock);
    let site = Site {
        client,
        watches,
        leadership,
        clock,
    };
    let clerk = Arc::<Clerk>::default();
    let poll = Poll::new(clerk.clone(), Defaults::default(), clock);
    let interval = Duration::from_secs(30);
    let judge = Judge::new(&site, site.all().unwrap(), poll, clerk.clone(), interval);
    let looks = Arc::<AtomicUsize>::default();
    let mut tasks = JoinSet::new();
    let stop = CancellationToken::new();
    let controller = site.controller::<Key>(Options::new("looks"));
    judge.tell(controller.trigger());
    let counted = looks.clone();
    let count = move |_: Key| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, neap_kit::apply::Error>(Outcome::Settled) }
    };
    let ends = stop.clone();
    tasks.spawn(async move { controller.run(count, ends).await });
    tasks.spawn(watching.run(stop.clone()));
    tasks.spawn(judge.clone().service(1).run(stop));
    Stage {
        judge,
        clerk,
        service,
        looks,
        clock,
        tasks,
        services: api,
        _pocket: pocket,
    }
}

impl Stage {
    fn word(&self) -> &'static str {
        self.judge.of(&self.service).because().reason
    }

    async fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    /// One more, by another name.
    async fn more(&self, name: &str, triggers: Value) {
        let mut more = service(&json!({ "triggers": triggers }));
        more.metadata.name = Some(name.to_owned());
        let made = self.services.create(&PostParams::default(), &more).await;
        made.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_triggers_say_is_at_hand_and_changes_are_told() {
    let stage = stage(json!({})).await;
    assert_eq!(stage.word(), "NotAsked");
    stage.pass(5).await;
    assert_eq!(stage.word(), "Idle");
    stage.pass(120).await;
    assert_eq!(stage.looks.load(Ordering::Relaxed), 1);
    *stage.clerk.value.lock() = 1.0;
    assert_eq!(stage.word(), "Idle");
    assert_eq!(
        stage.judge.anew(&stage.service).await.because().reason,
        "Busy"
    );
    stage.pass(35).await;
    assert_eq!(stage.word(), "Busy");
    assert!(stage.looks.load(Ordering::Relaxed) >= 2);
}

#[tokio::test(start_paused = true)]
async fn another_object_of_the_name_is_not_spoken_of() {
    let stage = stage(json!({})).await;
    stage.pass(5).await;
    let mut other = stage.service.clone();
    other.metadata.uid = Some("other".into());
    assert_eq!(stage.judge.of(&other).because().reason, "NotAsked");
}

#[tokio::test(start_paused = true)]
async fn what_was_said_long_ago_is_not_believed() {
    let mut stage = stage(json!({})).await;
    stage.pass(5).await;
    stage.tasks.abort_all();
    stage.pass(80).await;
    assert_eq!(stage.word(), "Idle");
    stage.pass(10).await;
    assert_eq!(stage.word(), "NotAsked");
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
        let stage = stage(json!({"enabledPeriod": period})).await;
        stage.pass(5).await;
        assert_eq!(stage.word(), reason, "{period}");
        let anew = stage.judge.anew(&stage.service).await;
        assert_eq!(anew.because().reason, reason, "{period}");
    }
}

#[tokio::test(start_paused = true)]
async fn resolvers_are_asked_where_they_count() {
    let stage = stage(json!({"triggers": [{"type": "requests"}]})).await;
    stage.pass(5).await;
    assert_eq!(stage.word(), "Idle");
    *stage.clerk.value.lock() = 2.0;
    let anew = stage.judge.anew(&stage.service).await;
    assert_eq!(anew.because().reason, "Busy");
    assert_eq!(stage.clerk.asked.load(Ordering::Relaxed), 0);
}

fn at(server: &str, query: &str) -> Value {
    let metadata = json!({"query": query, "serverAddress": server, "threshold": "0.5"});
    json!([{"type": "prometheus", "metadata": metadata}])
}

#[tokio::test(start_paused = true)]
async fn a_round_that_takes_minutes_keeps_nobody_elses_verdict_from_being_fresh() {
    let stage = stage(json!({})).await;
    // Eight at a time, five seconds each: more than two minutes.
    for n in 0..200 {
        let query = format!("q{n}");
        stage
            .more(&format!("slow{n}"), at("http://hangs", &query))
            .await;
    }
    stage.pass(5).await;
    for second in 0..300 {
        assert_eq!(stage.word(), "Idle", "after {second} s");
        stage.pass(1).await;
    }
    *stage.clerk.value.lock() = 1.0;
    stage.pass(35).await;
    assert_eq!(stage.word(), "Busy");
    assert!(
        stage.judge.asked.lock().len() > 100,
        "others are waited for"
    );
}

#[tokio::test(start_paused = true)]
async fn resolvers_that_take_long_to_count_keep_those_waiting_who_count() {
    let stage = stage(json!({})).await;
    *stage.clerk.counting.lock() = Duration::from_secs(20);
    stage.more("counted", json!([{"type": "requests"}])).await;
    stage.pass(3).await;
    assert_eq!(stage.word(), "Idle");
    *stage.clerk.value.lock() = 1.0;
    let counted = stage.services.get("counted").await.unwrap();
    // Ten seconds after both were asked again.
    stage.pass(37).await;
    assert_eq!(stage.word(), "Busy");
    assert_eq!(stage.judge.of(&counted).because().reason, "NotAsked");
    stage.pass(15).await;
    assert_eq!(stage.judge.of(&counted).because().reason, "Busy");
}

#[tokio::test(start_paused = true)]
async fn what_other_triggers_said_is_not_said_of_a_service() {
    let stage = stage(json!({"triggers": at("http://hangs", "q")})).await;
    stage.pass(3).await;
    assert_eq!(stage.word(), "NotAsked");
    let change = json!({"spec": {"triggers": at("http://prom", "q")}});
    let change = Patch::Merge(change);
    let options = PatchParams::default();
    let changed = stage.services.patch("sleepy", &options, &change).await;
    changed.unwrap();
    stage.pass(10).await;
    assert_eq!(stage.word(), "NotAsked");
    stage.pass(25).await;
    assert_eq!(stage.word(), "Idle");
}
