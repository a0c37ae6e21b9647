//! Operations in a server, by the definition that users install.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, CustomResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

use super::*;
use crate::{
    apply::{self, Hand, Witness, Write},
    key::Key,
    lease::Leadership,
    server::Server,
};

struct Bench {
    server: Server,
    id: String,
    clock: Clock,
    hand: Hand,
    made: Arc<Made>,
}

/// Counts objects that were really made.
#[derive(Debug, Default)]
struct Made(Mutex<Vec<String>>);

impl Witness for Made {
    fn saw<'a>(
        &'a self,
        write: &'a Write,
        outcome: Result<(), &'a apply::Error>,
    ) -> futures::future::BoxFuture<'a, ()> {
        if outcome.is_ok() && write.verb == "create" {
            self.0.lock().push(write.key.name().to_owned());
        }
        Box::pin(async {})
    }
}

impl Bench {
    async fn new() -> Self {
        let server = Server::open().await;
        server.install(&Operation::crd()).await;
        let client = server.client.clone();
        let (clock, made) = (virtual_clock(), Arc::new(Made::default()));
        let hand = Hand::new(client, "test", Leadership::alone(clock), clock);
        let target = Target {
            kind: "Cup".into(),
            name: "blue".into(),
            ..Target::default()
        };
        let key = Key::new(server.namespace(), "tea");
        let tea = Operation::planned(&key, &script(), target);
        let id = Objects::new(hand.clone(), clock).add(&tea).await.unwrap();
        assert_eq!(id, key.to_string());
        Self {
            server,
            id,
            clock,
            hand: hand.witnessed_by(made.clone()),
            made,
        }
    }

    fn journal(&self) -> Objects {
        Objects::new(self.hand.clone(), self.clock)
    }

    fn operations(&self) -> Api<Operation> {
        Api::default_namespaced(self.server.client.clone())
    }

    async fn status(&self) -> OperationStatus {
        let operation = self.operations().get("tea").await.unwrap();
        operation.status.unwrap_or_default()
    }

    /// The status once it tells of a wait.
    async fn waiting(&self) -> OperationStatus {
        loop {
            let status = self.status().await;
            let message = status.message.as_deref().unwrap_or_default();
            if message.contains(" waits ") {
                return status;
            }
            self.clock.sleep(SECOND / 20).await;
        }
    }

    fn runner<'a, J, W>(
        &'a self,
        script: &'a Script,
        journal: &'a J,
        work: &'a W,
    ) -> Runner<'a, J, W> {
        let (id, clock) = (&*self.id, self.clock);
        Runner {
            id,
            script,
            journal,
            work,
            clock,
        }
    }
}

/// Each step makes an object of its name.
struct Making<'a>(&'a Bench);

