//! The roles and bindings in force, indexed by whom they are for.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Rule, Who};
use crate::store::{Change, Object};

/// The roles and bindings in force.
#[derive(Debug, Default)]
pub struct Policy {
    cluster_roles: BTreeMap<Box<str>, ClusterRole>,
    /// By namespace and name.
    roles: HashMap<Box<str>, Roles>,
    /// By namespace; the empty one has those that hold everywhere.
    bindings: HashMap<Box<str>, Bindings>,
}

/// The rules of the roles of one namespace, by name.
type Roles = HashMap<Box<str>, Arc<[Rule]>>;

#[derive(Debug)]
struct ClusterRole {
    rules: Arc<[Rule]>,
    labels: Map<String, Value>,
    aggregates: bool,
}

/// The bindings of one namespace.
#[derive(Debug, Default)]
struct Bindings {
    all: HashMap<Box<str>, Arc<Binding>>,
    /// By user name, then by the binding's.
    users: HashMap<Box<str>, Named>,
    /// By group name, then by the binding's.
    groups: HashMap<Box<str>, Named>,
}

type Named = BTreeMap<Box<str>, Arc<Binding>>;

/// Gives a role to somebody.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: Box<str>,
    /// Empty if it holds everywhere.
    pub(super) namespace: Box<str>,
    pub(super) role: RoleRef,
    pub(super) subjects: Vec<Subject>,
}

/// Which role a binding gives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RoleRef {
    /// `ClusterRole` or `Role`.
    pub kind: Box<str>,
    /// Name.
    pub name: Box<str>,
}

/// To whom a binding gives a role.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Subject {
    pub(super) kind: Box<str>,
    pub(super) name: Box<str>,
    pub(super) namespace: Box<str>,
}

impl Subject {
    /// The name of the user that a service account is.
    fn account(&self, home: &str) -> Box<str> {
        let namespace = match &*self.namespace {
            "" => home,
            namespace => namespace,
        };
        format!("system:serviceaccount:{namespace}:{}", self.name).into()
    }

    pub(super) fn is(&self, who: Who<'_>, home: &str) -> bool {
        match &*self.kind {
            "User" => *self.name == *who.name,
            "Group" => who.groups.iter().any(|group| *self.name == **group),
            _ => *self.account(home) == *who.name,
        }
    }
}

/// A change of a role or of a binding, read. Reading takes longer than taking in, and nobody is kept
/// waiting for it.
#[derive(Debug)]
pub struct Update {
    namespace: Box<str>,
    name: Box<str>,
    what: Updated,
}

/// What there is now, if anything.
#[derive(Debug)]
enum Updated {
    ClusterRole(Option<ClusterRole>),
    Role(Option<Arc<[Rule]>>),
    Binding(Option<Binding>),
}

impl Update {
    fn of(object: &Object, what: Updated) -> Self {
        let metadata = object.metadata();
        Self {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            what,
        }
    }

    /// Reads a change of a cluster role.
    pub fn cluster_role(change: Change, object: &Object) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Read {
            rules: Option<Vec<Rule>>,
            aggregation_rule: Option<Value>,
        }
        let role = (change != Change::Deleted).then(|| {
            let read: Read = serde_json::from_slice(object.json()).unwrap_or_default();
            ClusterRole {
                rules: read.rules.unwrap_or_default().into(),
                labels: object.metadata().labels.clone(),
                aggregates: read.aggregation_rule.is_some(),
            }
        });
        Self::of(object, Updated::ClusterRole(role))
    }

    /// Reads a change of a role.
    pub fn role(change: Change, object: &Object) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Read {
            rules: Option<Vec<Rule>>,
        }
        let rules = (change != Change::Deleted).then(|| {
            let read: Read = serde_json::from_slice(object.json()).unwrap_or_default();
            read.rules.unwrap_or_default().into()
        });
        Self::of(object, Updated::Role(rules))
    }

    /// Reads a change of a binding, of either kind.
    pub fn binding(change: Change, object: &Object) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Read {
            role_ref: RoleRef,
            subjects: Option<Vec<Subject>>,
        }
        let metadata = object.metadata();
        let binding = (change != Change::Deleted).then(|| {
            let read: Read = serde_json::from_slice(object.json()).unwrap_or_default();
            Binding {
                name: metadata.name.clone(),
                namespace: metadata.namespace.clone(),
                role: read.role_ref,
                subjects: read.subjects.unwrap_or_default(),
            }
        });
        Self::of(object, Updated::Binding(binding))
    }
}

