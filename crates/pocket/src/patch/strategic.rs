//! Strategic merge patch: a merge that knows which lists have keys.
//!
//! Maps merge as in a JSON merge patch. Lists marked `merge` in the schema merge element by
//! element, objects by their merge key and scalars as a set; all other lists are replaced. The
//! patch may have directives beside its fields:
//!
//! - `$patch: replace | delete` in a map or in an element of a merged list;
//! - `$retainKeys: [..]`: only these keys of the live map stay;
//! - `$deleteFromPrimitiveList/f: [..]`: these are removed from the list `f`;
//! - `$setElementOrder/f: [..]`: the order of the list `f` after the merge.
//!
//! A patch that cannot be merged is a 500, as in kube-apiserver, and one with malformed directives
//! is a 400. Every list operation is linear in the lists, whatever the client sends.

mod directive;
mod list;
mod order;

use serde_json::{Map, Value};

use self::directive::{Directives, PatchDirective, plain};
use super::bounds::refuse_deep;
use crate::{
    schema::{PatchMarks, Schema},
    status::{ApiError, Result},
};

#[cfg(test)]
mod tests;

type JsonMap = Map<String, Value>;

/// The live object with the patch merged into it.
pub fn apply(schema: Schema<'_>, live: Value, patch: Value) -> Result<Value> {
    refuse_deep(&patch)?;
    if patch.is_null() {
        return Ok(live);
    }
    let Value::Object(patch) = patch else {
        let why = super::merge::not_a_map(&patch);
        return Err(ApiError::bad_request(
            why.trim_start_matches("error decoding patch: "),
        ));
    };
    let Value::Object(mut live) = live else {
        return Err(ApiError::internal("the live object is not a JSON object"));
    };
    merge_map(Some(schema), &mut live, patch)?;
    Ok(Value::Object(live))
}

/// Merges one map into another, whose schema may be known.
fn merge_map(schema: Option<Schema<'_>>, live: &mut JsonMap, mut patch: JsonMap) -> Result<()> {
    match PatchDirective::take(&mut patch)? {
        PatchDirective::Merge => {}
        PatchDirective::Delete => {
            live.clear();
            return Ok(());
        }
        PatchDirective::Replace => {
            *live = directive::plain_map(patch);
            return Ok(());
        }
    }
    let directives = Directives::take(&mut patch)?;
    if let Some(kept) = &directives.retain {
        directive::retain(live, &patch, kept)?;
    }
    for (name, order) in directives.order {
        let field = schema.and_then(|s| s.field(&name));
        let items = patch.remove(&name);
        order::merge_ordered(field, live, &name, items, &order)?;
    }
    for (name, value) in patch {
        let field = schema.and_then(|s| s.field(&name));
        merge_field(field, live, name, value)?;
    }
    for (name, gone) in directives.delete {
        if let Some(Value::Array(items)) = live.get_mut(&name) {
            list::subtract(items, &gone);
        }
    }
    Ok(())
}

fn merge_field(
    schema: Option<Schema<'_>>,
    live: &mut JsonMap,
    name: String,
    patch: Value,
) -> Result<()> {
    if patch.is_null() {
        live.remove(&name);
        return Ok(());
    }
    let Some(old) = live.get_mut(&name) else {
        // A new value is added as it is: in a map of texts, directive keys are ordinary entries.
        if schema.is_some_and(|s| s.additional().is_some()) && directive::retains(&patch) {
            live.insert(name, patch);
            return Ok(());
        }
        if let Some(value) = plain(patch) {
            live.insert(name, value);
        }
        return Ok(());
    };
    match (old, patch) {
        (Value::Object(old), Value::Object(patch)) => {
            if marks(schema).is_some_and(|m| m.replace) {
                *old = directive::plain_map(patch);
                return Ok(());
            }
            merge_map(schema, old, patch)
        }
        (Value::Array(old), Value::Array(patch)) => {
            let before = std::mem::take(old);
            *old = list::merge(schema, before, patch)?;
            Ok(())
        }
        (old, patch) => {
            match plain(patch) {
                Some(value) => *old = value,
                None => {
                    live.remove(&name);
                }
            }
            Ok(())
        }
    }
}

fn marks(schema: Option<Schema<'_>>) -> Option<&PatchMarks> {
    schema.map(|s| &s.node().patch)
}

/// How a list of the live object merges.
enum ListRule<'a> {
    /// The patch's list replaces it.
    Replace,
    /// Scalars, as a set.
    Set,
    /// Objects, by this property.
    Keyed(&'a str),
}

fn list_rule(schema: Option<Schema<'_>>) -> ListRule<'_> {
    match marks(schema) {
        Some(PatchMarks {
            merge: true,
            merge_key: Some(key),
            ..
        }) => ListRule::Keyed(key),
        Some(PatchMarks { merge: true, .. }) => ListRule::Set,
        _ => ListRule::Replace,
    }
}
