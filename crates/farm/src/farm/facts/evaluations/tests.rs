use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::*;
use crate::api::BuildbarnBrowser;

const SECOND: Duration = Duration::from_secs(1);

fn component(namespace: &str, name: &str) -> Component {
    let object = json!({
        "metadata": {
            "namespace": namespace, "name": name, "uid": format!("{namespace}-{name}"),
            "labels": {"buildbarn.io/farm": name},
        },
        "spec": {"configMapName": "mine"},
    });
    let browser: BuildbarnBrowser = serde_json::from_value(object).unwrap();
    Component::from(&browser)
}

fn config_map(text: &str) -> Arc<ConfigMap> {
    let object = json!({"metadata": {"name": "mine"}, "data": {"browser.jsonnet": text}});
    Arc::new(serde_json::from_value(object).unwrap())
}

fn job(namespace: &str, name: &str, text: &str) -> Job {
    Job::new(&component(namespace, name), config_map(text))
}

fn pending(answer: &Answer) -> (Option<&str>, Option<Duration>) {
    match answer {
        Answer::Pending { failure, ask_again } => (failure.as_deref(), *ask_again),
        Answer::Known(config) => panic!("{config:?}"),
    }
}

fn take(queue: &mut Queue) -> Option<String> {
    let job = queue.take()?;
    Some(format!(
        "{}/{}",
        job.component.namespace(),
        job.component.name()
    ))
}

#[test]
fn namespaces_take_turns_and_have_one_evaluation_at_a_time() {
    let mut queue = Queue::default();
    let endless: Vec<_> = (0..10).map(|it| job("a", &format!("a{it}"), "x")).collect();
    for job in endless.clone() {
        queue.ask(job, Duration::ZERO);
    }
    let other = job("b", "b0", "y");
    queue.ask(other.clone(), Duration::ZERO);
    assert_eq!(take(&mut queue).as_deref(), Some("a/a0"));
    assert_eq!(
        take(&mut queue).as_deref(),
        Some("b/b0"),
        "not the next of a"
    );
    assert_eq!(take(&mut queue), None, "a has one already");
    queue.finish(&endless[0], Ok(UserConfig::Missing), Duration::ZERO);
    // A namespace that comes later does not wait for all of the first.
    queue.ask(job("c", "c0", "z"), Duration::ZERO);
    assert_eq!(take(&mut queue).as_deref(), Some("a/a1"));
    assert_eq!(take(&mut queue).as_deref(), Some("c/c0"));
}

#[test]
fn a_result_is_kept_when_nothing_waits_for_it_any_more() {
    let mut queue = Queue::default();
    let asked = job("a", "one", "x");
    assert_eq!(
        pending(&queue.ask(asked.clone(), Duration::ZERO)),
        (None, None)
    );
    queue.ask(asked.clone(), Duration::ZERO);
    let taken = queue.take().unwrap();
    assert!(queue.take().is_none(), "it waits once");
    // It runs, and is asked for again.
    queue.ask(asked.clone(), Duration::ZERO);
    assert!(queue.waiting.is_empty());
    let farms = queue.finish(&taken, Ok(UserConfig::Missing), Duration::ZERO);
    assert_eq!(farms, BTreeSet::from([Key::new("a", "one")]));
    let answer = queue.ask(asked, Duration::ZERO);
    assert_eq!(answer, Answer::Known(UserConfig::Missing));
    assert!(queue.take().is_none());
}

#[test]
fn what_waits_and_what_is_kept_is_bounded() {
    let mut queue = Queue::default();
    for version in 0..100 {
        queue.ask(job("a", "one", &version.to_string()), Duration::ZERO);
    }
    assert_eq!(queue.waiting["a"].len(), 1, "only the newest version waits");
    assert_eq!(queue.waiters.len(), 1);
    for number in 1..100 {
        let answer = queue.ask(job("a", &format!("a{number}"), "x"), Duration::ZERO);
        let poll = (number >= MAX_WAITING).then_some(WAITING_POLL);
        assert_eq!(pending(&answer), (None, poll), "{number}");
    }
    assert_eq!(queue.waiting["a"].len(), MAX_WAITING);
    let mut queue = Queue::default();
    for number in 0..MAX_RESULTS + 10 {
        let job = job("a", "one", &number.to_string());
        queue.finish(&job, Ok(UserConfig::Missing), Duration::ZERO);
    }
    assert_eq!(
        (queue.results.len(), queue.order.len()),
        (MAX_RESULTS, MAX_RESULTS)
    );
}

