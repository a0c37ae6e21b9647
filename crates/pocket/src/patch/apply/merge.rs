//! Merges the configuration into the live object.
//!
//! Nothing is removed here; that is [`super::prune`].

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::{
    patch::managed::{
        Element,
        shape::{self, Shape},
    },
    schema::Schema,
};

/// Merges `config` into `live`.
pub(super) fn merge(schema: Option<Schema<'_>>, live: &mut Value, config: &Value) {
    let before = shape::shape(schema, live);
    let after = shape::shape(schema, config);
    match (before, live, config) {
        (Shape::Fields, Value::Object(live), Value::Object(config)) if after == before => {
            merge_fields(schema, live, config);
        }
        (Shape::Set | Shape::Keyed(_), Value::Array(live), Value::Array(config)) => {
            if !config.is_empty() {
                *live = merge_list(schema, before, std::mem::take(live), config);
            }
        }
        // A null leaves the parts of the live value unchanged.
        (Shape::Fields | Shape::Set | Shape::Keyed(_), live, Value::Null) if has_parts(live) => {}
        (_, live, config) => *live = config.clone(),
    }
}

fn has_parts(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

fn merge_fields(
    schema: Option<Schema<'_>>,
    live: &mut Map<String, Value>,
    config: &Map<String, Value>,
) {
    for (name, value) in config {
        let (below, _) = shape::part(schema, name);
        match live.get_mut(name) {
            Some(live) => merge(below, live, value),
            None => {
                live.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Items of the configuration keep its order. An item that only the live list has stays before the
/// first item of the configuration that followed it there.
fn merge_list(
    schema: Option<Schema<'_>>,
    shape: Shape<'_>,
    live: Vec<Value>,
    config: &[Value],
) -> Vec<Value> {
    let items = shape::items(schema);
    let element = |(at, item): (usize, &Value)| shape::element_or_index(shape, items, at, item);
    let wanted: Vec<Element> = config.iter().enumerate().map(element).collect();
    let known: Vec<Element> = live.iter().enumerate().map(element).collect();
    let mut queue = LiveItems::new(live, &known, &wanted);
    let mut out = Vec::with_capacity(known.len().max(config.len()));
    for ((value, element), stop) in config.iter().zip(&wanted).zip(queue.stops(&wanted)) {
        queue.flush_before(stop, &mut out);
        out.push(match queue.take(element) {
            Some(mut live) => {
                merge(items, &mut live, value);
                live
            }
            None => value.clone(),
        });
    }
    queue.flush_before(None, &mut out);
    out
}

/// The live items that were not emitted yet.
struct LiveItems<'e> {
    items: std::iter::Peekable<std::vec::IntoIter<(&'e Element, Value)>>,
    /// Live items that the configuration has too; `None` for those that occur more than once,
    /// because it is ambiguous which one is meant.
    shared: HashMap<&'e Element, Option<Value>>,
}

impl<'e> LiveItems<'e> {
    fn new(live: Vec<Value>, known: &'e [Element], wanted: &[Element]) -> Self {
        let wanted: HashSet<&Element> = wanted.iter().collect();
        let mut shared = HashMap::new();
        let mut items = Vec::with_capacity(live.len());
        for (element, mut value) in known.iter().zip(live) {
            if wanted.contains(element) {
                let value = std::mem::take(&mut value);
                shared
                    .entry(element)
                    .and_modify(|first| *first = None)
                    .or_insert(Some(value));
            }
            items.push((element, value));
        }
        Self {
            items: items.into_iter().peekable(),
            shared,
        }
    }

    /// For each wanted item the next one, itself included, that is live: the live items before it
    /// are emitted first.
    fn stops<'w>(&self, wanted: &'w [Element]) -> Vec<Option<&'w Element>> {
        let mut stop = None;
        let mut stops: Vec<_> = wanted
            .iter()
            .rev()
            .map(|element| {
                if self.shared.contains_key(element) {
                    stop = Some(element);
                }
                stop
            })
            .collect();
        stops.reverse();
        stops
    }

    fn take(&mut self, element: &Element) -> Option<Value> {
        self.shared.get_mut(element).and_then(Option::take)
    }

    /// Emits the live items before `stop` that the configuration does not have.
    fn flush_before(&mut self, stop: Option<&Element>, out: &mut Vec<Value>) {
        while let Some((element, value)) = self.items.next_if(|(e, _)| Some(*e) != stop) {
            if !self.shared.contains_key(element) {
                out.push(value);
            }
        }
    }
}
