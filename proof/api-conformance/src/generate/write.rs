//! Calls that create, replace and delete objects.

use serde_json::{Value, json};

use super::{
    CallGenerator, KnownObject, MANAGERS,
    mutate::mutate,
    value::{bad_text, chance, pick},
};
use crate::call::{Body, Call, capture};

impl CallGenerator {
    /// Query parameters of a write.
    pub(super) fn write_options(&mut self, kind: usize, apply: bool) -> String {
        let rng = &mut self.rng;
        let mut options = Vec::new();
        if apply || chance(rng, 3) {
            let manager = match rng.below(40) {
                0 => "bad%0Amanager".to_owned(),
                1 => "m".repeat(129),
                2 => String::new(),
                _ => (*pick(rng, &MANAGERS)).to_owned(),
            };
            options.push(format!("fieldManager={manager}"));
        }
        if chance(rng, 4) {
            let level = *pick(
                rng,
                &["Strict", "Strict", "Warn", "Ignore", "Ignore", "Strange"],
            );
            options.push(format!("fieldValidation={level}"));
        }
        let definition = self.world.kinds[kind].name == "CustomResourceDefinition";
        if definition || chance(rng, 9) {
            let dry = if chance(rng, 10) && !definition {
                "Some"
            } else {
                "All"
            };
            options.push(format!("dryRun={dry}"));
        }
        if apply && chance(rng, 3) {
            options.push(format!(
                "force={}",
                *pick(rng, &["true", "true", "false", "maybe"])
            ));
        }
        options.join("&")
    }

