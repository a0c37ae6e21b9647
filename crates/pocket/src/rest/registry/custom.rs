//! Custom resources: what a definition adds to the table and takes from it.

use std::sync::Arc;

use super::{Groups, Registry, Resource, Served, Shape, insert};
use crate::{
    crd::{Definition, Scope},
    discovery::{Subresource, group_version},
    kinds::{Role, Rules, Traits, metadata},
};

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

impl Registry {
    /// Serves what `definition` defines, in place of what it defined before.
    pub fn define(&self, definition: Definition) {
        let definition = Arc::new(definition);
        self.change(|groups| {
            remove(groups, &definition.group, &definition.names.plural);
            for (index, version) in definition.versions.iter().enumerate() {
                if version.served {
                    insert(groups, Arc::new(served(&definition, index)));
                }
            }
        });
    }

    /// Stops serving a custom resource.
    pub fn undefine(&self, group: &str, plural: &str) {
        self.change(|groups| remove(groups, group, plural));
    }
}

fn remove(groups: &mut Groups, group: &str, plural: &str) {
    for ((name, _), plurals) in groups.iter_mut() {
        if name == group {
            plurals.remove(plural);
        }
    }
    groups.retain(|_, plurals| !plurals.is_empty());
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
            namespaced: definition.scope == Scope::Namespaced,
            bucket: format!("{group}/{}", names.plural).into(),
            storage: group_version(group, &definition.versions[stored].name),
        }),
        version: version.name.clone(),
        api_version: group_version(group, &version.name),
        verbs: VERBS.map(str::to_owned).to_vec(),
        subresources: subresources(definition, index),
        shape: Shape::Custom {
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
        role: Role::Ordinary,
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
