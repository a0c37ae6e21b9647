//! What an area registers: its name, error codes, definitions, rights, kinds, check and metrics.
//!
//! An [`Area`] is a constant of the area's crate, usually `area::AREA`. The binary has one list of areas, and
//! its commands walk it: `neap explain CODE` the codes, `neap explain KIND/NAME` and `neap status` the kinds,
//! `neap check AREA` the check, `neap definitions` and `neap rights` the rest. Everything in an area is pure:
//! functions get objects and the time, and return texts and findings.

mod finding;
mod kind;
mod rights;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::rbac::v1::{ClusterRole, PolicyRule},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

pub use self::{
    finding::{AreaCheck, CheckFacts, Finding, Level},
    kind::{AreaKind, ResourceType},
    rights::{Right, Role, RoleScope},
};
use crate::why::{self, CatalogueEntry};

/// What an area adds to the program. `..Area::new(name, title)` fills in what the area does not have.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    /// The word of its command and of its check: `idle`.
    pub name: &'static str,
    /// What it is about, in plural and lower case: `services that sleep`.
    pub title: &'static str,
    /// Its error codes, `NT-<NAME>-<number>`.
    pub codes: &'static [CatalogueEntry],
    /// Builds the definitions of its custom resources.
    pub definitions: fn() -> Vec<CustomResourceDefinition>,
    /// What its processes may do in a cluster.
    pub roles: &'static [Role],
    /// The kinds that users ask about.
    pub kinds: &'static [AreaKind],
    /// Kinds that users ask about as well, and whose definitions another program installs.
    pub foreign_kinds: &'static [AreaKind],
    /// What `neap check` looks at.
    pub check: Option<AreaCheck>,
    /// The metrics of its processes.
    pub metrics: &'static [Metric],
}

/// A metric, as `/metrics` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// The name without suffix: `neap_release_imports`.
    pub name: &'static str,
    /// What it counts or measures.
    pub help: &'static str,
}

impl Area {
    /// An area that has only a name and a title.
    pub const fn new(name: &'static str, title: &'static str) -> Self {
        Self {
            name,
            title,
            codes: &[],
            definitions: Vec::new,
            roles: &[],
            kinds: &[],
            foreign_kinds: &[],
            check: None,
            metrics: &[],
        }
    }

    /// The role that lets everybody who has the role `view` read the kinds of this area; those who have `edit` or
    /// `admin` have it with them. None if the area has no kinds.
    pub fn view_role(&self) -> Option<ClusterRole> {
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let defined = (self.definitions)().into_iter();
        let defined = defined.map(|it| (it.spec.group, it.spec.names.plural));
        let foreign = self.foreign_kinds.iter().map(|kind| {
            let resource = &kind.resource;
            (resource.group().to_owned(), resource.plural.to_owned())
        });
        for (group, plural) in defined.chain(foreign) {
            groups.entry(group).or_default().insert(plural);
        }
        let rules: Vec<_> = groups
            .into_iter()
            .map(|(group, resources)| PolicyRule {
                api_groups: Some(vec![group]),
                resources: Some(resources.into_iter().collect()),
                verbs: ["get", "list", "watch"].map(str::to_owned).into(),
                ..PolicyRule::default()
            })
            .collect();
        let label = "rbac.authorization.k8s.io/aggregate-to-view".to_owned();
        (!rules.is_empty()).then(|| ClusterRole {
            metadata: ObjectMeta {
                name: Some(format!("neap-{}-view", self.name)),
                labels: Some([(label, "true".to_owned())].into()),
                ..ObjectMeta::default()
            },
            rules: Some(rules),
            ..ClusterRole::default()
        })
    }

    /// What is wrong with the registration, in words for its author. A test of every area expects nothing.
    pub fn problems(&self) -> Vec<String> {
        let prefix = format!("NT-{}-", self.name.to_ascii_uppercase());
        let mut problems: Vec<_> = self
            .codes
            .iter()
            .flat_map(|entry| why::problems(entry, &prefix))
            .collect();
        let defined = (self.definitions)();
        for kind in self.kinds {
            let names = |one: &CustomResourceDefinition| {
                one.spec.names.kind == kind.resource.name
                    && one.spec.names.plural == kind.resource.plural
                    && one.spec.group == kind.resource.group()
            };
            if !defined.iter().any(names) {
                problems.push(format!("{} has no definition", kind.resource.name));
            }
        }
        for role in self.roles {
            problems.extend(role.problems());
        }
        for (at, metric) in self.metrics.iter().enumerate() {
            if self.metrics[..at].iter().any(|one| one.name == metric.name) {
                problems.push(format!("the metric {} is listed twice", metric.name));
            }
        }
        problems
    }
}
