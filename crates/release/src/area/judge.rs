//! How releases and streams stand, for `neap status` and `neap explain`.

use jiff::Timestamp;
use neap_kit::explain::{Assessment, Verdict};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    api::{ReleasePayload, annotations, conditions},
    image_stream::api::ImageStream,
    payload::Phase,
    stream::StreamState,
};

/// The conditions that an assessment of a payload covers: most are neither good nor bad by themselves.
const PAYLOAD_CONDITIONS: &[&str] = &[
    conditions::ACCEPTED,
    conditions::CREATED,
    conditions::FAILED,
    conditions::MIRRORED,
    conditions::MIRROR_FAILED,
    conditions::REJECTED,
    conditions::STUCK,
];

fn message<'a>(payload: &'a ReleasePayload, type_: &str) -> &'a str {
    let conditions = payload.status.iter().flat_map(|status| &status.conditions);
    let mut found = conditions.filter(|it| it.type_ == type_);
    found.next().map_or("", |it| it.message.as_str())
}

fn is_stuck(payload: &ReleasePayload) -> bool {
    let mut conditions = payload.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|it| it.type_ == conditions::STUCK && it.status == "True")
}

pub(super) fn payload_summary(object: &Value, _: Timestamp) -> String {
    let Ok(payload) = ReleasePayload::deserialize(object) else {
        return "cannot be decoded".to_owned();
    };
    let phase = Phase::of_payload(&payload);
    let stuck = if is_stuck(&payload) { ", stuck" } else { "" };
    format!("{phase}{stuck}")
}

pub(super) fn payload(object: &Value, _: Timestamp) -> Option<Assessment> {
    let payload = ReleasePayload::deserialize(object).ok()?;
    let name = payload.metadata.name.as_deref().unwrap_or_default();
    let phase = Phase::of_payload(&payload);
    let type_ = match phase {
        Phase::Rejected => conditions::REJECTED,
        Phase::Failed => conditions::FAILED,
        Phase::Pending | Phase::Ready | Phase::Accepted => conditions::ACCEPTED,
    };
    let mut why = vec![format!("{phase}: {}", message(&payload, type_))];
    let mut advice = Vec::new();
    let verdict = match phase {
        Phase::Accepted => Verdict::Healthy,
        Phase::Pending | Phase::Ready if is_stuck(&payload) => {
            why.insert(0, message(&payload, conditions::STUCK).to_owned());
            advice.push(format!("neap release jobs {name}"));
            Verdict::Degraded
        }
        Phase::Pending | Phase::Ready => Verdict::Progressing,
        Phase::Failed => {
            why.push(message(&payload, conditions::REJECTED).to_owned());
            advice.push(format!("neap release retry {name}"));
            Verdict::Degraded
        }
        Phase::Rejected => {
            advice.push(format!("neap release jobs {name}"));
            advice.push(format!("neap release accept {name} --reason TEXT"));
            Verdict::Degraded
        }
    };
    why.extend(phase.blocks().map(str::to_owned));
    why.dedup();
    Some(Assessment {
        verdict,
        why,
        advice,
        covers: PAYLOAD_CONDITIONS,
    })
}

fn state(object: &Value) -> Option<StreamState> {
    let stream = ImageStream::deserialize(object).ok()?;
    let all = stream.metadata.annotations?;
    serde_json::from_str(all.get(annotations::STREAM_STATE)?).ok()
}

pub(super) fn stream_summary(object: &Value, _: Timestamp) -> String {
    if let Some(state) = state(object) {
        state.reason
    } else {
        let tags = object["spec"]["tags"].as_array().map_or(0, Vec::len);
        format!("{tags} tags")
    }
}

pub(super) fn stream(object: &Value, _: Timestamp) -> Option<Assessment> {
    let state = state(object)?;
    let is_broken = matches!(
        state.reason.as_str(),
        "InvalidReleaseDefinition" | "TargetNotFound"
    );
    let verdict = if is_broken || !state.problems.is_empty() {
        Verdict::Degraded
    } else if state.reason == "CreatingRelease" {
        Verdict::Progressing
    } else {
        Verdict::Healthy
    };
    let why = std::iter::once(state.message)
        .chain(state.problems)
        .collect();
    Some(Assessment {
        verdict,
        why,
        advice: Vec::new(),
        covers: &[],
    })
}
