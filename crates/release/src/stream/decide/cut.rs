//! Cuts a release: its mirror pins the images, and its tag begins its life.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::{
    Actions, Draft, StreamChange, WhyNot,
    mirror::{MirrorProblem, mirror},
};
use crate::{api::annotations, image_stream::api::TagReference, names, payload::Phase};

/// Cuts a release if one is due. Returns why none is cut.
pub(super) fn decide(draft: &mut Draft<'_>, actions: &Actions<'_>) -> Option<WhyNot> {
    let hash = match &actions.due {
        Ok(hash) => hash.clone(),
        Err(WhyNot::TooEarly(due) | WhyNot::ClockBehind { due, .. }) => {
            draft.look_again_at(*due);
            return None;
        }
        Err(_) => return None,
    };
    let facts = draft.facts;
    let tag = names::release_tag(&draft.config.name, facts.now);
    if draft.tag(&tag).is_some()
        || facts.payloads.contains_key(&tag)
        || facts.taken.contains_key(&tag)
    {
        // Names have the precision of a second.
        let next = facts.now.checked_add(SignedDuration::from_secs(1));
        let next = next.unwrap_or(facts.now);
        draft.look_again_at(next);
        return Some(WhyNot::TooEarly(next));
    }
    let mirror = match mirror(facts, draft.config, &tag, &hash) {
        Ok(mirror) => mirror,
        Err(MirrorProblem::NotImported(message)) => return Some(WhyNot::NotImported(message)),
        Err(problem) => {
            let message = problem.to_string();
            draft.problem("UnableToCreateRelease", message.clone());
            return Some(WhyNot::NotImported(message));
        }
    };
    draft
        .changes
        .push(StreamChange::CreateMirror(Box::new(mirror)));
    let created = jiff::Timestamp::from_second(facts.now.as_second()).unwrap_or(facts.now);
    let is_reference = facts.source.spec.tags.iter().any(|tag| tag.reference)
        && draft.config.reference_release.is_some();
    let annotations: BTreeMap<String, String> = [
        (annotations::NAME, draft.config.name.clone()),
        (annotations::SOURCE, facts.source_name()),
        (annotations::CREATION_TIMESTAMP, created.to_string()),
        (annotations::PHASE, Phase::Pending.to_string()),
        (annotations::HASH, hash),
        (annotations::RUN_KEY, facts.run_key.id().to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    draft.push_tag(TagReference {
        name: tag.clone(),
        annotations,
        reference: is_reference,
        ..TagReference::default()
    });
    draft
        .reasons
        .push(format!("{tag}: a release of new images"));
    Some(WhyNot::CutNow(tag))
}
