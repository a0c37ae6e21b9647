//! Values for a property: usual ones, limits, none, and some that the server must refuse.

use serde_json::{Value, json};

use super::schema::{ENTRY, Property, Schema, Segment, ValueType};

/// A value to try.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    /// None to remove the property.
    pub(super) value: Option<Value>,
    /// Whether it is of another type, so that the server must refuse it.
    pub(super) invalid: bool,
}

/// Fields that set a number of children.
const REPLICA_FIELDS: [&str; 3] = ["replicas", "parallelism", "completions"];

/// At least three distinct values.
pub(super) fn candidates(schema: &Schema, property: &Property) -> Vec<Candidate> {
    let at = schema.at(&property.path);
    let form = schema.value_type(at);
    let facts = schema.resolve(at);
    let counts = matches!(property.path.last(), Some(Segment::Field(name)) if REPLICA_FIELDS.contains(&name.as_str()));
    let mut all: Vec<Candidate> = fitting(schema, form, facts)
        .into_iter()
        .map(usual)
        .collect();
    if counts {
        // No cluster has room for what the type allows.
        all.retain(|candidate| candidate.value != Some(i32::MAX.into()));
        all.push(usual(12.into()));
    }
    all.push(Candidate {
        value: None,
        invalid: false,
    });
    all.extend(invalid(form).map(|value| Candidate {
        value: Some(value),
        invalid: true,
    }));
    let mut seen: Vec<Candidate> = Vec::new();
    for candidate in all {
        if !seen.iter().any(|known| known.value == candidate.value) {
            seen.push(candidate);
        }
    }
    seen
}

fn usual(value: Value) -> Candidate {
    let value = Some(value);
    Candidate {
        value,
        invalid: false,
    }
}

/// A value of another type.
fn invalid(form: ValueType<'_>) -> Option<Value> {
    match form {
        ValueType::Anything => None,
        ValueType::IntOrString => Some(json!([1])),
        ValueType::Choice(_)
        | ValueType::Text
        | ValueType::Quantity
        | ValueType::DateTime
        | ValueType::List => Some(json!({"a": 1})),
        ValueType::Fields
        | ValueType::Map
        | ValueType::Boolean
        | ValueType::Integer
        | ValueType::Number => Some("text".into()),
    }
}

fn fitting(schema: &Schema, form: ValueType<'_>, facts: &Value) -> Vec<Value> {
    match form {
        ValueType::Choice(choices) => {
            let mut all = choices.to_vec();
            all.push("Nonesuch".into());
            all
        }
        ValueType::Boolean => vec![true.into(), false.into()],
        ValueType::Integer => whole(facts),
        ValueType::Number => vec![json!(0), json!(1.5), json!(-1)],
        ValueType::IntOrString => vec![json!(1), "50%".into(), json!(0), "no%".into()],
        ValueType::Quantity => vec!["2".into(), "500m".into(), "1Gi".into(), "many".into()],
        ValueType::DateTime => vec!["2026-01-01T00:00:00Z".into(), "soon".into()],
        ValueType::Text => text(facts),
        ValueType::List => {
            let item = schema.plain(&facts["items"]);
            vec![json!([]), json!([item]), json!([item, item])]
        }
        ValueType::Map => {
            let kind = &facts["additionalProperties"];
            let entry = Some(kind).filter(|kind| kind.is_object());
            let entry = entry.map_or_else(|| ENTRY.into(), |kind| schema.plain(kind));
            vec![json!({}), json!({ENTRY: entry}), json!({"": entry})]
        }
        ValueType::Fields => vec![json!({}), schema.plain(facts)],
        ValueType::Anything => vec![json!({}), json!([1]), ENTRY.into()],
    }
}

fn whole(facts: &Value) -> Vec<Value> {
    let mut all = vec![json!(2), json!(0), json!(-1), json!(i32::MAX)];
    for (limit, beyond) in [("minimum", -1), ("maximum", 1)] {
        if let Some(limit) = facts[limit].as_i64() {
            all.extend([limit.into(), limit.saturating_add(beyond).into()]);
        }
    }
    all
}

fn text(facts: &Value) -> Vec<Value> {
    let shortest = facts["minLength"].as_u64().unwrap_or(1) as usize;
    let longest = facts["maxLength"].as_u64().unwrap_or(300).min(5000) as usize;
    let mut all = vec![
        ENTRY.into(),
        String::new(),
        "ä b/%\u{7}".into(),
        "w".repeat(longest + 1),
    ];
    all.extend([shortest, longest].map(|length| "w".repeat(length)));
    all.into_iter().map(Value::String).collect()
}

/// Sets the value at the end of the path, creating required parents; removes it if there is none.
pub(super) fn put(schema: &Schema, object: &mut Value, path: &[Segment], value: Option<&Value>) {
    let Some(value) = value else {
        return take_away(object, path);
    };
    let mut at = object;
    for (number, segment) in path.iter().enumerate() {
        at = enter(at, segment);
        if at.is_null() {
            *at = schema.plain(schema.at(&path[..=number]));
        }
    }
    *at = value.clone();
}

fn take_away(object: &mut Value, path: &[Segment]) {
    let Some((Segment::Field(last), before)) = path.split_last() else {
        return;
    };
    let at = before.iter().try_fold(object, |at, segment| match segment {
        Segment::Field(name) => at.get_mut(name),
        Segment::Entry => at.get_mut(ENTRY),
        Segment::Item => at.get_mut(0),
    });
    if let Some(fields) = at.and_then(Value::as_object_mut) {
        fields.remove(last);
    }
}

fn enter<'a>(at: &'a mut Value, segment: &Segment) -> &'a mut Value {
    let key = match segment {
        Segment::Field(name) => name,
        Segment::Entry => ENTRY,
        Segment::Item => {
            if !at.is_array() {
                *at = json!([]);
            }
            if at.as_array().is_some_and(Vec::is_empty) {
                *at = json!([null]);
            }
            return &mut at[0];
        }
    };
    if !at.is_object() {
        *at = json!({});
    }
    &mut at[key]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        Schema::custom(
            json!({"properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 5},
                "mode": {"type": "string", "enum": ["On", "Off"]},
                "parts": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string", "maxLength": 8}, "on": {"type": "boolean"},
                }}},
            }}}}),
        )
    }

    #[test]
    fn every_property_has_three_values_and_its_limits() {
        let schema = schema();
        let all = schema.properties();
        let words: Vec<_> = all.iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "spec.mode",
                "spec.parts",
                "spec.size",
                "spec.parts[0].name",
                "spec.parts[0].on"
            ]
        );
        for property in &all {
            assert!(candidates(&schema, property).len() >= 3, "{property}");
        }
        let sizes = candidates(&schema, &all[2]);
        for size in [0, 1, 5, 6] {
            assert!(sizes.contains(&usual(size.into())), "{size}");
        }
        assert!(sizes.iter().any(|candidate| candidate.invalid));
    }

    #[test]
    fn what_has_to_be_on_the_way_is_put_there_and_nothing_else_is() {
        let schema = schema();
        let path = &schema.properties()[4].path;
        let mut object = json!({"spec": {}});
        put(&schema, &mut object, path, Some(&json!(true)));
        assert_eq!(
            object,
            json!({"spec": {"parts": [{"name": "walk", "on": true}]}})
        );
        put(&schema, &mut object, path, None);
        assert_eq!(object, json!({"spec": {"parts": [{"name": "walk"}]}}));
    }
}
