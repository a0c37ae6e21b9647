//! The annotations that v1 of an autoscaler carries: metrics in flat form, behaviour and
//! conditions, as JSON text. The order of fields is part of the text, since clients compare it.

use serde_json::{Map, Value, json};

use super::super::fields::{list, text};

/// A field of the flat form, and its path in the stored one.
struct FlatField {
    flat: &'static str,
    stored: &'static str,
    /// Written as zero when absent.
    always: bool,
}

const fn field(flat: &'static str, stored: &'static str) -> FlatField {
    FlatField {
        flat,
        stored,
        always: false,
    }
}

const fn always(flat: &'static str, stored: &'static str) -> FlatField {
    FlatField {
        flat,
        stored,
        always: true,
    }
}

/// The sources of metrics with their fields: first the targets, then the current values.
type Sources = [(&'static str, &'static [FlatField]); 5];

const NAME: FlatField = field("name", "/name");
const METRIC: FlatField = field("metricName", "/metric/name");
const SELECTOR: FlatField = field("selector", "/metric/selector");
const METRIC_SELECTOR: FlatField = field("metricSelector", "/metric/selector");
const OBJECT: FlatField = field("target", "/describedObject");
const CONTAINER: FlatField = field("container", "/container");

const WANTED: Sources = [
    (
        "object",
        &[
            OBJECT,
            METRIC,
            always("targetValue", "/target/value"),
            SELECTOR,
            field("averageValue", "/target/averageValue"),
        ],
    ),
    (
        "pods",
        &[
            METRIC,
            always("targetAverageValue", "/target/averageValue"),
            SELECTOR,
        ],
    ),
    (
        "resource",
        &[
            NAME,
            field("targetAverageUtilization", "/target/averageUtilization"),
            field("targetAverageValue", "/target/averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            NAME,
            field("targetAverageUtilization", "/target/averageUtilization"),
            field("targetAverageValue", "/target/averageValue"),
            CONTAINER,
        ],
    ),
    (
        "external",
        &[
            METRIC,
            METRIC_SELECTOR,
            field("targetValue", "/target/value"),
            field("targetAverageValue", "/target/averageValue"),
        ],
    ),
];

const SEEN: Sources = [
    (
        "object",
        &[
            OBJECT,
            METRIC,
            always("currentValue", "/current/value"),
            SELECTOR,
            field("averageValue", "/current/averageValue"),
        ],
    ),
    (
        "pods",
        &[
            METRIC,
            always("currentAverageValue", "/current/averageValue"),
            SELECTOR,
        ],
    ),
    (
        "resource",
        &[
            NAME,
            field("currentAverageUtilization", "/current/averageUtilization"),
            always("currentAverageValue", "/current/averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            NAME,
            field("currentAverageUtilization", "/current/averageUtilization"),
            always("currentAverageValue", "/current/averageValue"),
            CONTAINER,
        ],
    ),
    (
        "external",
        &[
            METRIC,
            METRIC_SELECTOR,
            always("currentValue", "/current/value"),
            field("currentAverageValue", "/current/averageValue"),
        ],
    ),
];

/// Target metrics.
pub(super) fn metrics(metrics: &[&Value]) -> String {
    flattened(metrics, &WANTED)
}

/// Current metrics.
pub(super) fn current_metrics(metrics: &[&Value]) -> String {
    flattened(metrics, &SEEN)
}

fn flattened(metrics: &[&Value], sources: &Sources) -> String {
    array(metrics.iter().map(|metric| {
        let mut members = vec![("type", metric["type"].to_string())];
        for (name, fields) in sources {
            if let Some(source) = metric.get(name).filter(|source| source.is_object()) {
                members.push((name, object(fields.iter().filter_map(|f| f.flat(source)))));
            }
        }
        object(members)
    }))
}

impl FlatField {
    fn flat(&self, source: &Value) -> Option<(&'static str, String)> {
        let found = source.pointer(self.stored).filter(|value| !value.is_null());
        let text = match found {
            Some(value) => ordered(value),
            None if self.always => "\"0\"".into(),
            None => return None,
        };
        Some((self.flat, text))
    }
}

/// Writes references and selectors in the order in which their fields are declared.
fn ordered(value: &Value) -> String {
    const ORDER: [&str; 5] = [
        "kind",
        "name",
        "apiVersion",
        "matchLabels",
        "matchExpressions",
    ];
    if !value.is_object() {
        return value.to_string();
    }
    let members = ORDER.iter().filter_map(|key| Some((*key, value.get(key)?)));
    object(members.map(|(key, value)| (key, value.to_string())))
}

/// Behaviour, under the field names of the unversioned API.
pub(super) fn behavior(behavior: &Value) -> String {
    let side = |name: &str| {
        let rules = &behavior[name];
        if !rules.is_object() {
            return "null".to_owned();
        }
        let policies = array(list(rules, "policies").iter().map(|policy| {
            object([
                ("Type", policy["type"].to_string()),
                ("Value", policy["value"].to_string()),
                ("PeriodSeconds", policy["periodSeconds"].to_string()),
            ])
        }));
        object([
            (
                "StabilizationWindowSeconds",
                rules["stabilizationWindowSeconds"].to_string(),
            ),
            ("SelectPolicy", rules["selectPolicy"].to_string()),
            ("Policies", policies),
            ("Tolerance", rules["tolerance"].to_string()),
        ])
    };
    object([
        ("ScaleUp", side("scaleUp")),
        ("ScaleDown", side("scaleDown")),
    ])
}

/// Conditions of the status.
pub(super) fn conditions(conditions: &[Value]) -> String {
    const ORDER: [&str; 5] = ["type", "status", "lastTransitionTime", "reason", "message"];
    array(conditions.iter().map(|condition| {
        let members = ORDER
            .iter()
            .filter_map(|key| Some((*key, condition.get(key)?)));
        object(members.map(|(key, value)| (key, value.to_string())))
    }))
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn object<'a>(members: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let member = |(key, value): (&str, String)| format!("\"{key}\":{value}");
    let members: Vec<String> = members.into_iter().map(member).collect();
    format!("{{{}}}", members.join(","))
}

/// The inverse of [`metrics`]; `None` if the text is invalid.
pub(super) fn read_metrics(note: &str) -> Option<Vec<Value>> {
    let mut metrics = read(note, &WANTED)?;
    for metric in &mut metrics {
        for (source, _) in &WANTED {
            if let Some(target) = metric.pointer_mut(&format!("/{source}/target")) {
                settle_target(target);
            }
        }
    }
    Some(metrics)
}

/// Adds the type of a flat target, which follows from its fields.
fn settle_target(target: &mut Value) {
    let is = |key: &str| target.get(key).is_some();
    let kind = match (is("averageUtilization"), is("averageValue")) {
        (true, _) => "Utilization",
        (false, true) => "AverageValue",
        (false, false) => "Value",
    };
    let zero = target.get("value").is_some_and(text_is_zero);
    if let Some(fields) = target.as_object_mut() {
        if kind == "AverageValue" && zero {
            fields.remove("value");
        }
        fields.insert("type".into(), kind.into());
    }
}

fn text_is_zero(value: &Value) -> bool {
    value == "0" || value == 0
}

/// The inverse of [`current_metrics`].
pub(super) fn read_current_metrics(note: &str) -> Option<Vec<Value>> {
    read(note, &SEEN)
}

fn read(note: &str, sources: &Sources) -> Option<Vec<Value>> {
    let flat: Vec<Value> = serde_json::from_str(note).ok()?;
    let stored = |metric: &Value| {
        let mut stored = json!({"type": text(metric, "type")});
        for (name, fields) in sources {
            if let Some(source) = metric.get(name).filter(|source| source.is_object()) {
                stored[name] = deepened(source, fields);
            }
        }
        stored
    };
    Some(flat.iter().map(stored).collect())
}

fn deepened(source: &Value, fields: &[FlatField]) -> Value {
    let mut stored = json!({});
    for field in fields {
        if let Some(value) = source.get(field.flat).filter(|value| !value.is_null()) {
            let mut place = &mut stored;
            for part in field.stored.split('/').skip(1) {
                place = &mut place[part];
            }
            *place = value.clone();
        }
    }
    stored
}

/// The inverse of [`behavior`].
pub(super) fn read_behavior(note: &str) -> Option<Value> {
    let read: Value = serde_json::from_str(note).ok()?;
    read.is_object().then(|| renamed(read))
}

/// Field names in the case of the API, without absent fields.
fn renamed(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let set = fields.into_iter().filter(|(_, value)| !value.is_null());
            let renamed: Map<String, Value> = set
                .map(|(name, value)| {
                    let (first, rest) =
                        name.split_at(name.chars().next().map_or(0, char::len_utf8));
                    (first.to_lowercase() + rest, renamed(value))
                })
                .collect();
            Value::Object(renamed)
        }
        Value::Array(items) => items.into_iter().map(renamed).collect(),
        other => other,
    }
}

/// The inverse of [`conditions`].
pub(super) fn read_conditions(note: &str) -> Option<Value> {
    let read: Value = serde_json::from_str(note).ok()?;
    read.is_array().then_some(read)
}
