//! Operations.

use jiff::Timestamp;
use serde_json::Value;

use super::Assessment;
use crate::{
    explain::{Verdict, text},
    operation::{Operation, Phase},
};

pub(super) fn assess(object: &Value, now: Timestamp) -> Option<Assessment> {
    let operation: Operation = serde_json::from_value(object.clone()).ok()?;
    let status = operation.status.clone().unwrap_or_default();
    let verdict = match status.phase {
        Phase::Pending | Phase::Running => Verdict::Progressing,
        Phase::Succeeded => Verdict::Healthy,
        Phase::Failed | Phase::Cancelled => Verdict::Degraded,
    };
    let mut assessment = Assessment::new(&["Ready", "Reconciling", "Stalled"]);
    if let Some(step) = status.step.filter(|_| verdict == Verdict::Progressing) {
        assessment.add_reason(verdict, format!("its current step is {step}"));
    }
    assessment.add_reason(verdict, text::operation(&operation, now));
    Some(assessment)
}
