//! Operations on a server, with the definition that users install.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, CustomResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

use super::*;
use crate::{
    apply::{self, Write, WriteObserver, Writer},
    key::Key,
    lease::Leadership,
    server::Server,
};

struct OperationBench {
    server: Server,
    id: String,
    clock: Clock,
    writer: Writer,
    created: Arc<CreatedObjects>,
}

/// Records the objects that were created.
#[derive(Debug, Default)]
struct CreatedObjects(Mutex<Vec<String>>);

impl WriteObserver for CreatedObjects {
    fn on_write<'a>(
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

impl OperationBench {
    async fn new() -> Self {
        let server = Server::open().await;
        server.install(&Operation::crd()).await;
        let client = server.client.clone();
        let (clock, created) = (virtual_clock(), Arc::new(CreatedObjects::default()));
        let writer = Writer::new(client, "test", Leadership::without_election(clock), clock);
        let target = Target {
            kind: "Cup".into(),
            name: "blue".into(),
            ..Target::default()
        };
        let key = Key::new(server.namespace(), "tea");
        let tea = Operation::planned(&key, &step_list(), target);
        let id = OperationObjects::new(writer.clone(), clock)
            .add(&tea)
            .await
            .unwrap();
        assert_eq!(id, key.to_string());
        Self {
            server,
            id,
            clock,
            writer: writer.with_write_observer(created.clone()),
            created,
        }
    }

    fn journal(&self) -> OperationObjects {
        OperationObjects::new(self.writer.clone(), self.clock)
    }

    fn operations(&self) -> Api<Operation> {
        Api::default_namespaced(self.server.client.clone())
    }

    async fn status(&self) -> OperationStatus {
        let operation = self.operations().get("tea").await.unwrap();
        operation.status.unwrap_or_default()
    }

    /// Waits until a step waits, and returns the status.
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

    fn runner<'a, J: Journal, W: StepHandler>(
        &'a self,
        step_list: &'a StepList,
        journal: &'a J,
        handler: &'a W,
    ) -> Runner<'a, J, W> {
        Runner::new(&self.id, step_list, journal, handler, self.clock)
    }
}

/// A handler whose steps each create an object of their name.
struct CreatingHandler<'a>(&'a OperationBench);

impl StepHandler for CreatingHandler<'_> {
    async fn attempt(&self, attempt: &StepAttempt) -> Result<Progress, Failure> {
        let (namespace, name) = (self.0.server.namespace(), &attempt.step);
        let metadata = json!({"namespace": namespace, "name": name, "labels": {"of": "tea"}});
        let map: ConfigMap = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        match self.0.writer.create(&map).await {
            Ok(_) => Ok(Progress::Done),
            Err(error) => Err(Failure {
                cause: Cause::new(error.to_string()),
                retryable: true,
            }),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_status_shows_the_progress_of_an_operation() {
    let bench = OperationBench::new().await;
    let (step_list, journal) = (step_list(), bench.journal());
    let handler = ScriptedHandler::new(
        bench.clock,
        &[
            ("boil", ScriptedAnswer::NotYet),
            ("pour", ScriptedAnswer::FailedPermanently),
        ],
    );
    let runner = bench.runner(&step_list, &journal, &handler);
    let script = async {
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
    let (ended, ()) = tokio::join!(runner.run(&stop), script);
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
    assert_eq!(attempts, [("fill", 1), ("boil", 1), ("pour", 1)]);
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
        "a finished operation does not change"
    );
}

#[tokio::test(start_paused = true)]
async fn another_runner_continues_after_a_crash_at_any_write() {
    let step_list = step_list();
    for crash in 0..7 {
        for after in [false, true] {
            let bench = OperationBench::new().await;
            let (inner, handler) = (bench.journal(), CreatingHandler(&bench));
            let journal = CrashingJournal::at(crash, after, &inner);
            let stop = CancellationToken::new();
            let first = bench.runner(&step_list, &journal, &handler);
            journal.run_until_crash(first.run(&stop)).await;
            let fresh = bench.journal();
            let second = bench.runner(&step_list, &fresh, &handler);
            assert_eq!(
                second.run(&stop).await.unwrap(),
                Some(OperationOutcome::Succeeded)
            );
            assert_eq!(
                *bench.created.0.lock(),
                ["fill", "boil", "pour"],
                "each once"
            );
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
async fn setting_cancel_in_the_spec_cancels_the_operation() {
    let bench = OperationBench::new().await;
    let (step_list, journal) = (step_list(), bench.journal());
    let handler = ScriptedHandler::new(bench.clock, &vec![("boil", ScriptedAnswer::NotYet); 9]);
    let runner = bench.runner(&step_list, &journal, &handler);
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
    assert_eq!(
        ended.unwrap(),
        Some(OperationOutcome::Cancelled { step, cause })
    );
    let status = bench.status().await;
    assert_eq!(status.phase, Phase::Cancelled);
    assert!(!handler.log.lock().iter().any(|line| line.ends_with("pour")));
}

#[tokio::test(start_paused = true)]
async fn two_runners_do_not_overwrite_each_others_timeline() {
    let bench = OperationBench::new().await;
    let (one, other) = (bench.journal(), bench.journal());
    let StoredTimeline {
        mut timeline,
        version: seen,
        identity,
    } = one.load(&bench.id).await.unwrap();
    let same = other.load(&bench.id).await.unwrap();
    assert_eq!(same.identity, identity);
    let uid = bench.operations().get("tea").await.unwrap().metadata.uid;
    assert_eq!(Some(identity), uid, "a new operation has a new identity");
    timeline.begin(&step_list().steps[0], 0, bench.clock.now());
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
fn the_custom_resource_definition_matches_the_snapshot() {
    let text = serde_saphyr::to_string(&Operation::crd()).unwrap();
    insta::assert_snapshot!(text);
}
