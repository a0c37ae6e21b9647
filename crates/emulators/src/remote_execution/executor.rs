//! Executions: queued, given to workers, and reported to clients.

mod workers;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{Stream, stream};
use jiff::{SignedDuration, Timestamp};
use neap_kit::clock::Clock;
use parking_lot::Mutex;
use tokio::sync::watch;
use tonic::{Code, Status};

use super::messages::{
    ActionResult, AnyMessage, BlobDigest, BuildAction, ExecuteOperationMetadata, ExecuteResponse,
    LongRunningOperation, OperationResult, RpcStatus, SHA256, stage,
};
use crate::build_queue::{BuildQueue, SizeClassQueueName, WorkerId};

/// How long a worker is known after it has synchronized.
const WORKER_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);
/// How long an execution is known after it has ended.
const COMPLETED_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);
/// How often a client is told about an execution that does not change.
const UPDATE_INTERVAL: Duration = Duration::from_mins(1);
const METADATA: &str = "build.bazel.remote.execution.v2.ExecuteOperationMetadata";
const RESPONSE: &str = "build.bazel.remote.execution.v2.ExecuteResponse";

/// The scheduler.
#[derive(Debug)]
pub(super) struct Executor {
    clock: Clock,
    queue: Arc<BuildQueue>,
    state: Mutex<ExecutorState>,
    /// Counts changes, for those that wait for one.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct ExecutorState {
    executions: BTreeMap<String, Execution>,
    /// When each worker was heard of last.
    contacts: BTreeMap<WorkerId, Timestamp>,
    count: u64,
}

#[derive(Debug, Clone)]
struct Execution {
    digest: BlobDigest,
    action: BuildAction,
    instance: String,
    /// The part of the instance name that the queue does not have.
    suffix: String,
    queued_at: Timestamp,
    progress: ExecutionStage,
}

#[derive(Debug, Clone)]
enum ExecutionStage {
    Queued,
    Executing,
    Completed(Box<ExecuteResponse>, Timestamp),
}

impl ExecutionStage {
    fn number(&self) -> i32 {
        match self {
            Self::Queued => stage::QUEUED,
            Self::Executing => stage::EXECUTING,
            Self::Completed(..) => stage::COMPLETED,
        }
    }
}

/// What a client asks for.
pub(super) struct NewExecution {
    pub(super) instance: String,
    pub(super) digest: BlobDigest,
    pub(super) action: BuildAction,
    /// The result that is known already.
    pub(super) cached: Option<ActionResult>,
}