impl Work for Making<'_> {
    async fn attempt(&self, task: &Task) -> Result<Progress, Failure> {
        let (namespace, name) = (self.0.server.namespace(), &task.step);
        let metadata = json!({"namespace": namespace, "name": name, "labels": {"of": "tea"}});
        let map: ConfigMap = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        match self.0.hand.create(&map).await {
            Ok(_) => Ok(Progress::Done),
            Err(error) => Err(Failure {
                cause: Cause::new(error.to_string()),
                may_pass: true,
            }),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_tells_its_story_in_its_status() {
    let bench = Bench::new().await;
    let (script, journal) = (script(), bench.journal());
    let work = Told::to(
        bench.clock,
        &[("boil", Answer::NotYet), ("pour", Answer::Hopeless)],
    );
    let runner = bench.runner(&script, &journal, &work);
    let looking = async {
        let waiting = bench.clock.within(30 * SECOND, bench.waiting()).await;
        let status = waiting.unwrap();
        assert_eq!(
            (status.phase, &*status.step.unwrap()),
            (Phase::Running, "boil")
        );
        assert_eq!(status.progress.as_deref(), Some("1/3"));
        assert_eq!(
            status.message.as_deref(),
            Some("the step boil waits after attempt 1: not hot")
        );
    };
    let stop = CancellationToken::new();
    let (ended, ()) = tokio::join!(runner.run(&stop), looking);
    assert_eq!(ended.unwrap(), Some(failed("pour", "no water")));
    let status = bench.status().await;
    assert_eq!(
        (status.phase, status.progress.as_deref()),
        (Phase::Failed, Some("2/3"))
    );
    assert_eq!(
        status.message.as_deref(),
        Some("the step pour failed: no water")
    );
    let attempts: Vec<_> = status
        .steps
        .iter()
        .map(|step| (&*step.name, step.attempts))
        .collect();
    assert_eq!(attempts, [("fill", 1), ("boil", 2), ("pour", 1)]);
    assert!(status.steps.iter().all(|step| step.ended.is_some()));
    let stalled = status
        .conditions
        .iter()
        .find(|one| one.type_ == "Stalled")
        .unwrap();
    assert_eq!((&*stalled.status, &*stalled.reason), ("True", "Failed"));
    assert_eq!(status.observed_generation, Some(1));
    let again = runner.run(&stop).await.unwrap();
    assert_eq!(
        again,
        Some(failed("pour", "no water")),
        "what has ended stays"
    );
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_is_gone_between_any_two_writes_is_followed_by_another() {
    let script = script();
    for crash in 0..7 {
        for after in [false, true] {
            let bench = Bench::new().await;
            let (inner, work) = (bench.journal(), Making(&bench));
            let journal = Crashing::at(crash, after, &inner);
            let stop = CancellationToken::new();
            let first = bench.runner(&script, &journal, &work);
            journal.breaks_off(first.run(&stop)).await;
            let fresh = bench.journal();
            let second = bench.runner(&script, &fresh, &work);
            assert_eq!(second.run(&stop).await.unwrap(), Some(Outcome::Succeeded));
            assert_eq!(*bench.made.0.lock(), ["fill", "boil", "pour"], "each once");
            let maps: Api<ConfigMap> = Api::default_namespaced(bench.server.client.clone());
            let all = maps
                .list(&ListParams::default().labels("of=tea"))
                .await
                .unwrap();
            assert_eq!(all.items.len(), 3);
            assert_eq!(bench.status().await.progress.as_deref(), Some("3/3"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_field_of_the_spec_cancels_it() {
    let bench = Bench::new().await;
    let (script, journal) = (script(), bench.journal());
    let work = Told::to(bench.clock, &vec![("boil", Answer::NotYet); 9]);
    let runner = bench.runner(&script, &journal, &work);
    let cancel = async {
        bench.clock.sleep(SECOND * 5 / 2).await;
        let patch = json!({"spec": {"cancel": true, "cancelReason": "no longer thirsty"}});
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = bench.operations().patch("tea", &parameters, &patch).await;
        patched.unwrap();
    };
    let stop = CancellationToken::new();
    let (ended, ()) = tokio::join!(runner.run(&stop), cancel);
    let cause = Cause {
        code: Some("NT-KIT-005".into()),
        message: "no longer thirsty".into(),
    };
    let step = Some("boil".to_owned());
    assert_eq!(ended.unwrap(), Some(Outcome::Cancelled { step, cause }));
    let status = bench.status().await;
    assert_eq!(status.phase, Phase::Cancelled);
    assert!(!work.log.lock().iter().any(|line| line.ends_with("pour")));
}

#[tokio::test(start_paused = true)]
async fn two_runners_do_not_overwrite_each_other() {
    let bench = Bench::new().await;
    let (one, other) = (bench.journal(), bench.journal());
    let Kept {
        mut timeline,
        version: seen,
        identity,
    } = one.load(&bench.id).await.unwrap();
    let same = other.load(&bench.id).await.unwrap();
    assert_eq!(same.identity, identity);
    let uid = bench.operations().get("tea").await.unwrap().metadata.uid;
    assert_eq!(Some(identity), uid, "one made anew is another");
    timeline.begin(0, &script().steps[0], bench.clock.now());
    one.save(&bench.id, &timeline, &seen).await.unwrap();
    let refused = other
        .save(&bench.id, &Timeline::default(), &same.version)
        .await;
    assert!(
        matches!(refused, Err(JournalError::Conflict)),
        "{refused:?}"
    );
    assert_eq!(other.load(&bench.id).await.unwrap().timeline, timeline);
    for missing in ["default/coffee", "coffee"] {
        let missing = one.load(missing).await;
        assert!(matches!(missing, Err(JournalError::Missing)), "{missing:?}");
    }
}

#[test]
fn the_definition_is_as_users_know_it() {
    let text = serde_saphyr::to_string(&Operation::crd()).unwrap();
    insta::assert_snapshot!(text);
}