#[test]
fn what_the_machine_could_not_evaluate_is_evaluated_again_with_a_growing_delay() {
    let mut queue = Queue::default();
    let asked = job("a", "one", "x");
    let mut now = Duration::ZERO;
    let mut delays = Vec::new();
    for _ in 0..9 {
        queue.ask(asked.clone(), now);
        let taken = queue.take().unwrap();
        queue.finish(
            &taken,
            Err(EvaluationError::Unavailable("no program".to_owned())),
            now,
        );
        let answer = queue.ask(asked.clone(), now);
        let (failure, ask_again) = pending(&answer);
        assert_eq!(failure, Some("it cannot be evaluated here: no program"));
        assert!(queue.take().is_none(), "not before the delay");
        delays.push(ask_again.unwrap().as_secs());
        now += ask_again.unwrap();
    }
    assert_eq!(delays, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
    queue.ask(asked.clone(), now);
    let taken = queue.take().unwrap();
    queue.finish(&taken, Ok(UserConfig::Missing), now);
    assert_eq!(queue.ask(asked, now), Answer::Known(UserConfig::Missing));
}

/// An evaluator that answers always the same.
#[derive(Debug)]
struct Always(EvaluationError);

impl Evaluate for Always {
    fn evaluate<'a>(
        &'a self,
        _: &'a BTreeMap<String, String>,
        _: &'a str,
        _: &'a BTreeMap<String, String>,
    ) -> futures::future::BoxFuture<'a, Result<serde_json::Value, EvaluationError>> {
        let error = self.0.clone();
        Box::pin(async move { Err(error) })
    }
}

async fn answer(error: EvaluationError) -> Answer {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let evaluations = Evaluations::new(Arc::new(Always(error)), clock);
    let component = component("a", "one");
    evaluations.ask(&component, config_map("x"));
    evaluations.evaluate_waiting().await;
    clock.sleep(SECOND).await;
    evaluations.ask(&component, config_map("x"))
}

#[tokio::test(start_paused = true)]
async fn only_what_follows_from_the_text_is_a_finding() {
    for error in [
        EvaluationError::Unavailable("no program".to_owned()),
        EvaluationError::TimedOut("40 seconds"),
    ] {
        let text = error.to_string();
        let answer = answer(error).await;
        let (failure, ask_again) = pending(&answer);
        assert_eq!(failure, Some(&*text));
        assert_eq!(ask_again, INITIAL_RETRY.checked_sub(SECOND));
    }
    for error in [
        EvaluationError::Failed("x".repeat(1 << 20)),
        EvaluationError::Exceeded("10 seconds of processor time"),
    ] {
        match answer(error).await {
            Answer::Known(UserConfig::Present { findings, .. }) => {
                assert_eq!(findings.len(), 1);
                assert!(findings[0].1.problem.len() < 1000, "a text is kept in part");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_each_time_is_a_finding_until_the_text_changes() {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let timeout = Always(EvaluationError::TimedOut("40 seconds"));
    let evaluations = Evaluations::new(Arc::new(timeout), clock);
    let component = component("a", "one");
    for attempt in 1..=user_config::MAX_TIMEOUTS {
        let answer = evaluations.ask(&component, config_map("x"));
        assert!(matches!(answer, Answer::Pending { .. }), "{attempt}");
        evaluations.evaluate_waiting().await;
        clock.sleep(MAX_RETRY).await;
    }
    match evaluations.ask(&component, config_map("x")) {
        Answer::Known(UserConfig::Present { findings, .. }) => {
            let [(file, finding)] = &findings[..] else {
                panic!("{findings:?}");
            };
            assert_eq!(file, "browser.jsonnet");
            assert_eq!(finding.problem, "it was stopped after 40 seconds, 3 times");
        }
        other => panic!("{other:?}"),
    }
    assert!(evaluations.take().is_none(), "it is not evaluated again");
    let changed = evaluations.ask(&component, config_map("y"));
    assert_eq!(pending(&changed), (None, None));
}
