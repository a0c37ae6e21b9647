//! Computes a verdict again from what is recorded about it.

use neap_kit::status::{ConditionStatus, ConditionUpdate};

use crate::{
    api::{ReleasePayload, conditions},
    payload::{
        Phase,
        decide::{accepted, job_state, rejected, verdict::VerdictFacts},
    },
};

/// A verdict that was computed again.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The phase in the status.
    pub recorded: Phase,
    /// The phase that the recorded facts mean.
    pub computed: Phase,
    /// Why, in words.
    pub explanation: String,
    /// Where the status and the facts differ.
    pub differences: Vec<String>,
}

impl Replay {
    /// Whether the verdict follows from the facts.
    pub fn holds(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Computes the verdict about `payload` again, from the results of its runs up.
pub fn replay(payload: &ReleasePayload) -> Replay {
    let status = payload.status.clone().unwrap_or_default();
    let recorded = Phase::of(&status.conditions);
    let mut differences = Vec::new();
    let mut computed = status.clone();
    let record = status.verdict.clone().unwrap_or_default();
    for job in computed
        .blocking_job_results
        .iter_mut()
        .chain(&mut computed.informing_job_results)
        .chain(&mut computed.upgrade_job_results)
    {
        let extra = record.extra_attempts.get(&job.name).copied().unwrap_or(0);
        let state = job_state(job, extra);
        if state != job.state {
            let name = &job.name;
            differences.push(format!(
                "job {name}: recorded {:?}, its runs mean {state:?}",
                job.state
            ));
        }
        job.state = state;
    }
    let facts = VerdictFacts::gather(payload, &computed);
    for update in [accepted(&facts), rejected(&facts)] {
        compare(&status.conditions, &update, &mut differences);
        set(&mut computed.conditions, update);
    }
    let phase = Phase::of(&computed.conditions);
    match &status.verdict {
        None => differences
            .push("no facts are recorded: another controller wrote the status".to_owned()),
        Some(record) if record.facts != facts.record(phase).facts => {
            differences.push("the recorded facts were changed after the verdict".to_owned());
        }
        Some(_) => {}
    }
    let explanation = accepted(&facts).message;
    Replay {
        recorded,
        computed: phase,
        explanation,
        differences,
    }
}

type Conditions = Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition>;

fn compare(recorded: &Conditions, update: &ConditionUpdate, differences: &mut Vec<String>) {
    let found = recorded.iter().find(|it| it.type_ == update.type_);
    let status = found.map_or(ConditionStatus::Unknown.as_str(), |it| it.status.as_str());
    if status != update.status.as_str() {
        let type_ = update.type_;
        let computed = update.status.as_str();
        differences.push(format!(
            "{type_}: recorded {status}, the facts mean {computed}"
        ));
    }
}

fn set(conditions: &mut Conditions, update: ConditionUpdate) {
    debug_assert!([conditions::ACCEPTED, conditions::REJECTED].contains(&update.type_));
    if let Some(condition) = conditions.iter_mut().find(|it| it.type_ == update.type_) {
        update.status.as_str().clone_into(&mut condition.status);
    } else {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let updated = neap_kit::status::updated_conditions(conditions, &[update], None, now);
        *conditions = updated;
    }
}
