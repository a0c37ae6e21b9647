//! The objects that a request selects, parsed from its URL independently of the server.

use serde_json::Value;

use crate::ObjectState;

/// The selection of a list or watch.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    namespace: Option<String>,
    name: Option<String>,
    labels: Vec<(String, Requirement)>,
    fields: Vec<(String, Requirement)>,
}

#[derive(Debug, Clone)]
enum Requirement {
    Is(String),
    IsNot(String),
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Missing,
}

impl Filter {
    /// Everything in a namespace, or with a name; either may be empty.
    pub fn within(namespace: &str, name: &str) -> Self {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self {
            namespace: some(namespace),
            name: some(name),
            ..Self::default()
        }
    }

    /// Adds a label selector.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.labels.extend(terms(selector).map(term));
        self
    }

    /// Adds a field selector.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.fields.extend(terms(selector).map(term));
        self
    }

    /// Whether an object at `path` in this state is selected.
    pub fn selects(&self, path: &str, state: &ObjectState) -> bool {
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        let is = |wanted: &Option<String>, actual: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == actual)
        };
        is(&self.namespace, namespace)
            && is(&self.name, name)
            && self
                .labels
                .iter()
                .all(|(key, test)| test.holds(state.labels.get(key).map(String::as_str)))
            && self.fields_hold(namespace, name, state)
    }

    fn fields_hold(&self, namespace: &str, name: &str, state: &ObjectState) -> bool {
        let mut whole = None;
        self.fields
            .iter()
            .all(|(field, test)| match field.as_str() {
                "metadata.name" => test.holds(Some(name)),
                "metadata.namespace" => test.holds(Some(namespace)),
                field => {
                    let whole = whole.get_or_insert_with(|| state.value());
                    let text = text(whole, field);
                    test.holds(Some(&text))
                }
            })
    }
}

/// The value of a field for a selector. An absent field has the zero value of its type.
fn text(object: &Value, field: &str) -> String {
    let at = |field: &str| match object.pointer(&format!("/{}", field.replace('.', "/"))) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => Some(other.to_string()),
    };
    match field {
        "source" => at("source.component").or_else(|| at("reportingComponent")),
        "spec.hostNetwork" | "spec.unschedulable" => at(field).or_else(|| Some("false".into())),
        "status.successful" | "status.replicas" => at(field).or_else(|| Some("0".into())),
        _ => at(field),
    }
    .unwrap_or_default()
}

impl Requirement {
    fn holds(&self, actual: Option<&str>) -> bool {
        match self {
            Self::Is(wanted) => actual == Some(wanted),
            Self::IsNot(unwanted) => actual != Some(unwanted),
            Self::In(wanted) => actual.is_some_and(|text| wanted.iter().any(|w| w == text)),
            Self::NotIn(unwanted) => actual.is_none_or(|text| unwanted.iter().all(|w| w != text)),
            Self::Exists => actual.is_some(),
            Self::Missing => actual.is_none(),
        }
    }
}

/// Splits at commas that are not in parentheses.
fn terms(selector: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    selector
        .split(move |c| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            c == ',' && depth == 0
        })
        .map(str::trim)
        .filter(|term| !term.is_empty())
}

fn term(text: &str) -> (String, Requirement) {
    let own = |text: &str| text.trim().to_owned();
    let set = |text: &str| {
        let inside = text.trim().trim_start_matches('(').trim_end_matches(')');
        inside.split(',').map(own).collect()
    };
    if let Some((key, values)) = text.split_once(" notin ") {
        (own(key), Requirement::NotIn(set(values)))
    } else if let Some((key, values)) = text.split_once(" in ") {
        (own(key), Requirement::In(set(values)))
    } else if let Some((key, value)) = text.split_once("!=") {
        (own(key), Requirement::IsNot(own(value)))
    } else if let Some((key, value)) = text.split_once('=') {
        (
            own(key),
            Requirement::Is(own(value.trim_start_matches('='))),
        )
    } else if let Some(key) = text.strip_prefix('!') {
        (own(key), Requirement::Missing)
    } else {
        (own(text), Requirement::Exists)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_select() {
        let object = json!({
            "metadata": {"labels": {"color": "red", "size": "l"}},
            "spec": {"nodeName": "n1"},
        });
        let state = ObjectState::new(1, object.to_string().into());
        for (labels, fields, selected) in [
            ("", "", true),
            ("color=red", "", true),
            ("color==red,size!=s", "", true),
            ("color in (blue, red),size", "", true),
            ("color notin (blue, red)", "", false),
            ("shape notin (round),!shape", "", true),
            ("!color", "", false),
            ("", "metadata.name=x,metadata.namespace=ns", true),
            ("", "metadata.name!=x", false),
            ("", "spec.nodeName=n1", true),
            ("", "spec.other=", true),
            ("", "spec.nodeName=", false),
            ("", "spec.hostNetwork=false,status.successful=0", true),
        ] {
            let filter = Filter::default().labels(labels).fields(fields);
            assert_eq!(
                filter.selects("ns/x", &state),
                selected,
                "{labels} {fields}"
            );
        }
    }
}
