//! A hash of an object's content.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// A hash that is the same for two objects that differ only in their revision and the order of
/// their fields.
pub fn fingerprint(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    mix(object, &mut hasher, 0);
    hasher.finish()
}

/// `depth` tells whether `metadata.resourceVersion` is the object's own.
fn mix(value: &Value, hasher: &mut DefaultHasher, depth: usize) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            for (key, field) in fields {
                if depth == 1 && key == "resourceVersion" {
                    continue;
                }
                key.hash(hasher);
                let own = depth == 0 && key == "metadata";
                mix(field, hasher, if own { 1 } else { 2 });
            }
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            for item in items {
                mix(item, hasher, 2);
            }
        }
        Value::String(text) => text.hash(hasher),
        other => other.to_string().hash(hasher),
    }
    std::mem::discriminant(value).hash(hasher);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fingerprint;

    #[test]
    fn only_the_own_revision_does_not_count() {
        let object = |revision: &str, other: &str| {
            fingerprint(&json!({
                "metadata": {"name": "x", "resourceVersion": revision},
                "spec": {"metadata": {"resourceVersion": other}},
            }))
        };
        assert_eq!(object("1", "a"), object("2", "a"));
        assert_ne!(object("1", "a"), object("1", "b"));
        assert_ne!(
            fingerprint(&json!({"a": "1"})),
            fingerprint(&json!({"a": 1}))
        );
    }
}
