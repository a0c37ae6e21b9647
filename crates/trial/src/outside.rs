//! Systems outside the cluster, as those under trial meet them.
//!
//! A cloud or a registry has no part in the journal of whoever asks it. What it was asked and what it
//! did is in its own ledger, and that is what is judged: whoever died, hung or was followed by
//! another must not have it do anything twice, or too late.

mod system;

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::oneshot;

pub use system::{Keeper, System};

use crate::{
    plan::{Action, Fault, Point, Verb},
    scene::Scene,
    seam::{Call, Line, Restart},
};

/// Something that is asked of a system outside.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Errand {
    /// What is to be done, in one word: plans call it so.
    pub call: &'static str,
    /// To what.
    pub thing: String,
    /// For which operation; fences are compared within it.
    pub operation: String,
    /// Asked twice with one key, it is done once.
    pub key: String,
    /// Of those who ask for the same operation, who came later has the higher one.
    pub fence: u64,
}

/// What a system made of an errand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// It is done, now.
    Done,
    /// It was done before.
    Already,
    /// Another who came later was here.
    TooLate,
}

/// What a system was asked, and what it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What it was asked.
    pub errand: Errand,
    /// What it did.
    pub reply: Reply,
}

/// A system and its ledger.
pub(crate) struct Ledger {
    system: Box<dyn System>,
    rows: Vec<Row>,
}

impl Ledger {
    pub(crate) fn of(system: Box<dyn System>) -> Self {
        Self {
            system,
            rows: Vec::new(),
        }
    }

    fn take(&mut self, errand: &Errand) -> Reply {
        let reply = self.system.answer(errand);
        self.rows.push(Row {
            errand: errand.clone(),
            reply,
        });
        reply
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        self.rows.clone()
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ledger").field(&self.rows).finish()
    }
}

/// Why an errand came to nothing, or seems to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There was an answer with this code. It may have been done all the same.
    #[error("the answer was {}", .0.code)]
    Failed(Fault),
    /// Another who came later was there.
    #[error("somebody who came later was there")]
    TooLate,
}

/// The connection of one life of an actor to the systems outside. Cheap to copy.
#[derive(Clone)]
pub struct Outside {
    line: Arc<Line>,
    scene: Arc<Scene>,
}

impl Outside {
    pub(crate) fn new(line: Arc<Line>, scene: Arc<Scene>) -> Self {
        Self { line, scene }
    }

    /// Asks for it to be done. Whether it was done now or before is all the same.
    pub async fn ask(&self, errand: Errand) -> Result<(), Refusal> {
        self.line.go_on().await;
        let call = call(&errand);
        self.scene.sent(&self.line, &call, &errand);
        let actions = self
            .scene
            .strike(Point::ExtBefore, self.line.actor(), &call);
        let slow = actions.iter().find_map(|action| match action {
            Action::Delay(time) => Some(*time),
            _ => None,
        });
        let sent = slow.map(|time| self.send(errand.clone(), call.clone(), time));
        self.meet(actions.into_iter().filter(|action| !is_delay(action)))
            .await?;
        let reply = match sent {
            Some(sent) => sent.await.unwrap_or(Reply::TooLate),
            None => self.arrive(&errand, &call),
        };
        self.line.go_on().await;
        if reply == Reply::TooLate {
            return Err(Refusal::TooLate);
        }
        let actions = self.scene.strike(Point::ExtAfter, self.line.actor(), &call);
        self.meet(actions.into_iter()).await
    }

    /// Puts it on a way that takes so long. Nobody can call it back: it arrives even if whoever sent
    /// it is dead by then.
    fn send(&self, errand: Errand, call: Call, time: Duration) -> oneshot::Receiver<Reply> {
        let (tell, told) = oneshot::channel();
        let outside = self.clone();
        self.scene.travelling.lock().spawn(async move {
            outside.scene.hold(time).await;
            // Perhaps nobody waits for it any longer.
            let _ = tell.send(outside.arrive(&errand, &call));
        });
        told
    }

    fn arrive(&self, errand: &Errand, call: &Call) -> Reply {
        let reply = self.scene.ledger.lock().take(errand);
        let code = match reply {
            Reply::Done | Reply::Already => http::StatusCode::OK,
            Reply::TooLate => http::StatusCode::PRECONDITION_FAILED,
        };
        self.scene.answered(&self.line, call, code);
        reply
    }

    async fn meet(&self, actions: impl Iterator<Item = Action>) -> Result<(), Refusal> {
        for action in actions {
            match action {
                Action::Crash => self.line.crash(Restart::default()),
                Action::Fail(fault) => return Err(Refusal::Failed(fault)),
                Action::Delay(time) => self.scene.hold(time).await,
                Action::Pause(time) => self.line.pause(time).await,
                // A plan that asks for these here was refused.
                _ => {}
            }
        }
        // Whoever died meanwhile hears nothing.
        self.line.go_on().await;
        Ok(())
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Outside").field(&self.line).finish()
    }
}

fn is_delay(action: &Action) -> bool {
    matches!(action, Action::Delay(_))
}

/// An errand as plans and traces speak of requests.
fn call(errand: &Errand) -> Call {
    Call {
        verb: Verb::Call,
        group: String::new(),
        kind: errand.call.to_owned(),
        namespace: String::new(),
        name: errand.thing.clone(),
        any_age: false,
        after: None,
    }
}
