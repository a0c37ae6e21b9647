//! The built-in kinds as they are served: the table of kinds joined with discovery data.

use std::sync::Arc;

use super::{Resource, SchemaSource, Served};
use crate::{
    discovery::{self, Builtin},
    kinds::{self, KindRole},
    schema::{self, Schema},
};

/// Every built-in kind that has rules and a published type.
pub(super) fn all(runs_pods: bool) -> Vec<Served> {
    let mut all: Vec<Served> = discovery::builtins().iter().filter_map(served).collect();
    for served in &mut all {
        served
            .subresources
            .retain(|subresource| is_offered(&subresource.name, runs_pods));
    }
    all
}

/// Whether a subresource is implemented. Those that need a pod runtime are offered only with one.
fn is_offered(subresource: &str, runs_pods: bool) -> bool {
    match subresource {
        "status" | "scale" | "finalize" | "binding" | "eviction" | "token" => true,
        "log" | "exec" | "portforward" => runs_pods,
        _ => false,
    }
}

fn served(facts: &Builtin) -> Option<Served> {
    let (group, version) = (facts.group.as_str(), facts.version.as_str());
    let role = KindRole::of(group, &facts.resource.plural);
    let rules = kinds::rules(group, version, &facts.resource.plural)?;
    let api_version = discovery::group_version(group, version);
    let alias = kinds::alias(group, version, &facts.resource.plural);
    let (stored_group, stored_version) = alias
        .as_ref()
        .map_or((group, version), |alias| (alias.group, alias.version));
    let schema = published(group, version, &facts.resource.kind)?;
    let stored = published(stored_group, stored_version, &facts.resource.kind)?;
    Some(Served {
        resource: Arc::new(Resource {
            group: group.into(),
            plural: facts.resource.plural.clone(),
            singular: facts.resource.singular.clone(),
            kind: facts.resource.kind.clone(),
            list_kind: format!("{}List", facts.resource.kind),
            short_names: facts.resource.short_names.clone(),
            categories: facts.resource.categories.clone(),
            namespaced: facts.resource.namespaced,
            bucket: format!("{stored_group}/{}", facts.resource.plural).into(),
            storage: discovery::group_version(stored_group, stored_version),
        }),
        version: version.into(),
        api_version,
        verbs: facts.resource.verbs.clone(),
        subresources: facts.resource.subresources.clone(),
        shape: SchemaSource::BuiltIn {
            schema,
            stored,
            alias,
        },
        rules,
        role,
    })
}

/// The published type of a kind.
fn published(group: &str, version: &str, kind: &str) -> Option<Schema<'static>> {
    schema::of_kind(group, version, kind)
}