impl Policy {
    /// Takes in a change.
    pub fn take(&mut self, update: Update) {
        let Update {
            namespace,
            name,
            what,
        } = update;
        match what {
            Updated::ClusterRole(Some(role)) => {
                self.cluster_roles.insert(name, role);
            }
            Updated::ClusterRole(None) => {
                self.cluster_roles.remove(&name);
            }
            Updated::Role(rules) => self.take_role(&namespace, name, rules),
            Updated::Binding(binding) => self.take_binding(&namespace, &name, binding),
        }
    }

    fn take_role(&mut self, namespace: &str, name: Box<str>, rules: Option<Arc<[Rule]>>) {
        let roles = self.roles.entry(namespace.into()).or_default();
        match rules {
            Some(rules) => roles.insert(name, rules),
            None => roles.remove(&name),
        };
        if roles.is_empty() {
            self.roles.remove(namespace);
        }
    }

    fn take_binding(&mut self, namespace: &str, name: &str, binding: Option<Binding>) {
        let bindings = self.bindings.entry(namespace.into()).or_default();
        bindings.remove(name);
        if let Some(binding) = binding {
            bindings.insert(binding);
        }
        if bindings.all.is_empty() {
            self.bindings.remove(namespace);
        }
    }

    /// The rules of a role that a binding in `namespace` refers to.
    pub fn rules(&self, role: &RoleRef, namespace: &str) -> Option<&Arc<[Rule]>> {
        match &*role.kind {
            "ClusterRole" => self.cluster_roles.get(&role.name).map(|role| &role.rules),
            _ => self.roles.get(namespace)?.get(&role.name),
        }
    }

    /// The bindings that name `who` or a group of theirs, those that hold everywhere first. One
    /// that names them twice comes twice.
    pub(super) fn bindings<'a>(
        &'a self,
        who: Who<'a>,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Binding> {
        let everywhere = self.bindings.get("");
        let here = (!namespace.is_empty()).then(|| self.bindings.get(namespace));
        let places = everywhere.into_iter().chain(here.flatten());
        places.flat_map(move |bindings| bindings.of(who))
    }

    /// Names of the cluster roles that take their rules from others.
    pub(super) fn aggregating(&self) -> impl Iterator<Item = &str> {
        let roles = self.cluster_roles.iter();
        roles
            .filter(|(_, role)| role.aggregates)
            .map(|(name, _)| &**name)
    }

    /// The cluster roles in the order of their names: name, labels, rules.
    pub(super) fn cluster_roles(
        &self,
    ) -> impl Iterator<Item = (&str, &Map<String, Value>, &[Rule])> + Clone {
        let roles = self.cluster_roles.iter();
        roles.map(|(name, role)| (&**name, &role.labels, &*role.rules))
    }
}

impl Bindings {
    fn insert(&mut self, binding: Binding) {
        let binding = Arc::new(binding);
        for subject in &binding.subjects {
            let (index, name) = self.place(subject, &binding);
            let named = index.entry(name).or_default();
            named.insert(binding.name.clone(), binding.clone());
        }
        self.all.insert(binding.name.clone(), binding);
    }

    fn remove(&mut self, name: &str) {
        let Some(binding) = self.all.remove(name) else {
            return;
        };
        for subject in &binding.subjects {
            let (index, name) = self.place(subject, &binding);
            if let Some(named) = index.get_mut(&name) {
                named.remove(&binding.name);
                if named.is_empty() {
                    index.remove(&name);
                }
            }
        }
    }

    /// Where a subject of a binding is looked up, and as whom.
    fn place(
        &mut self,
        subject: &Subject,
        binding: &Binding,
    ) -> (&mut HashMap<Box<str>, Named>, Box<str>) {
        match &*subject.kind {
            "Group" => (&mut self.groups, subject.name.clone()),
            "User" => (&mut self.users, subject.name.clone()),
            _ => (&mut self.users, subject.account(&binding.namespace)),
        }
    }

    fn of<'a>(&'a self, who: Who<'a>) -> impl Iterator<Item = &'a Binding> {
        let own = self.users.get(who.name);
        let groups = who
            .groups
            .iter()
            .filter_map(|group| self.groups.get(&**group));
        let named = own.into_iter().chain(groups);
        named.flat_map(|named| named.values().map(|binding| &**binding))
    }
}