    /// A new object: valid at first, then changed.
    pub(super) fn fresh(
        &mut self,
        kind: usize,
        (namespace, name): (&str, &str),
        changes: usize,
    ) -> Value {
        let world = self.world.clone();
        let table = &world.kinds[kind];
        let mut value = pick(&mut self.rng, &table.seeds).clone();
        if !value.is_object() {
            value = json!({});
        }
        value["apiVersion"] = table.api_version.clone().into();
        value["kind"] = table.name.clone().into();
        value["metadata"]["name"] = name.into();
        if table.name == "CustomResourceDefinition" {
            let (plural, group) = name.split_once('.').unwrap_or((name, ""));
            value["spec"]["group"] = group.into();
            value["spec"]["names"] = json!({"plural": plural, "singular": plural.trim_end_matches('s'), "kind": plural.to_uppercase(), "listKind": format!("{}List", plural.to_uppercase())});
        }
        if chance(&mut self.rng, 2) {
            value["metadata"]["labels"]["app"] = (*pick(&mut self.rng, &["web", "db", "x"])).into();
        }
        if !table.namespaced {
            value["metadata"]["labels"]["run"] = format!("r{}", self.seed).into();
        }
        if chance(&mut self.rng, 12) {
            value["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        if chance(&mut self.rng, 12) {
            value["metadata"]["ownerReferences"] = self.owners(namespace);
        }
        for _ in 0..changes {
            mutate(&world.types, &table.root, &mut value, &mut self.rng);
        }
        value
    }

    /// Owners of an object, in its namespace: with others it would be garbage collected at an unknown
    /// time.
    fn owners(&mut self, namespace: &str) -> Value {
        let place = self.namespaces.iter().position(|name| name == namespace);
        let anchor = self.anchors[place.unwrap_or_default()];
        let mut owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "anchor", "uid": capture(anchor, "/metadata/uid")});
        match self.rng.below(8) {
            0 => owner["uid"] = "".into(),
            1 => owner["apiVersion"] = "".into(),
            2 => owner["kind"] = "".into(),
            3 => owner["name"] = Value::Null,
            4 => owner["controller"] = true.into(),
            5 => {
                owner["controller"] = true.into();
                return json!([owner, owner]);
            }
            6 => owner["blockOwnerDeletion"] = true.into(),
            _ => {}
        }
        json!([owner])
    }

    /// The number of changes to a body: often none.
    pub(super) fn changes(&mut self) -> usize {
        *pick(&mut self.rng, &[0, 0, 1, 1, 1, 2, 2, 3])
    }

    pub(super) fn create(&mut self, kind: usize) -> Call {
        let namespace = self.namespace(kind);
        let mut name = self.new_name(kind);
        let mut generate = false;
        match self.rng.below(30) {
            0 => name = bad_text(&mut self.rng),
            1 => {
                if let Some(known) = self.some_object(kind) {
                    name = known.name;
                }
            }
            2..=4 => generate = true,
            _ => {}
        }
        // The content of definitions has its own tests; here it is an object like others.
        let definition = self.world.kinds[kind].name == "CustomResourceDefinition";
        let changes = if definition { 0 } else { self.changes() };
        let mut value = self.fresh(kind, (&namespace, &name), changes);
        if generate && self.world.kinds[kind].name != "CustomResourceDefinition" {
            if let Some(metadata) = value["metadata"].as_object_mut() {
                metadata.remove("name");
                metadata.insert("generateName".into(), format!("{name}-").into());
            }
            name = String::new();
        }
        match self.rng.below(60) {
            0 => value["metadata"]["namespace"] = "elsewhere".into(),
            1 => value["kind"] = "Other".into(),
            2 => value["apiVersion"] = "v9".into(),
            3 => drop(value.as_object_mut().map(|fields| fields.remove("kind"))),
            4 => value["metadata"]["resourceVersion"] = "1".into(),
            5 => value["metadata"]["namespace"] = namespace.clone().into(),
            6 => value["metadata"]["uid"] = "x".into(),
            _ => {}
        }
        let options = self.write_options(kind, false);
        let path = format!(
            "{}?{options}",
            self.world.kinds[kind].collection(&namespace)
        );
        let mut call = self.call(kind, "create", "POST", path);
        call.about.object = Some((namespace, name));
        self.with_body(call, value)
    }

    pub(super) fn with_body(&mut self, mut call: Call, value: Value) -> Call {
        call.content_type = match self.rng.below(40) {
            0 | 1 => "application/yaml",
            2 => "text/plain",
            _ => "application/json",
        }
        .into();
        call.body = Body::Json(value);
        call
    }

    /// The endpoint of an object for a write.
    pub(super) fn subresource(&mut self, kind: usize) -> &'static str {
        let table = &self.world.kinds[kind];
        match self.rng.below(8) {
            0 | 1 if table.status => "status",
            2 if table.scale => "scale",
            3 if chance(&mut self.rng, 12) => "status",
            4 if chance(&mut self.rng, 20) => "scale",
            _ => "",
        }
    }

    pub(super) fn put(&mut self, kind: usize, captures: &crate::call::Captures) -> Call {
        let Some(mut known) = self.some_object(kind) else {
            return self.create(kind);
        };
        let world = self.world.clone();
        let table = &world.kinds[kind];
        let subresource = self.subresource(kind);
        let mut value = Self::base(&known, captures).unwrap_or_else(|| json!({}));
        if table.name == "Service" && chance(&mut self.rng, 12) {
            known.name = self.new_name(kind);
            value = self.fresh(kind, (&known.namespace, &known.name), 0);
        }
        value["apiVersion"] = table.api_version.clone().into();
        let changes = self.changes();
        match subresource {
            "scale" => value = self.scale_body(&known),
            "status" => {
                value["status"] = table.status_seed.clone();
                self.change_status(&table.root, &mut value, changes);
            }
            _ => {
                for _ in 0..changes {
                    mutate(&world.types, &table.root, &mut value, &mut self.rng);
                }
            }
        }
        self.identity_trouble(&known, &mut value);
        let options = self.write_options(kind, false);
        let path = format!("{}?{options}", self.place(kind, &known, subresource));
        let mut call = self.call(kind, &verb("put", subresource), "PUT", path);
        call.about.object = Some((known.namespace, known.name));
        self.with_body(call, value)
    }

    fn scale_body(&mut self, known: &KnownObject) -> Value {
        let replicas = pick(
            &mut self.rng,
            &[
                json!(0),
                json!(1),
                json!(7),
                json!(-1),
                json!("x"),
                json!(5000),
            ],
        )
        .clone();
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": known.name, "namespace": known.namespace}, "spec": {"replicas": replicas}})
    }

    pub(super) fn change_status(&mut self, root: &str, value: &mut Value, changes: usize) {
        let world = self.world.clone();
        let schema = world
            .types
            .resolve(&world.types.of(root)["properties"]["status"])
            .0
            .unwrap_or(root)
            .to_owned();
        if schema == root {
            return;
        }
        for _ in 0..changes {
            mutate(&world.types, &schema, &mut value["status"], &mut self.rng);
        }
    }

    /// Now and then changes the revision, uid, name or namespace to a wrong one.
    pub(super) fn identity_trouble(&mut self, known: &KnownObject, value: &mut Value) {
        let stale = capture(known.seen[0], "/metadata/resourceVersion");
        let metadata = &mut value["metadata"];
        match self.rng.below(40) {
            0 | 1 => metadata["resourceVersion"] = stale.into(),
            2 | 3 => drop(
                metadata
                    .as_object_mut()
                    .map(|fields| fields.remove("resourceVersion")),
            ),
            4 => metadata["resourceVersion"] = "".into(),
            5 => metadata["resourceVersion"] = "x".into(),
            6 => metadata["uid"] = "00000000-0000-0000-0000-000000000000".into(),
            7 => metadata["name"] = "other".into(),
            8 => metadata["namespace"] = "other".into(),
            9 => metadata["managedFields"] = json!([]),
            10 => metadata["managedFields"] = json!([{}]),
            11 => drop(metadata.as_object_mut().map(|fields| fields.remove("uid"))),
            12 => drop(
                metadata
                    .as_object_mut()
                    .map(|fields| fields.remove("creationTimestamp")),
            ),
            13 => metadata["generation"] = 77.into(),
            14 => metadata["deletionTimestamp"] = "2020-01-01T00:00:00Z".into(),
            15 => drop(metadata.as_object_mut().map(|fields| fields.remove("name"))),
            _ => {}
        }
    }

    pub(super) fn delete(&mut self, kind: usize) -> Call {
        let Some(known) = self.some_object(kind) else {
            return self.create(kind);
        };
        let mut query = Vec::new();
        if self.world.kinds[kind].name == "CustomResourceDefinition" || chance(&mut self.rng, 8) {
            query.push("dryRun=All");
        }
        query.push(*pick(
            &mut self.rng,
            &[
                "",
                "",
                "",
                "",
                "gracePeriodSeconds=0",
                "gracePeriodSeconds=5",
                "gracePeriodSeconds=-1",
                "propagationPolicy=Background",
                "propagationPolicy=Nope",
                "orphanDependents=false",
                "gracePeriodSeconds=x",
            ],
        ));
        let path = format!("{}?{}", self.place(kind, &known, ""), query.join("&"));
        let mut call = self.call(kind, "delete", "DELETE", path);
        let number = *known.seen.last().unwrap_or(&0);
        let stale = known.seen[0];
        call.about.object = Some((known.namespace, known.name));
        let options = |extra: Value| {
            let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
            for (key, value) in extra.as_object().into_iter().flatten() {
                body[key] = value.clone();
            }
            body
        };
        let body = match self.rng.below(16) {
            0 => options(json!({"preconditions": {"uid": capture(number, "/metadata/uid")}})),
            1 => options(
                json!({"preconditions": {"resourceVersion": capture(number, "/metadata/resourceVersion")}}),
            ),
            2 => options(
                json!({"preconditions": {"resourceVersion": capture(stale, "/metadata/resourceVersion")}}),
            ),
            3 => options(json!({"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}})),
            4 => options(json!({"gracePeriodSeconds": *pick(&mut self.rng, &[0, 1, 30, -5])})),
            5 => options(
                json!({"propagationPolicy": *pick(&mut self.rng, &["Background", "Sideways"])}),
            ),
            6 => options(json!({"orphanDependents": false, "propagationPolicy": "Background"})),
            7 => options(json!({"unknown": 1, "dryRun": ["Half"]})),
            8 => json!({"kind": "Other", "apiVersion": "v1"}),
            9 => options(json!({"dryRun": ["All"]})),
            _ => return call,
        };
        call.content_type = "application/json".into();
        call.body = Body::Json(body);
        call
    }

    pub(super) fn delete_many(&mut self, kind: usize) -> Call {
        let namespace = self.namespace(kind);
        let query = *pick(
            &mut self.rng,
            &[
                "labelSelector=app%3Ddb",
                "labelSelector=app%3Dx,!nope",
                "labelSelector=app+in+(",
                "fieldSelector=metadata.name%3Dnone",
                "fieldSelector=nope%3D1",
                "labelSelector=app%3Ddb&dryRun=All",
                "labelSelector=app%3Dx&limit=1",
                "labelSelector=app%3Dx&resourceVersion=x",
            ],
        );
        let path = format!("{}?{query}", self.world.kinds[kind].collection(&namespace));
        self.call(kind, "deletecollection", "DELETE", path)
    }
}

/// The name of a verb on an endpoint.
pub(super) fn verb(verb: &str, subresource: &str) -> String {
    if subresource.is_empty() {
        verb.to_owned()
    } else {
        format!("{verb}/{subresource}")
    }
}
