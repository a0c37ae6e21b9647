//! Values for a property: usual ones, those at its limits, none, and some that nobody may accept.

use serde_json::{Value, json};

use super::schema::{ENTRY, Form, Property, Schema, Segment};

/// A value to try.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Try {
    /// Nothing if the property is taken away.
    pub(super) value: Option<Value>,
    /// It is of another type: a server that takes it has not looked.
    pub(super) absurd: bool,
}

/// What says how many there are to be of something.
const COUNTS: [&str; 3] = ["replicas", "parallelism", "completions"];

/// At least three, each another.
pub(super) fn tries(schema: &Schema, property: &Property) -> Vec<Try> {
    let at = schema.at(&property.path);
    let form = schema.form(at);
    let facts = schema.resolve(at);
    let counts = matches!(property.path.last(), Some(Segment::Field(name)) if COUNTS.contains(&name.as_str()));
    let mut all: Vec<Try> = fitting(schema, form, facts)
        .into_iter()
        .map(usual)
        .collect();
    if counts {
        // No cluster has room for what the type allows.
        all.retain(|one| one.value != Some(i32::MAX.into()));
        all.push(usual(12.into()));
    }
    all.push(Try {
        value: None,
        absurd: false,
    });
    all.extend(absurd(form).map(|value| Try {
        value: Some(value),
        absurd: true,
    }));
    let mut seen: Vec<Try> = Vec::new();
    for one in all {
        if !seen.iter().any(|known| known.value == one.value) {
            seen.push(one);
        }
    }
    seen
}

fn usual(value: Value) -> Try {
    let value = Some(value);
    Try {
        value,
        absurd: false,
    }
}

/// Something of another type.
fn absurd(form: Form<'_>) -> Option<Value> {
    match form {
        Form::Anything => None,
        Form::WholeOrText => Some(json!([1])),
        Form::Choice(_) | Form::Text | Form::Quantity | Form::Moment | Form::List => {
            Some(json!({"a": 1}))
        }
        Form::Fields | Form::Map | Form::Truth | Form::Whole | Form::Number => Some("text".into()),
    }
}

fn fitting(schema: &Schema, form: Form<'_>, facts: &Value) -> Vec<Value> {
    match form {
        Form::Choice(choices) => {
            let mut all = choices.to_vec();
            all.push("Nonesuch".into());
            all
        }
        Form::Truth => vec![true.into(), false.into()],
        Form::Whole => whole(facts),
        Form::Number => vec![json!(0), json!(1.5), json!(-1)],
        Form::WholeOrText => vec![json!(1), "50%".into(), json!(0), "no%".into()],
        Form::Quantity => vec!["2".into(), "500m".into(), "1Gi".into(), "many".into()],
        Form::Moment => vec!["2026-01-01T00:00:00Z".into(), "soon".into()],
        Form::Text => text(facts),
        Form::List => {
            let item = schema.plain(&facts["items"]);
            vec![json!([]), json!([item]), json!([item, item])]
        }
        Form::Map => {
            let kind = &facts["additionalProperties"];
            let entry = Some(kind).filter(|kind| kind.is_object());
            let entry = entry.map_or_else(|| ENTRY.into(), |kind| schema.plain(kind));
            vec![json!({}), json!({ENTRY: entry}), json!({"": entry})]
        }
        Form::Fields => vec![json!({}), schema.plain(facts)],
        Form::Anything => vec![json!({}), json!([1]), ENTRY.into()],
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

/// Puts `value` at the end of the way, with what has to be there on it; takes it away if there is
/// none.
pub(super) fn put(schema: &Schema, object: &mut Value, way: &[Segment], value: Option<&Value>) {
    let Some(value) = value else {
        return take_away(object, way);
    };
    let mut at = object;
    for (number, segment) in way.iter().enumerate() {
        at = enter(at, segment);
        if at.is_null() {
            *at = schema.plain(schema.at(&way[..=number]));
        }
    }
    *at = value.clone();
}

fn take_away(object: &mut Value, way: &[Segment]) {
    let Some((Segment::Field(last), before)) = way.split_last() else {
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
            assert!(tries(&schema, property).len() >= 3, "{property}");
        }
        let sizes = tries(&schema, &all[2]);
        for size in [0, 1, 5, 6] {
            assert!(sizes.contains(&usual(size.into())), "{size}");
        }
        assert!(sizes.iter().any(|one| one.absurd));
    }

    #[test]
    fn what_has_to_be_on_the_way_is_put_there_and_nothing_else_is() {
        let schema = schema();
        let way = &schema.properties()[4].path;
        let mut object = json!({"spec": {}});
        put(&schema, &mut object, way, Some(&json!(true)));
        assert_eq!(
            object,
            json!({"spec": {"parts": [{"name": "walk", "on": true}]}})
        );
        put(&schema, &mut object, way, None);
        assert_eq!(object, json!({"spec": {"parts": [{"name": "walk"}]}}));
    }
}
