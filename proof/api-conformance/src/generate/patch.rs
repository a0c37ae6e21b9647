//! Calls that patch, with each of the four patch types.

use serde_json::{Value, json};

use super::{
    CallGenerator,
    mutate::{at, by_type, mutate, places, put},
    value::{chance, of_another_type, pick},
    write::verb,
};
use crate::call::{Body, Call, Captures, capture};

impl CallGenerator {
    pub(super) fn patch(&mut self, kind: usize, captures: &Captures) -> Call {
        let Some(known) = self.some_object(kind) else {
            return self.create(kind);
        };
        let subresource = self.subresource(kind);
        let language = self.rng.below(10);
        if language < 4 {
            return self.apply(kind, &known, subresource);
        }
        let base = Self::base(&known, captures).unwrap_or_else(|| json!({}));
        let (name, content_type, body) = match language {
            4 | 5 => (
                "json",
                "json-patch+json",
                self.operations(&base, subresource),
            ),
            6 | 7 => (
                "merge",
                "merge-patch+json",
                self.merge(kind, &base, subresource, known.seen[0]),
            ),
            _ => (
                "strategic",
                "strategic-merge-patch+json",
                self.strategic(kind, &base, subresource),
            ),
        };
        let options = self.write_options(kind, false);
        let path = format!("{}?{options}", self.place(kind, &known, subresource));
        let mut call = self.call(
            kind,
            &verb(&format!("patch-{name}"), subresource),
            "PATCH",
            path,
        );
        call.about.object = Some((known.namespace, known.name));
        call.content_type = format!("application/{content_type}");
        call.body = Body::Json(body);
        call
    }

