//! Label and field selectors as values: whether an object is in the selection of a watch.

use serde_json::Value;

use super::Selection;

/// A parsed selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

/// One requirement of a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    /// The label, or the path of the field.
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    /// Also true if the label does not exist.
    NotIn(Vec<String>),
    Exists,
    Missing,
}

impl Selector {
    /// None if a selector has a form that is not known here: nothing can be said about its objects.
    pub(crate) fn parse(selection: &Selection) -> Option<Self> {
        Some(Self {
            labels: requirements(selection.labels.as_deref())?,
            fields: requirements(selection.fields.as_deref())?,
        })
    }

    /// Whether the object is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| {
            let value = object["metadata"]["labels"][key].as_str();
            value.map(str::to_owned)
        };
        let field = |path: &str| Some(field(object, path));
        self.labels.iter().all(|one| one.holds(label(&one.key)))
            && self.fields.iter().all(|one| one.holds(field(&one.key)))
    }
}

/// The value of a field as the server compares it: a field that does not exist is empty.
fn field(object: &Value, path: &str) -> String {
    let value = path.split('.').fold(object, |value, name| &value[name]);
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

impl Requirement {
    fn holds(&self, value: Option<String>) -> bool {
        match (&self.test, value) {
            (Test::In(values), Some(value)) => values.contains(&value),
            (Test::NotIn(values), Some(value)) => !values.contains(&value),
            (Test::Exists, Some(_)) | (Test::NotIn(_) | Test::Missing, None) => true,
            (Test::Missing, Some(_)) | (Test::In(_) | Test::Exists, None) => false,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let of = |key: &str, test| {
            let key = key.trim().to_owned();
            let is_key = !key.is_empty() && !key.contains([' ', '(', ')', '=', '!', '<', '>']);
            is_key.then_some(Self { key, test })
        };
        let one = |value: &str| vec![value.trim().to_owned()];
        if let Some((key, value)) = text.split_once("!=") {
            return of(key, Test::NotIn(one(value)));
        }
        if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
            return of(key, Test::In(one(value)));
        }
        if let Some(key) = text.strip_prefix('!') {
            return of(key, Test::Missing);
        }
        let Some((head, values)) = text.split_once('(') else {
            return of(text, Test::Exists);
        };
        let values = values.strip_suffix(')')?.split(',');
        let values = values.map(|value| value.trim().to_owned()).collect();
        match head.trim().rsplit_once(char::is_whitespace)? {
            (key, "in") => of(key, Test::In(values)),
            (key, "notin") => of(key, Test::NotIn(values)),
            _ => None,
        }
    }
}

fn requirements(selector: Option<&str>) -> Option<Vec<Requirement>> {
    let parts = split(selector.unwrap_or_default());
    let parts = parts.into_iter().map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(Requirement::parse)
        .collect()
}

/// Splits at commas that are not in parentheses.
fn split(selector: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let is_border = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    };
    selector.split(is_border).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selects(labels: &str, fields: &str, object: &Value) -> Option<bool> {
        let selection = Selection {
            labels: Some(labels.to_owned()),
            fields: Some(fields.to_owned()),
        };
        Some(Selector::parse(&selection)?.matches(object))
    }

    #[test]
    fn every_form_of_a_label_selector_is_understood() {
        let object = json!({"metadata": {"labels": {"app": "web", "tier/x.y": "front"}}});
        for (selector, selected) in [
            ("", true),
            ("app", true),
            ("app=web", true),
            ("app == web", true),
            ("app!=web", false),
            ("none!=web", true),
            ("!app", false),
            ("!none", true),
            ("app in (api, web)", true),
            ("app in (api)", false),
            ("app notin (api,web),tier/x.y", false),
            ("app notin (api),tier/x.y=front", true),
            ("none notin (api)", true),
            ("none in (api)", false),
            ("none", false),
        ] {
            assert_eq!(selects(selector, "", &object), Some(selected), "{selector}");
        }
    }

    #[test]
    fn fields_are_compared_by_their_path_and_missing_ones_are_empty() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n", "count": 3}});
        for (selector, selected) in [
            ("metadata.name=a", true),
            ("spec.nodeName=n,metadata.name!=a", false),
            ("spec.count=3", true),
            ("status.phase=", true),
            ("status.phase!=Failed", true),
            ("spec.nodeName=", false),
        ] {
            assert_eq!(selects("", selector, &object), Some(selected), "{selector}");
        }
    }

    #[test]
    fn an_unknown_form_is_not_guessed() {
        for selector in ["a > 3", "a in web", "a within (b)", "(a)"] {
            assert_eq!(selects(selector, "", &json!({})), None, "{selector}");
        }
    }
}
