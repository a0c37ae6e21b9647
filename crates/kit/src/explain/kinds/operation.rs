//! Operations.

use jiff::Timestamp;
use serde_json::Value;

use super::Judgement;
use crate::{
    explain::{Verdict, words},
    operation::{Operation, Phase},
};

pub(super) fn judge(object: &Value, now: Timestamp) -> Option<Judgement> {
    let operation: Operation = serde_json::from_value(object.clone()).ok()?;
    let status = operation.status.clone().unwrap_or_default();
    let verdict = match status.phase {
        Phase::Pending | Phase::Running => Verdict::OnItsWay,
        Phase::Succeeded => Verdict::Well,
        Phase::Failed | Phase::Cancelled => Verdict::Troubled,
    };
    let mut judgement = Judgement::new(&["Ready", "Reconciling", "Stalled"]);
    if let Some(step) = status.step.filter(|_| verdict == Verdict::OnItsWay) {
        judgement.say(verdict, format!("it is at its step {step}"));
    }
    judgement.say(verdict, words::operation(&operation, now));
    Some(judgement)
}
