//! Checks of well-formed scenario files.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    super::{Failure, variables::mentioned},
    Block, EventPattern, Request, Step,
};

/// Variables that every scenario has before its first block.
const GIVEN: [&str; 2] = ["ns", "id"];

/// Refuses a variable that is mentioned once: without a comparison it cannot fail, and it is most
/// often a misspelling of one that was captured earlier.
pub(super) fn captures_are_used(blocks: &[Block]) -> Result<(), Failure> {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for text in blocks.iter().flat_map(|block| texts(&block.step)) {
        for name in mentioned(&text) {
            *times.entry(name).or_default() += 1;
        }
    }
    match times
        .into_iter()
        .find(|(name, count)| *count == 1 && !GIVEN.contains(&name.as_str()))
    {
        Some((name, _)) => Err(Failure::new(format!(
            "${name} occurs in this file once; use ~any for a value that is not compared"
        ))),
        None => Ok(()),
    }
}

fn texts(step: &Step) -> Vec<String> {
    match step {
        Step::Ask(request, answer) | Step::Later(request, answer) => {
            let mut texts = of_request(request);
            texts.extend(answer.headers.iter().map(|(_, value)| value.clone()));
            texts.extend(answer.body.as_ref().map(Value::to_string));
            texts
        }
        Step::Watch(_, request) => of_request(request),
        Step::Events(_, events) => events.iter().filter_map(of_event).collect(),
        Step::Wait(_) => Vec::new(),
    }
}

fn of_request(request: &Request) -> Vec<String> {
    let mut texts = vec![request.path.clone(), request.body.clone()];
    texts.extend(request.headers.iter().map(|(_, value)| value.clone()));
    texts
}

fn of_event(event: &EventPattern) -> Option<String> {
    match event {
        EventPattern::Event(_, pattern) => Some(pattern.to_string()),
        EventPattern::End | EventPattern::Quiet => None,
    }
}