    fn apply(&mut self, kind: usize, known: &super::KnownObject, subresource: &str) -> Call {
        let world = self.world.clone();
        let table = &world.kinds[kind];
        let changes = self.changes();
        let (namespace, name) = if chance(&mut self.rng, 5) {
            (self.namespace(kind), self.new_name(kind))
        } else {
            (known.namespace.clone(), known.name.clone())
        };
        let mut value = self.fresh(kind, (&namespace, &name), changes);
        if subresource == "status" {
            value["status"] = table.status_seed.clone();
            self.change_status(&table.root, &mut value, 1);
            if chance(&mut self.rng, 2) {
                drop(value.as_object_mut().map(|fields| fields.remove("spec")));
            }
        } else if subresource == "scale" {
            value = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": {"replicas": 4}});
        }
        // The reference keeps empty lists of an applied custom object until its next write, which it
        // then stores in any case. Nothing visible shows them.
        if let Some(metadata) = value["metadata"].as_object_mut().filter(|_| table.custom) {
            metadata.retain(|_, field| field.as_array().is_none_or(|items| !items.is_empty()));
        }
        match self.rng.below(40) {
            0 => value["metadata"]["managedFields"] = json!([]),
            1 => {
                value["metadata"]["resourceVersion"] =
                    capture(known.seen[0], "/metadata/resourceVersion").into();
            }
            2 => value["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000".into(),
            3 => value["metadata"]["name"] = "other".into(),
            4 => value = json!({"apiVersion": table.api_version, "kind": table.name}),
            5 => value["kind"] = "Other".into(),
            6 => drop(
                value
                    .as_object_mut()
                    .map(|fields| fields.remove("apiVersion")),
            ),
            _ => {}
        }
        let named = !chance(&mut self.rng, 30);
        let options = self.write_options(kind, named);
        let place = super::KnownObject {
            kind,
            namespace: namespace.clone(),
            name: name.clone(),
            seen: vec![],
        };
        let path = format!("{}?{options}", self.place(kind, &place, subresource));
        let mut call = self.call(kind, &verb("apply", subresource), "PATCH", path);
        call.about.object = Some((namespace, name));
        call.content_type = "application/apply-patch+yaml".into();
        call.body = Body::Json(value);
        call
    }

    fn operations(&mut self, base: &Value, subresource: &str) -> Value {
        let mut base = base.clone();
        let mut places: Vec<_> = places(&base);
        if subresource == "scale" {
            places = vec![vec!["spec".into(), "replicas".into()]];
        }
        let count = *pick(&mut self.rng, &[1, 1, 2, 3]);
        let mut out = Vec::new();
        for _ in 0..count {
            let path = pick(&mut self.rng, &places).clone();
            let pointer = pointer(&path);
            let here = at(&mut base, &path).cloned().unwrap_or_default();
            let near = if here.is_string() {
                json!("changed")
            } else if here.is_number() {
                json!(4)
            } else {
                here.clone()
            };
            out.push(match self.rng.below(14) {
                0..=2 => json!({"op": "replace", "path": pointer, "value": near}),
                3 => json!({"op": "replace", "path": pointer, "value": of_another_type(&here, &mut self.rng)}),
                4 => json!({"op": "remove", "path": pointer}),
                5 => json!({"op": "add", "path": "/metadata/labels", "value": {"new": "l"}}),
                6 => json!({"op": "add", "path": "/metadata/annotations/x", "value": "y"}),
                // Not below a value that an earlier operation set to null: the reference panics.
                7 if out.is_empty() => json!({"op": "test", "path": pointer, "value": here}),
                7 | 8 => json!({"op": "test", "path": pointer, "value": "not this"}),
                // A copy of all metadata has values chosen by servers at a path that is not masked.
                9 if pointer != "/metadata" => json!({"op": "copy", "from": pointer, "path": format!("{pointer}2")}),
                10 if !is_mixed(&here) => json!({"op": "move", "from": pointer, "path": "/metadata/labels"}),
                11 => json!({"op": "add", "path": format!("{pointer}/-"), "value": near}),
                12 => pick(&mut self.rng, &[json!({"op": "jump", "path": "/a"}), json!({"path": "/a"}), json!({"op": "add"}), json!({"op": "remove", "path": "/nope/nope"}), json!({"op": "replace", "path": "nope", "value": 1}), json!(7)]).clone(),
                _ => json!({"op": "add", "path": pointer, "value": near}),
            });
        }
        if chance(&mut self.rng, 40) {
            json!({"op": "add"})
        } else {
            out.into()
        }
    }

    fn merge(&mut self, kind: usize, base: &Value, subresource: &str, stale: usize) -> Value {
        let world = self.world.clone();
        let table = &world.kinds[kind];
        if subresource == "scale" {
            return json!({"spec": {"replicas": *pick(&mut self.rng, &[0, 2, -3])}});
        }
        let mut patch = json!({});
        if subresource == "status" {
            patch["status"] = table.status_seed.clone();
            self.change_status(&table.root, &mut patch, 1);
            return patch;
        }
        for _ in 0..=self.changes() {
            if chance(&mut self.rng, 3) {
                let mut places = places(base);
                places.retain(|path| path.iter().all(|key| key.parse::<usize>().is_err()));
                let path = pick(&mut self.rng, &places).clone();
                if path[0] != "metadata" || path.len() > 1 {
                    put(&mut patch, &path, Value::Null);
                }
            } else if let Some((path, value)) =
                by_type(&world.types, &table.root, base, &mut self.rng)
            {
                let whole = path.iter().position(|key| key.parse::<usize>().is_ok());
                match whole {
                    Some(end) => {
                        let mut list = base
                            .pointer(&pointer(&path[..end]))
                            .cloned()
                            .unwrap_or(json!([]));
                        put(&mut list, &path[end..], value);
                        put(&mut patch, &path[..end], list);
                    }
                    None => put(&mut patch, &path, value),
                }
            }
        }
        match self.rng.below(40) {
            0 => {
                patch["metadata"]["resourceVersion"] =
                    capture(stale, "/metadata/resourceVersion").into();
            }
            1 => patch["metadata"]["managedFields"] = json!([]),
            2 => patch["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000".into(),
            3 => patch["metadata"]["name"] = "other".into(),
            4 => patch = json!([1]),
            5 => mutate(&world.types, &table.root, &mut patch, &mut self.rng),
            6 => patch["unknown"] = json!({"a": 1}),
            7 => patch["metadata"]["finalizers"] = Value::Null,
            _ => {}
        }
        patch
    }

    /// Like a merge patch, with lists whose items are merged and with directives.
    fn strategic(&mut self, kind: usize, base: &Value, subresource: &str) -> Value {
        let mut patch = self.merge(kind, base, subresource, 0);
        if !patch.is_object() {
            return patch;
        }
        let list: Option<(&str, &str)> = match self.world.kinds[kind].name.as_str() {
            "Pod" => Some(("/spec/containers", "name")),
            "Deployment" => Some(("/spec/template/spec/containers", "name")),
            "Service" => Some(("/spec/ports", "port")),
            _ => None,
        };
        let path = |pointer: &str| {
            pointer[1..]
                .split('/')
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        if let (Some((list, key)), "", true) = (list, subresource, chance(&mut self.rng, 2)) {
            let items = base
                .pointer(list)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let known = items.first().map_or(json!("x"), |item| item[key].clone());
            let drawn = self.rng.below(6);
            if matches!(drawn, 2 | 3) {
                // Of two problems of a patch, the order of a map decides which is reported.
                patch = json!({});
            }
            let changed = match drawn {
                0 => json!([{key: known, "$patch": "delete"}]),
                1 => json!([{key: known, "$patch": "replace", "name": "r"}]),
                2 => json!([{"name": "fresh", "image": "new", "port": 99}, {"$patch": "merge"}]),
                3 => json!([{"image": "nokey"}]),
                4 => json!([{key: known, "image": "changed:1", "protocol": "UDP"}]),
                _ => json!([{"$patch": "replace"}, {"name": "only", "image": "one", "port": 7}]),
            };
            put(&mut patch, &path(list), changed);
        }
        match self.rng.below(30) {
            0 => {
                // The order of a map decides about what is removed and added at once.
                if let Some(metadata) = patch["metadata"].as_object_mut() {
                    metadata.remove("finalizers");
                }
                patch["metadata"]["$deleteFromPrimitiveList/finalizers"] =
                    json!(["example.com/hold"]);
            }
            1 => patch["metadata"]["$setElementOrder/finalizers"] = json!(["example.com/hold"]),
            2 => patch["metadata"]["labels"] = json!({"$patch": "replace", "only": "this"}),
            3 => patch["metadata"]["labels"] = json!({"$patch": "delete"}),
            4 => patch["metadata"]["annotations"] = json!({"$retainKeys": ["a"], "a": "b"}),
            // As above: there must be no other problem.
            5 => patch = json!({"metadata": {"labels": {"$patch": "strange"}}}),
            6 => patch["metadata"]["finalizers"] = json!(["example.com/other"]),
            _ => {}
        }
        compare_keys(&mut patch);
        patch
    }
}

/// Makes the merge keys of list items comparable: otherwise the reference closes the connection.
fn compare_keys(value: &mut Value) {
    const KEYS: [&str; 6] = ["containerPort", "ip", "name", "port", "type", "uid"];
    match value {
        Value::Object(fields) => fields.values_mut().for_each(compare_keys),
        Value::Array(items) => {
            for item in items {
                for key in KEYS {
                    if let Some(field) = item.get_mut(key)
                        && (field.is_array() || field.is_object())
                    {
                        *field = "odd".into();
                    }
                }
                compare_keys(item);
            }
        }
        _ => {}
    }
}

/// A JSON pointer.
fn pointer(path: &[String]) -> String {
    path.iter().fold(String::new(), |out, key| {
        out + "/" + &key.replace('~', "~0").replace('/', "~1")
    })
}
/// Whether labels with this value would have several problems. The reference reports the one whose
/// field is declared first in its own source.
fn is_mixed(value: &Value) -> bool {
    let fields = value.as_object().into_iter().flatten();
    let mut wrong = fields
        .map(|(_, value)| std::mem::discriminant(value))
        .filter(|kind| *kind != std::mem::discriminant(&Value::Null))
        .filter(|kind| *kind != std::mem::discriminant(&Value::String(String::new())));
    let first = wrong.next();
    wrong.any(|kind| Some(kind) != first)
}
