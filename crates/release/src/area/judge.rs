//! How releases and streams stand, for `neap status` and `neap explain`.

use jiff::Timestamp;
use neap_kit::explain::{Assessment, Verdict};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    api::{ReleasePayload, annotations, conditions},
    image_stream::api::{ImageStream, NamedTagEventList},
    payload::{Phase, facts::skipped_jobs},
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

/// Failed imports that are named, at most: a stream may have thousands of tags.
const SHOWN_IMPORTS: usize = 5;

fn message<'a>(payload: &'a ReleasePayload, type_: &str) -> &'a str {
    let conditions = payload.status.iter().flat_map(|status| &status.conditions);
    let mut found = conditions.filter(|it| it.type_ == type_);
    found.next().map_or("", |it| it.message.as_str())
}

fn is_stuck(payload: &ReleasePayload) -> bool {
    let mut conditions = payload.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|it| it.type_ == conditions::STUCK && it.status == "True")
}

/// Whether nothing new is known of its runs.
fn is_unproved(payload: &ReleasePayload) -> bool {
    let record = payload.status.as_ref().and_then(|it| it.verdict.as_ref());
    record.is_some_and(|record| !record.unproved.is_empty())
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
    let name = command_target(&payload);
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
        Phase::Pending | Phase::Ready if is_unproved(&payload) => {
            advice.push(format!("neap release accept {name} --reason TEXT"));
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
    let skipped = skipped_jobs(&payload).into_iter();
    why.extend(skipped.map(|(job, cause)| format!("job {job} was left out at the cut: {cause}")));
    why.extend(phase.blocks().map(str::to_owned));
    why.dedup();
    Some(Assessment {
        verdict,
        why,
        advice,
        covers: PAYLOAD_CONDITIONS,
    })
}

/// The name of a payload as commands take it, with its namespace.
fn command_target(payload: &ReleasePayload) -> String {
    let name = payload.metadata.name.as_deref().unwrap_or_default();
    match payload.metadata.namespace.as_deref() {
        Some(namespace) => format!("{name} -n {namespace}"),
        None => name.to_owned(),
    }
}

fn state(stream: &ImageStream) -> Option<StreamState> {
    let all = stream.metadata.annotations.as_ref()?;
    serde_json::from_str(all.get(annotations::STREAM_STATE)?).ok()
}

/// The tags whose last import failed.
fn failing(stream: &ImageStream) -> Vec<&NamedTagEventList> {
    let tags = stream.status.iter().flat_map(|status| &status.tags);
    tags.filter(|tag| tag.import_failed()).collect()
}

pub(super) fn stream_summary(object: &Value, _: Timestamp) -> String {
    let Ok(stream) = ImageStream::deserialize(object) else {
        return "cannot be decoded".to_owned();
    };
    let tags = stream.spec.tags.len();
    let text = match state(&stream) {
        // A user did it: the reason is what others ask for.
        Some(state) if state.reason == "Paused" => format!("paused: {}", state.message),
        Some(state) => state.reason,
        None => format!("{tags} tags"),
    };
    match failing(&stream).len() {
        0 => text,
        failing => format!("{text}, {failing} of {tags} imports fail"),
    }
}

pub(super) fn stream(object: &Value, _: Timestamp) -> Option<Assessment> {
    let stream = ImageStream::deserialize(object).ok()?;
    let failing = failing(&stream);
    let imports = failing.iter().take(SHOWN_IMPORTS).map(|tag| {
        let why = tag.import_condition().map_or("", |it| it.message.as_str());
        format!("the import of tag {} fails: {why}", tag.tag)
    });
    let mut imports = imports.collect::<Vec<_>>();
    if let Some(more @ 1..) = failing.len().checked_sub(SHOWN_IMPORTS) {
        imports.push(format!("{more} more imports fail"));
    }
    let mut advice = Vec::new();
    if !failing.is_empty() {
        advice.push(
            "check the registry that the tags name, and the pull secrets of the namespace"
                .to_owned(),
        );
    }
    let Some(state) = state(&stream) else {
        return (!failing.is_empty()).then_some(Assessment {
            verdict: Verdict::Degraded,
            why: imports,
            advice,
            covers: &[],
        });
    };
    let is_broken = matches!(
        state.reason.as_str(),
        "InvalidReleaseDefinition" | "TargetNotFound" | "RunKeyMissing"
    );
    let verdict = if is_broken || !state.problems.is_empty() || !failing.is_empty() {
        Verdict::Degraded
    } else if state.reason == "CreatingRelease" {
        Verdict::Progressing
    } else {
        Verdict::Healthy
    };
    let why = std::iter::once(state.message)
        .chain(state.problems)
        .chain(imports)
        .collect();
    Some(Assessment {
        verdict,
        why,
        advice,
        covers: &[],
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn imagestream(failing: usize, state: Option<&str>) -> Value {
        let tags = (0..8).map(|number| json!({"name": format!("c{number}")}));
        let status = (0..failing).map(|number| {
            json!({"tag": format!("c{number}"), "conditions": [{
                "type": "ImportSuccess", "status": "False", "message": "connection refused",
            }]})
        });
        let mut stream = json!({
            "metadata": {"name": "4.21-latest", "namespace": "releases"},
            "spec": {"tags": tags.collect::<Vec<_>>()},
            "status": {"tags": status.collect::<Vec<_>>()},
        });
        if let Some(reason) = state {
            let state = StreamState::new(reason, "the source has no imported images");
            let text = serde_json::to_string(&state).unwrap();
            stream["metadata"]["annotations"] = json!({annotations::STREAM_STATE: text});
        }
        stream
    }

    #[test]
    fn a_stream_whose_imports_fail_is_not_healthy_and_says_why() {
        for state in [None, Some("NoImages")] {
            let assessed = stream(&imagestream(4, state), Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(assessed.verdict, Verdict::Degraded, "{state:?}");
            let import = "the import of tag c0 fails: connection refused";
            assert!(assessed.why.iter().any(|it| it == import), "{assessed:?}");
            assert!(!assessed.advice.is_empty());
        }
        let many = stream(&imagestream(8, None), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(many.why.last().unwrap(), "3 more imports fail");
        let summary = stream_summary(&imagestream(4, Some("NoImages")), Timestamp::UNIX_EPOCH);
        assert_eq!(summary, "NoImages, 4 of 8 imports fail");
    }

    #[test]
    fn a_stream_whose_imports_succeed_stands_as_its_state_says() {
        let waiting = stream(&imagestream(0, Some("NoImages")), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(waiting.verdict, Verdict::Healthy);
        assert!(stream(&imagestream(0, None), Timestamp::UNIX_EPOCH).is_none());
    }

    #[test]
    fn a_paused_stream_says_why_it_is_paused() {
        let mut paused = imagestream(0, None);
        let state = StreamState::new("Paused", "maintenance");
        let text = serde_json::to_string(&state).unwrap();
        paused["metadata"]["annotations"] = json!({annotations::STREAM_STATE: text});
        let summary = stream_summary(&paused, Timestamp::UNIX_EPOCH);
        assert_eq!(summary, "paused: maintenance");
    }

    #[test]
    fn commands_about_a_payload_have_its_namespace() {
        let rejected = json!({
            "metadata": {"name": "4.21.0", "namespace": "releases"},
            "spec": {},
            "status": {"conditions": [{
                "type": conditions::REJECTED, "status": "True", "reason": "x", "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        });
        let assessed = payload(&rejected, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(assessed.advice[0], "neap release jobs 4.21.0 -n releases");
    }

    #[test]
    fn an_assessment_names_the_jobs_that_were_left_out() {
        let skipped = json!({"upgrade": "no accepted release matches"}).to_string();
        let accepted = json!({
            "metadata": {"name": "r", "annotations": {annotations::SKIPPED_JOBS: skipped}}, "spec": {},
        });
        let why = payload(&accepted, Timestamp::UNIX_EPOCH).unwrap().why;
        let wanted = "job upgrade was left out at the cut: no accepted release matches";
        assert!(why.iter().any(|it| it == wanted), "{why:?}");
    }

    #[test]
    fn what_waits_for_a_key_is_degraded() {
        let waiting = json!({
            "metadata": {"name": "r"}, "spec": {},
            "status": {"verdict": {"phase": "Pending", "facts": "", "unproved": "the key is missing"}},
        });
        let assessed = payload(&waiting, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(assessed.verdict, Verdict::Degraded);
        let missing = imagestream(0, Some("RunKeyMissing"));
        let assessed = stream(&missing, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(assessed.verdict, Verdict::Degraded);
    }
}
