//! How a real server holds the fields of the served types, as `data/fields.txt`.
//!
//! One line a type. A field is `json-name:type`; in front of the type, `*` says that the field is
//! optional and a zero is kept, `=` that it is written whether it was set or not, `~` that a zero is
//! left out whatever it is, and none of them that a zero is left out unless it is a struct. `^VolumeSource` after the type names the struct whose fields appear here.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::discovery::list;

/// The text of `data/fields.txt`, for the definitions in `kept`.
pub(super) fn render(facts: &Value, kept: &Value) -> String {
    let none = Map::new();
    let messages = facts["messages"].as_object().unwrap_or(&none);
    let mut text =
        String::from("# Written by `cargo xtask generate`; see xtask/src/generate/fields.rs.\n");
    for name in kept.as_object().unwrap_or(&none).keys() {
        let Some(entries) = messages.get(name) else {
            continue;
        };
        text.push_str(name);
        fields(messages, entries, "", &mut text);
        text.push('\n');
    }
    text
}

fn fields(messages: &Map<String, Value>, entries: &Value, inside: &str, text: &mut String) {
    for entry in list(entries) {
        let word = |key: &str| entry[key].as_str().unwrap_or_default();
        if entry["inline"] == true {
            let outer = word("type");
            let last = outer.rsplit('.').next().unwrap_or_default();
            if let Some(inner) = messages.get(outer) {
                fields(messages, inner, &format!("^{last}"), text);
            }
            continue;
        }
        let is = |word: &str| entry[word] == true;
        let mark = match () {
            () if is("pointer") => "*",
            () if is("omitzero") => "~",
            () if is("omitempty") => "",
            () => "=",
        };
        let ty = word("go").replace(' ', "");
        let _ = write!(text, " {}:{mark}{ty}{inside}", word("name"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_say_what_becomes_of_a_zero() {
        let facts = json!({"messages": {
            "a.Ship": [
                {"name": "name", "go": "string"},
                {"name": "masts", "go": "int32", "omitempty": true, "pointer": true},
                {"name": "flag", "go": "string", "omitempty": true},
                {"name": "", "inline": true, "type": "a.Crew"},
            ],
            "a.Crew": [{"name": "chief", "go": "v1.Chief", "omitempty": true}],
        }});
        let text = render(&facts, &json!({"a.Ship": {}}));
        let line = "a.Ship name:=string masts:*int32 flag:string chief:v1.Chief^Crew\n";
        assert!(text.ends_with(line), "{text}");
    }
}
