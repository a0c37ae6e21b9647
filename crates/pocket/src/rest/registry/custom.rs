//! Custom resources: how definitions change the table.

use std::sync::Arc;

use serde_json::Value;

use super::{Registry, Resource, SchemaSource, Served};
use crate::{
    crd::{Definition, ResourceScope},
    discovery::{Subresource, group_version},
    kinds::{KindRole, Rules, Traits, metadata},
    store::{Change, Object},
};

const VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

impl Registry {
    /// Applies a committed change of a definition: the resource is served once its names were
    /// accepted, until the definition is removed.
    ///
    /// Runs inside of the commit (see [`Store::follow`](crate::store::Store::follow)), so nothing
    /// here may use the store.
    pub(crate) fn follow(&self, change: Change, definition: &Object) {
        let value = definition.value();
        if change == Change::Deleted {
            let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
            let spec = &value["spec"];
            self.undefine(&text(&spec["group"]), &text(&spec["names"]["plural"]));
        } else if is_established(&value) {
            self.define(Definition::read(&value));
        }
    }

    /// Whether a kind is built in: a definition of the same name is stored, but has no effect.
    fn is_built_in(&self, group: &str, plural: &str) -> bool {
        let groups = self.groups();
        let mut groups = groups.iter().filter(|((name, _), _)| name == group);
        groups.any(|(_, plurals)| {
            plurals
                .get(plural)
                .is_some_and(|served| !served.is_custom())
        })
    }

    /// Serves the resource of `definition`, in place of its previous version.
    pub fn define(&self, definition: Definition) {
        let definition = Arc::new(definition);
        if self.is_built_in(&definition.group, &definition.names.plural) {
            return;
        }
        self.change(|tables| {
            tables.remove(&definition.group, &definition.names.plural);
            for (index, version) in definition.versions.iter().enumerate() {
                let served = Arc::new(served(&definition, index));
                if version.storage {
                    tables.keep(served.clone());
                }
                if version.served {
                    tables.serve(served);
                }
            }
        });
    }

    /// Stops serving a custom resource.
    pub fn undefine(&self, group: &str, plural: &str) {
        if self.is_built_in(group, plural) {
            return;
        }
        self.change(|tables| tables.remove(group, plural));
    }
}

/// Whether the names of a definition were accepted, so that it is served.
pub(in crate::rest) fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

fn served(definition: &Arc<Definition>, index: usize) -> Served {
    let version = &definition.versions[index];
    let stored = definition
        .versions
        .iter()
        .position(|version| version.storage)
        .unwrap_or(index);
    let names = &definition.names;
    let group = &definition.group;
    Served {
        resource: Arc::new(Resource {
            group: group.clone(),
            plural: names.plural.clone(),
            singular: names.singular.clone(),
            kind: names.kind.clone(),
            list_kind: names.list_kind.clone(),
            short_names: names.short_names.clone(),
            categories: names.categories.clone(),
            namespaced: definition.scope == ResourceScope::Namespaced,
            bucket: format!("{group}/{}", names.plural).into(),
            storage: group_version(group, &definition.versions[stored].name),
        }),
        version: version.name.clone(),
        api_version: group_version(group, &version.name),
        verbs: VERBS.map(str::to_owned).to_vec(),
        subresources: subresources(definition, index),
        shape: SchemaSource::Custom {
            definition: definition.clone(),
            version: index,
            stored,
            has_defaults: version.open_api.to_string().contains("\"default\":"),
        },
        rules: Rules {
            traits: Traits {
                generation: true,
                unconditional_update: false,
                status: version.has_status,
                ..Traits::USUAL
            },
            warnings: metadata::finalizer_warnings,
            ..Rules::SHAPE_ONLY
        },
        role: KindRole::Ordinary,
    }
}

fn subresources(definition: &Definition, index: usize) -> Vec<Subresource> {
    let version = &definition.versions[index];
    let subresource = |name: &str, group: &str, version: &str, kind: &str| Subresource {
        name: name.into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs: ["get", "patch", "update"].map(str::to_owned).to_vec(),
    };
    let mut all = Vec::new();
    if version.has_status {
        all.push(subresource(
            "status",
            &definition.group,
            &version.name,
            &definition.names.kind,
        ));
    }
    if version.scale.is_some() {
        all.push(subresource("scale", "autoscaling", "v1", "Scale"));
    }
    all
}
