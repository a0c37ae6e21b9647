//! O9: every watch tells everything, in order and once.

use std::sync::Arc;

use neap_pocket::store::Event;

use super::{Oracle, Violation};
use crate::seam::Stream;

pub(crate) fn streams(streams: &[Stream], history: &[Arc<Event>]) -> Vec<Violation> {
    streams
        .iter()
        .filter_map(|stream| {
            let problem = problem(stream, history)?;
            let text = format!("a watch of {}: {problem}", stream.resource);
            Some(Violation::new(Oracle::Watch, &stream.resource, text))
        })
        .collect()
}

fn problem(stream: &Stream, history: &[Arc<Event>]) -> Option<String> {
    let mut pairs = stream.told.iter().zip(stream.told.iter().skip(1));
    if let Some((first, second)) = pairs.find(|(first, second)| first >= second) {
        return Some(format!("told of {second} after {first}"));
    }
    // Of a choice of objects nobody here knows what belongs to it.
    let (after, last) = (stream.after?, *stream.told.last()?);
    let happened = history.iter().filter(|event| {
        *event.resource == *stream.resource
            && (after + 1..=last).contains(&event.revision())
            && is_within(&event.path, &stream.namespace)
    });
    let happened: Vec<u64> = happened.map(|event| event.revision()).collect();
    (happened != stream.told)
        .then(|| format!("told of {:?} where {happened:?} happened", stream.told))
}

fn is_within(path: &str, namespace: &str) -> bool {
    namespace.is_empty() || path.split('/').next() == Some(namespace)
}
