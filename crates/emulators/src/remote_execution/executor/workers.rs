//! What workers ask for and report.

use std::time::Duration;

use jiff::Timestamp;
use tonic::Status;

use super::{ExecutionStage, Executor, ExecutorState};
use crate::{
    build_queue::{Platform, PlatformQueueName, SizeClassQueueName, WorkerId},
    remote_execution::messages::{
        CurrentExecution, CurrentWork, DesiredExecution, DesiredState, DesiredWork,
        ExecutionProgress, SHA256, SynchronizeRequest, SynchronizeResponse, TimestampMessage,
    },
};

/// How long a worker without work waits for an answer.
const IDLE_WAIT: Duration = Duration::from_mins(2);
/// How often a worker that waits counts as heard of.
const CONTACT_INTERVAL: Duration = Duration::from_secs(20);
/// How soon a worker with work synchronizes again.
const BUSY_INTERVAL: Duration = Duration::from_secs(10);

/// Properties are in the order of their names and values, each once.
pub(super) fn check_order(platform: &Platform) -> Result<(), Status> {
    let pair = |at: usize| {
        let property = &platform.properties[at];
        (&property.name, &property.value)
    };
    let is_sorted = (1..platform.properties.len()).all(|at| pair(at - 1) < pair(at));
    if is_sorted {
        Ok(())
    } else {
        let message = "Platform properties are not lexicographically sorted";
        Err(Status::invalid_argument(message))
    }
}

impl Executor {
    /// Takes what a worker says, and answers as soon as there is something else for it to do.
    pub(in crate::remote_execution) async fn synchronize(
        &self,
        request: SynchronizeRequest,
    ) -> Result<SynchronizeResponse, Status> {
        let platform = request.platform.unwrap_or_default();
        check_order(&platform)?;
        let queue = SizeClassQueueName {
            platform_queue_name: Some(PlatformQueueName {
                instance_name_prefix: request.instance_name_prefix,
                platform: Some(platform),
            }),
            size_class: request.size_class,
        };
        let id = request.worker_id;
        let work = request.current_state.and_then(|state| state.worker_state);
        let work = work.ok_or_else(|| Status::invalid_argument("the worker has no state"))?;
        let begun = self.clock.uptime();
        let mut changes = self.changes.subscribe();
        if let CurrentWork::Executing(execution) = work
            && self.report(&id, *execution)
        {
            return Ok(self.answer(BUSY_INTERVAL, None));
        }
        loop {
            changes.borrow_and_update();
            if let Some(desired) = self.next_for(&queue, &id, request.prefer_being_idle) {
                return Ok(self.answer(
                    BUSY_INTERVAL,
                    Some(DesiredWork::Executing(Box::new(desired))),
                ));
            }
            let left = IDLE_WAIT.saturating_sub(self.clock.uptime().saturating_sub(begun));
            if left.is_zero() || request.prefer_being_idle {
                return Ok(self.answer(Duration::ZERO, Some(DesiredWork::Idle(()))));
            }
            let wait = left.min(CONTACT_INTERVAL);
            self.clock.within(wait, changes.changed()).await;
            self.forget_silent_workers();
        }
    }

    fn answer(&self, after: Duration, work: Option<DesiredWork>) -> SynchronizeResponse {
        let now = self.clock.now();
        let at = now.checked_add(after).unwrap_or(now);
        SynchronizeResponse {
            next_synchronization_at: Some(TimestampMessage::at(at)),
            desired_state: work.map(|work| DesiredState {
                worker_state: Some(work),
            }),
        }
    }

    /// Takes how far an execution is. Whether the worker shall go on with it.
    fn report(&self, id: &WorkerId, reported: CurrentExecution) -> bool {
        let mut state = self.state.lock();
        let name = self.queue.operation_of(id).unwrap_or_default();
        let Some(execution) = state.executions.get_mut(&name) else {
            return false;
        };
        if Some(&execution.digest) != reported.action_digest.as_ref() {
            return false;
        }
        let now = self.clock.now();
        if let Some(ExecutionProgress::Completed(response)) = reported.execution_state {
            execution.progress = ExecutionStage::Completed(response, now);
            self.queue.finish(id);
            drop(state);
            self.changed();
            return false;
        }
        state.contacts.insert(id.clone(), now);
        true
    }

    /// The execution that a worker has, also if its last answer was lost, or the next of its queue.
    fn next_for(
        &self,
        queue: &SizeClassQueueName,
        id: &WorkerId,
        prefers_idle: bool,
    ) -> Option<DesiredExecution> {
        let mut state = self.state.lock();
        state.contacts.insert(id.clone(), self.clock.now());
        if !self.queue.is_registered(queue, id) {
            self.queue.register(queue, id.clone(), None);
        }
        let name = match self.queue.operation_of(id) {
            Some(name) => name,
            None if prefers_idle => return None,
            None => self.queue.next_operation(id)?,
        };
        let desired = desired(&mut state, &name)?;
        drop(state);
        self.changed();
        Some(desired)
    }
}

fn desired(state: &mut ExecutorState, name: &str) -> Option<DesiredExecution> {
    let execution = state.executions.get_mut(name)?;
    execution.progress = ExecutionStage::Executing;
    Some(DesiredExecution {
        action_digest: Some(execution.digest.clone()),
        action: Some(execution.action.clone()),
        queued_timestamp: Some(TimestampMessage::at(execution.queued_at)),
        instance_name_suffix: execution.suffix.clone(),
        digest_function: SHA256,
        ..DesiredExecution::default()
    })
}

impl TimestampMessage {
    /// A time.
    pub fn at(time: Timestamp) -> Self {
        Self {
            seconds: time.as_second(),
            nanos: time.subsec_nanosecond(),
        }
    }
}
