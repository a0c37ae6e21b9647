//! The controller that runs the operations of the API.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    JournalError, Operation, OperationObjects, RunState, Runner, Session, StepHandler, StepList,
    status_mapping,
};
use crate::{
    context::Context,
    controller::{self, ControllerOptions},
    key::Key,
    lease::Leadership,
    manager::Component,
    watch::{Cache, WatchesStopped},
};

/// The timeout of one reconcile. Steps have timeouts of their own; this one bounds an operation that
/// runs many steps without waiting.
const RECONCILE_TIMEOUT: Duration = Duration::from_hours(24);

/// Runs every operation of the kind of `step_list`, while this process leads. `handler` returns the
/// handler of the steps of an operation.
pub fn component<W: StepHandler + 'static>(
    context: &Context,
    step_list: StepList,
    handler: impl Fn(&Operation) -> W + Send + Sync + 'static,
) -> Result<Component, WatchesStopped> {
    let operations: Cache<Operation> = context.cache()?;
    let name = step_list.kind;
    let options = ControllerOptions {
        timeout: RECONCILE_TIMEOUT,
        ..ControllerOptions::new(name)
    };
    let controller = context.controller(options);
    let enqueuer = controller.enqueuer();
    let interrupts = Arc::new(Interrupts::default());
    let (changed, interrupting) = (operations.clone(), interrupts.clone());
    operations.subscribe(move |change| {
        let key = change.key();
        if changed.get(&key).is_some_and(|it| it.spec.cancel) {
            interrupting.interrupt(&key);
        }
        enqueuer.enqueue(key);
    });
    let reconciler = Arc::new(OperationReconciler {
        operations: operations.clone(),
        step_list,
        handler: Box::new(handler),
        interrupts,
        sessions: Mutex::default(),
        context: context.clone(),
    });
    let synced = async move { operations.synced().await };
    Ok(Component::new(name, move |stop| async move {
        let stopping = stop.clone();
        let reconcile = move |key| {
            let (reconciler, stop) = (reconciler.clone(), stopping.child_token());
            async move { reconciler.reconcile(key, stop).await }
        };
        controller.run_when(synced, reconcile, stop).await;
    }))
}

struct OperationReconciler<W> {
    operations: Cache<Operation>,
    step_list: StepList,
    handler: Box<dyn Fn(&Operation) -> W + Send + Sync>,
    interrupts: Arc<Interrupts>,
    /// By uid, so that an operation of the same name starts anew.
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    context: Context,
}

/// The operations that run at this moment, to interrupt those that are cancelled.
#[derive(Default)]
struct Interrupts(Mutex<HashMap<Key, CancellationToken>>);

impl Interrupts {
    fn start(&self, key: &Key) -> CancellationToken {
        let token = CancellationToken::new();
        self.0.lock().insert(key.clone(), token.clone());
        token
    }

    fn interrupt(&self, key: &Key) {
        if let Some(token) = self.0.lock().get(key) {
            token.cancel();
        }
    }

    fn end(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

fn uid(operation: &Operation) -> String {
    operation.metadata.uid.clone().unwrap_or_default()
}

impl<W: StepHandler> OperationReconciler<W> {
    /// What ran of this operation in this process.
    fn session(&self, operation: &Operation) -> Arc<Session> {
        let mut sessions = self.sessions.lock();
        sessions.entry(uid(operation)).or_default().clone()
    }

    async fn reconcile(
        &self,
        key: Key,
        stop: CancellationToken,
    ) -> Result<controller::Outcome, JournalError> {
        let Some(operation) = self.operations.get(&key) else {
            return Ok(controller::Outcome::Gone);
        };
        let is_deleted = operation.metadata.deletion_timestamp.is_some();
        let is_finished = status_mapping::timeline(&operation).is_finished();
        if is_deleted || is_finished || operation.spec.work != self.step_list.kind {
            return Ok(controller::Outcome::Gone);
        }
        let Context { clock, .. } = self.context;
        let id = key.to_string();
        let journal = OperationObjects::new(self.context.writer(self.step_list.kind), clock);
        let handler = (self.handler)(&operation);
        let session = self.session(&operation);
        let runner = Runner::new(&id, &self.step_list, &journal, &handler, clock)
            .in_session(&session)
            .interrupted_by(self.interrupts.start(&key))
            .with_telemetry(self.context.watches.process().telemetry());
        // A step that waits does not occupy a reconcile: the key is requeued.
        let run_state = tokio::select! {
            run_state = runner.run_until_waiting(&stop) => run_state,
            // The next leader continues with the step; two processes must not run it at once.
            () = lost(self.context.leadership.clone()) => Ok(RunState::Stopped),
        };
        self.interrupts.end(&key);
        if matches!(run_state, Ok(RunState::Finished(_))) {
            self.sessions.lock().remove(&uid(&operation));
        }
        match run_state {
            Ok(RunState::Waiting(time)) => Ok(controller::Outcome::RequeueAfter(time)),
            Ok(RunState::Stopped) => Ok(controller::Outcome::RequeueAfter(Duration::ZERO)),
            Ok(RunState::Finished(_)) | Err(JournalError::Missing) => Ok(controller::Outcome::Gone),
            Err(error) => Err(error),
        }
    }
}

async fn lost(mut leadership: Leadership) {
    if let Ok(term) = leadership.check() {
        leadership.lost(term).await;
    }
}
