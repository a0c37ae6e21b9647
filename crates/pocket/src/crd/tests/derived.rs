//! Definitions that kube derives from Rust types, as this project's own areas make them.

use std::collections::BTreeMap;

use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    crd::{Definition, accept, definition},
    status::Problems,
};

#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "neaptide.dev",
    version = "v1",
    kind = "Berth",
    namespaced,
    status = "BerthStatus",
    shortname = "bt",
    selectable = ".spec.pier",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas"
    ),
    printcolumn(json_path = ".spec.pier", name = "Pier", type_ = "string")
)]
#[serde(rename_all = "camelCase")]
struct BerthSpec {
    pier: String,
    replicas: Option<i32>,
    #[serde(default)]
    tide: Tide,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    ships: Vec<Ship>,
    cargo: Option<Cargo>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
enum Tide {
    #[default]
    Neap,
    Spring,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Ship {
    name: String,
    length: Option<f64>,
}

/// One of its variants, so the schema has a `oneOf`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Cargo {
    Coal { tons: u32 },
    Passengers { names: Vec<String> },
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
struct BerthStatus {
    replicas: i32,
}

fn berth() -> Definition {
    let mut object = serde_json::to_value(Berth::crd()).unwrap();
    definition::default(&mut object);
    let mut problems = Problems::new();
    definition::validate(&object, &mut problems);
    assert!(problems.is_empty(), "{problems}");
    accept(&mut object, "2024-01-01T00:00:00Z", None);
    Definition::read(&object)
}

fn admit(mut object: Value) -> (Value, Vec<String>) {
    let definition = berth();
    let version = definition.storage().unwrap();
    let dropped = version.prune(&mut object);
    assert_eq!(dropped, Vec::<String>::new());
    version.default(&mut object);
    let mut problems = Problems::new();
    version.validate(&object, None, &mut problems);
    (object, problems.iter().map(ToString::to_string).collect())
}

#[test]
fn a_derived_definition_is_accepted_and_read() {
    let definition = berth();
    let version = definition.storage().unwrap();
    assert_eq!(definition.names.short_names, ["bt"]);
    assert!(version.has_status && version.scale.is_some());
    assert_eq!(version.selectable_fields[0].source(), ".spec.pier");
}

#[test]
fn objects_of_a_derived_type_pass_and_wrong_ones_do_not() {
    let cargo = Cargo::Coal { tons: 5 };
    let mut spec = json!({"pier": "north", "ships": [{"name": "Ada", "length": 12.5}],
        "cargo": serde_json::to_value(cargo).unwrap()});
    let (object, problems) = admit(json!({"metadata": {"name": "x"}, "spec": spec}));
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(object["spec"]["tide"], "Neap");
    spec["tide"] = json!("Ebb");
    spec["cargo"] = json!({"coal": {"tons": 1}, "passengers": {"names": []}});
    let (_, problems) = admit(json!({"metadata": {"name": "x"}, "spec": spec}));
    assert_eq!(
        problems,
        [
            r#"<nil>: Invalid value: "": "spec.cargo" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
            r#"spec.tide: Unsupported value: "Ebb": supported values: "Neap", "Spring""#,
        ]
    );
}
