//! Simulated systems outside the cluster.
//!
//! A cloud or a registry does not share the journal of its caller. It keeps a ledger of the calls
//! it received and carried out, and that ledger is judged: a caller that crashed, paused or was
//! replaced must not make the system do anything twice, or too late.

mod service;
mod system;

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::oneshot;

pub use service::ExternalService;
pub(crate) use service::Services;
pub use system::{ExternalSystem, SimulatedSystem};

use crate::{
    fault_injector::{Call, Connection, Restart},
    plan::{Action, Fault, Point, Verb},
    run_state::RunState,
};

/// A call to an external system.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExternalCall {
    /// What to do, in one word, as plans name it.
    pub call: &'static str,
    pub target: String,
    /// The operation; fences are compared within it.
    pub operation: String,
    /// Idempotency key: two calls with the same key take effect once.
    pub key: String,
    /// Of the callers of one operation, a later one has a higher fence.
    pub fence: u64,
}

/// The answer of an external system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The call took effect now.
    Done,
    /// It had taken effect before.
    AlreadyDone,
    /// The system has seen a call with a higher fence.
    StaleFence,
}

/// A call that a system received, and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRow {
    pub call: ExternalCall,
    pub reply: Reply,
}

/// A system and its ledger.
pub(crate) struct Ledger {
    system: Box<dyn ExternalSystem>,
    rows: Vec<LedgerRow>,
}

impl Ledger {
    pub(crate) fn of(system: Box<dyn ExternalSystem>) -> Self {
        Self {
            system,
            rows: Vec::new(),
        }
    }

    fn take(&mut self, external_call: &ExternalCall) -> Reply {
        let reply = self.system.answer(external_call);
        self.rows.push(LedgerRow {
            call: external_call.clone(),
            reply,
        });
        reply
    }

    pub(crate) fn rows(&self) -> Vec<LedgerRow> {
        self.rows.clone()
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ledger").field(&self.rows).finish()
    }
}

/// Why a call failed, or appears to have failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The answer had this status code. The call may have taken effect all the same.
    #[error("the external system answered {}", .0.code)]
    Failed(Fault),
    /// The system has seen a call with a higher fence.
    #[error("a call with a higher fence came first")]
    StaleFence,
}

/// The connection of one process lifetime to the external systems. Cheap to clone.
#[derive(Clone)]
pub struct ExternalClient {
    connection: Arc<Connection>,
    run_state: Arc<RunState>,
}

impl ExternalClient {
    pub(crate) fn new(connection: Arc<Connection>, run_state: Arc<RunState>) -> Self {
        Self {
            connection,
            run_state,
        }
    }

    /// Sends the call. Succeeds if it took effect now or before.
    pub async fn call(&self, external_call: ExternalCall) -> Result<(), CallError> {
        self.connection.wait_until_runnable().await;
        let call = as_request(&external_call);
        self.run_state
            .record_external_call(&self.connection, &call, &external_call);
        let actions = self
            .run_state
            .strike(Point::ExtBefore, self.connection.actor(), &call);
        let slow = actions.iter().find_map(|action| match action {
            Action::Delay(time) => Some(*time),
            _ => None,
        });
        let sent = slow.map(|time| self.send(external_call.clone(), call.clone(), time));
        self.apply(actions.into_iter().filter(|action| !is_delay(action)))
            .await?;
        let reply = match sent {
            Some(sent) => sent.await.unwrap_or(Reply::StaleFence),
            None => self.arrive(&external_call, &call),
        };
        self.connection.wait_until_runnable().await;
        if reply == Reply::StaleFence {
            return Err(CallError::StaleFence);
        }
        let actions = self
            .run_state
            .strike(Point::ExtAfter, self.connection.actor(), &call);
        self.apply(actions.into_iter()).await
    }

    /// Sends the call with this delay. It cannot be recalled: it arrives even if its sender has
    /// died by then.
    fn send(
        &self,
        external_call: ExternalCall,
        call: Call,
        time: Duration,
    ) -> oneshot::Receiver<Reply> {
        let (reply_sender, reply) = oneshot::channel();
        let client = self.clone();
        self.run_state.in_flight.lock().spawn(async move {
            client.run_state.hold(time).await;
            // The sender may no longer wait for it.
            let _ = reply_sender.send(client.arrive(&external_call, &call));
        });
        reply
    }

    fn arrive(&self, external_call: &ExternalCall, call: &Call) -> Reply {
        let reply = self.run_state.ledger.lock().take(external_call);
        let code = match reply {
            Reply::Done | Reply::AlreadyDone => http::StatusCode::OK,
            Reply::StaleFence => http::StatusCode::PRECONDITION_FAILED,
        };
        self.run_state.record_response(&self.connection, call, code);
        reply
    }

    async fn apply(&self, actions: impl Iterator<Item = Action>) -> Result<(), CallError> {
        for action in actions {
            match action {
                Action::Crash => self.connection.crash(Restart::default()),
                Action::Fail(fault) => return Err(CallError::Failed(fault)),
                Action::Delay(time) => self.run_state.hold(time).await,
                Action::Pause(time) => self.connection.pause(time).await,
                // The parser rejects plans with these actions here.
                _ => {}
            }
        }
        // A process that died meanwhile gets no answer.
        self.connection.wait_until_runnable().await;
        Ok(())
    }
}

impl fmt::Debug for ExternalClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Outside").field(&self.connection).finish()
    }
}

fn is_delay(action: &Action) -> bool {
    matches!(action, Action::Delay(_))
}

/// The call in the form in which plans and traces describe requests.
fn as_request(external_call: &ExternalCall) -> Call {
    Call {
        verb: Verb::Call,
        group: String::new(),
        kind: external_call.call.to_owned(),
        namespace: String::new(),
        name: external_call.target.clone(),
        any_age: false,
        after: None,
    }
}
