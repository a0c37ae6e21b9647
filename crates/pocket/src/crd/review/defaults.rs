//! Validation of defaults: a default must be a valid value itself, pruned and within the rules.

use super::FieldPath;
use crate::{
    crd::{cel::CompiledRules, default::default, prune::prune, validate::validate_part},
    schema::Schema,
    status::Problems,
};

pub(super) fn review(
    root: Schema<'_>,
    rules: &CompiledRules,
    at: &FieldPath<'_>,
    problems: &mut Problems,
) {
    walk(root, true, rules, at, problems);
}

fn walk(
    schema: Schema<'_>,
    is_root: bool,
    rules: &CompiledRules,
    at: &FieldPath<'_>,
    problems: &mut Problems,
) {
    check(schema, rules, &at.field("default"), problems);
    let node = schema.node();
    let properties = at.field("properties");
    for (name, &id) in &node.properties {
        // Metadata has a built-in type, without defaults of the schema.
        let whole = is_root || node.embedded_resource;
        if whole && &**name == "metadata" {
            continue;
        }
        let property = schema.sibling(id);
        walk(property, false, rules, &properties.key(name), problems);
    }
    if let Some(additional) = schema.additional() {
        let place = at.field("additionalProperties");
        walk(additional, false, rules, &place, problems);
    }
    if let Some(items) = schema.items() {
        walk(items, false, rules, &at.field("items"), problems);
    }
}

fn check(schema: Schema<'_>, rules: &CompiledRules, at: &FieldPath<'_>, problems: &mut Problems) {
    let Some(given) = &schema.node().default else {
        return;
    };
    let mut value = given.clone();
    let dropped = prune(schema, &mut value);
    if let Some(field) = dropped.first() {
        let detail = format!("must not have unknown fields: \"{field}\"");
        problems.invalid(at.to_string(), given.clone(), detail);
        return;
    }
    default(schema, &mut value);
    let mut found = Problems::new();
    validate_part(schema, &value, &mut found);
    if found.is_empty() {
        rules.check(schema, &value, None, &mut found);
    }
    let mut parts = found.iter().cloned().collect::<Vec<_>>();
    for part in &mut parts {
        part.path = match part.path.as_str() {
            "" | "<nil>" => at.to_string(),
            below if below.starts_with('[') => format!("{at}{below}"),
            below => format!("{at}.{below}"),
        };
        problems.push(part.clone());
    }
}
