//! The columns of the served kinds, one kind a line.

use anyhow::Context;
use serde_json::Value;

use super::served::Served;

/// Kinds that have no columns of their own are left out: they print a name and an age.
pub(super) fn render(columns: &Value, served: &Served) -> anyhow::Result<String> {
    let published = columns["columns"]
        .as_object()
        .context("columns.json has no columns")?;
    let mut lines = Vec::new();
    for resource in served.resources() {
        if let Some(columns) = published.get(resource) {
            lines.push(format!("\"{resource}\":{columns}"));
        }
    }
    Ok(format!("{{\n{}\n}}\n", lines.join(",\n")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_served_kinds_keep_their_columns() {
        let served = Served::parse("v1 pods\nv1 bindings").unwrap();
        let all = json!({"columns": {"v1/pods": [{"name": "Name"}], "v1/nodes": []}});
        let text = render(&all, &served).unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, json!({"v1/pods": [{"name": "Name"}]}));
    }
}