impl Executor {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            queue: Arc::default(),
            state: Mutex::default(),
            changes: watch::Sender::default(),
        }
    }

    pub(super) fn queue(&self) -> &Arc<BuildQueue> {
        &self.queue
    }

    /// Lets all that wait look again.
    pub(super) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    pub(super) fn restart(&self) {
        let mut state = self.state.lock();
        let count = state.count;
        // Names are never used again.
        *state = ExecutorState {
            count,
            ..ExecutorState::default()
        };
        drop(state);
        self.queue.restart();
        self.changed();
    }

    /// Begins an execution, or joins one of the same action. Returns its name.
    pub(super) fn begin(&self, new: NewExecution) -> Result<String, Status> {
        let now = self.clock.now();
        self.forget_silent_workers();
        let mut state = self.state.lock();
        if let Some(name) = running(&state, &new) {
            return Ok(name);
        }
        let (progress, queue) = if let Some(result) = new.cached {
            let response = ExecuteResponse {
                result: Some(result),
                cached_result: true,
                ..ExecuteResponse::default()
            };
            (ExecutionStage::Completed(Box::new(response), now), None)
        } else {
            let found = self.queue_of(&new.instance, &new.action)?;
            (ExecutionStage::Queued, Some(found))
        };
        state.count += 1;
        let name = format!("execution-{}", state.count);
        let suffix = match &queue {
            Some(queue) => suffix_of(&new.instance, queue),
            None => String::new(),
        };
        let execution = Execution {
            digest: new.digest,
            action: new.action,
            instance: new.instance,
            suffix,
            queued_at: now,
            progress,
        };
        state.executions.insert(name.clone(), execution);
        if let Some(queue) = queue {
            self.queue.enqueue(&queue, &name);
        }
        drop(state);
        self.changed();
        Ok(name)
    }

    /// The queue of workers for an action.
    fn queue_of(&self, instance: &str, action: &BuildAction) -> Result<SizeClassQueueName, Status> {
        let platform = action.platform.clone().unwrap_or_default();
        workers::check_order(&platform)?;
        self.queue.find(instance, &platform).ok_or_else(|| {
            let shown: Vec<_> = platform
                .properties
                .iter()
                .map(|it| format!("{}={}", it.name, it.value))
                .collect();
            Status::failed_precondition(format!(
                "No workers exist for instance name prefix {instance:?} platform {{{}}}",
                shown.join(", ")
            ))
        })
    }

    /// Ends the executions of workers that are silent, and forgets what has ended long ago.
    pub(super) fn forget_silent_workers(&self) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let silent: Vec<_> = state
            .contacts
            .iter()
            .filter(|(_, at)| now.duration_since(**at) > WORKER_TIMEOUT)
            .map(|(id, _)| id.clone())
            .collect();
        for id in &silent {
            self.lose_worker(&mut state, id);
        }
        state.executions.retain(|_, it| match &it.progress {
            ExecutionStage::Completed(_, at) => now.duration_since(*at) <= COMPLETED_TIMEOUT,
            _ => true,
        });
        drop(state);
        if !silent.is_empty() {
            self.changed();
        }
    }

    pub(super) fn remove_worker(&self, id: &WorkerId) {
        self.lose_worker(&mut self.state.lock(), id);
        self.changed();
    }

    fn lose_worker(&self, state: &mut ExecutorState, id: &WorkerId) {
        state.contacts.remove(id);
        let name = self.queue.operation_of(id);
        self.queue.remove(id);
        let Some(execution) = name.and_then(|name| state.executions.get_mut(&name)) else {
            return;
        };
        let status = RpcStatus {
            code: Code::Unavailable.into(),
            message: format!("Worker {id:?} disappeared while operation was executing"),
            details: Vec::new(),
        };
        let response = ExecuteResponse {
            status: Some(status),
            ..ExecuteResponse::default()
        };
        execution.progress = ExecutionStage::Completed(Box::new(response), self.clock.now());
    }

    /// The states of an execution until it has ended.
    pub(super) fn updates(
        self: Arc<Self>,
        name: String,
    ) -> impl Stream<Item = Result<LongRunningOperation, Status>> + Send {
        let changes = self.changes.subscribe();
        let follower = Some(Follower {
            executor: self,
            changes,
            name,
            last: None,
        });
        stream::unfold(follower, |follower| async move {
            let mut follower = follower?;
            let update = follower.next().await;
            let is_over = update.as_ref().map_or(true, |it| it.done);
            Some((update, (!is_over).then_some(follower)))
        })
    }

    fn operation(&self, name: &str) -> Option<(i32, LongRunningOperation)> {
        let state = self.state.lock();
        let execution = state.executions.get(name)?;
        let number = execution.progress.number();
        let metadata = ExecuteOperationMetadata {
            stage: number,
            action_digest: Some(execution.digest.clone()),
            digest_function: SHA256,
            ..ExecuteOperationMetadata::default()
        };
        let response = match &execution.progress {
            ExecutionStage::Completed(response, _) => Some(AnyMessage::pack(RESPONSE, &**response)),
            _ => None,
        };
        let operation = LongRunningOperation {
            name: name.to_owned(),
            metadata: Some(AnyMessage::pack(METADATA, &metadata)),
            done: response.is_some(),
            result: response.map(OperationResult::Response),
        };
        Some((number, operation))
    }
}

/// A client that follows an execution.
struct Follower {
    executor: Arc<Executor>,
    changes: watch::Receiver<u64>,
    name: String,
    last: Option<i32>,
}

impl Follower {
    /// The next state; the same again after a while without a change.
    async fn next(&mut self) -> Result<LongRunningOperation, Status> {
        let mut is_due = false;
        loop {
            self.changes.borrow_and_update();
            let Some((number, operation)) = self.executor.operation(&self.name) else {
                let message = format!("the execution {:?} is not known", self.name);
                return Err(match self.last {
                    None => Status::not_found(message),
                    Some(_) => Status::unavailable(message),
                });
            };
            if is_due || self.last != Some(number) {
                self.last = Some(number);
                return Ok(operation);
            }
            let clock = self.executor.clock;
            let change = clock.within(UPDATE_INTERVAL, self.changes.changed()).await;
            is_due = change.is_none();
            self.executor.forget_silent_workers();
        }
    }
}

impl LongRunningOperation {
    /// The stage of the execution.
    pub fn stage(&self) -> Option<i32> {
        let metadata = self.metadata.as_ref()?;
        let metadata = metadata.unpack::<ExecuteOperationMetadata>(METADATA)?;
        Some(metadata.stage)
    }

    /// How the execution ended.
    pub fn response(&self) -> Option<ExecuteResponse> {
        match self.result.as_ref()? {
            OperationResult::Response(response) => response.unpack(RESPONSE),
            OperationResult::Error(_) => None,
        }
    }
}

/// An execution of the same action that has not ended.
fn running(state: &ExecutorState, new: &NewExecution) -> Option<String> {
    if new.action.do_not_cache || new.cached.is_some() {
        return None;
    }
    let mut executions = state.executions.iter();
    let (name, _) = executions.find(|(_, it)| {
        it.digest == new.digest
            && it.instance == new.instance
            && !matches!(it.progress, ExecutionStage::Completed(..))
    })?;
    Some(name.clone())
}

/// What the name of the instance has beyond the prefix of the queue.
fn suffix_of(instance: &str, queue: &SizeClassQueueName) -> String {
    let name = queue.platform_queue_name.as_ref();
    let prefix = name.map_or("", |it| it.instance_name_prefix.as_str());
    let suffix = instance.strip_prefix(prefix).unwrap_or(instance);
    suffix.trim_start_matches('/').to_owned()
}
