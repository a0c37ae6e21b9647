//! The roles and bindings in force, indexed by subject.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{PolicyRule, Requester};
use crate::store::{Change, Object};

#[derive(Debug, Default)]
pub struct Policy {
    cluster_roles: BTreeMap<Box<str>, ClusterRole>,
    /// By namespace and name.
    roles: HashMap<Box<str>, Roles>,
    /// By namespace; the empty key has the cluster-wide ones.
    bindings: HashMap<Box<str>, Bindings>,
}

/// The rules of the roles of one namespace, by name.
type Roles = HashMap<Box<str>, Arc<[PolicyRule]>>;

#[derive(Debug)]
struct ClusterRole {
    rules: Arc<[PolicyRule]>,
    labels: Map<String, Value>,
    aggregates: bool,
}

/// The bindings of one namespace.
#[derive(Debug, Default)]
struct Bindings {
    all: HashMap<Box<str>, Arc<Binding>>,
    /// By user name, then by the binding's.
    users: HashMap<Box<str>, NamedBindings>,
    /// By group name, then by the binding's.
    groups: HashMap<Box<str>, NamedBindings>,
}

type NamedBindings = BTreeMap<Box<str>, Arc<Binding>>;

/// A RoleBinding or ClusterRoleBinding.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: Box<str>,
    /// Empty if it is cluster-wide.
    pub(super) namespace: Box<str>,
    pub(super) role: RoleRef,
    pub(super) subjects: Vec<BindingSubject>,
}

/// The role that a binding grants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RoleRef {
    /// `ClusterRole` or `Role`.
    pub kind: Box<str>,
    pub name: Box<str>,
}

/// A subject to which a binding grants a role.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BindingSubject {
    pub(super) kind: Box<str>,
    pub(super) name: Box<str>,
    pub(super) namespace: Box<str>,
}

impl BindingSubject {
    /// The user name of a service account.
    fn account(&self, home: &str) -> Box<str> {
        let namespace = match &*self.namespace {
            "" => home,
            namespace => namespace,
        };
        format!("system:serviceaccount:{namespace}:{}", self.name).into()
    }

    pub(super) fn is(&self, who: Requester<'_>, home: &str) -> bool {
        match &*self.kind {
            "User" => *self.name == *who.name,
            "Group" => who.groups.iter().any(|group| *self.name == **group),
            _ => *self.account(home) == *who.name,
        }
    }
}

/// A parsed change of a role or of a binding. Parsing takes longer than applying, so it happens
/// outside the lock.
#[derive(Debug)]
pub struct PolicyUpdate {
    namespace: Box<str>,
    name: Box<str>,
    what: UpdatedObject,
}

/// The state after the change, if there is any.
#[derive(Debug)]
enum UpdatedObject {
    ClusterRole(Option<ClusterRole>),
    Role(Option<Arc<[PolicyRule]>>),
    Binding(Option<Binding>),
}

impl PolicyUpdate {
    fn of(object: &Object, what: UpdatedObject) -> Self {
        let metadata = object.metadata();
        Self {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            what,
        }
    }

    /// Parses a change of a cluster role.
    pub fn cluster_role(change: Change, object: &Object) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct StoredClusterRole {
            rules: Option<Vec<PolicyRule>>,
            aggregation_rule: Option<Value>,
        }
        let role = (change != Change::Deleted).then(|| {
            let read: StoredClusterRole = serde_json::from_slice(object.json()).unwrap_or_default();
            ClusterRole {
                rules: read.rules.unwrap_or_default().into(),
                labels: object.metadata().labels.clone(),
                aggregates: read.aggregation_rule.is_some(),
            }
        });
        Self::of(object, UpdatedObject::ClusterRole(role))
    }

    /// Parses a change of a role.
    pub fn role(change: Change, object: &Object) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct StoredRole {
            rules: Option<Vec<PolicyRule>>,
        }
        let rules = (change != Change::Deleted).then(|| {
            let read: StoredRole = serde_json::from_slice(object.json()).unwrap_or_default();
            read.rules.unwrap_or_default().into()
        });
        Self::of(object, UpdatedObject::Role(rules))
    }

    /// Parses a change of a binding, of either kind.
    pub fn binding(change: Change, object: &Object) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct StoredBinding {
            role_ref: RoleRef,
            subjects: Option<Vec<BindingSubject>>,
        }
        let metadata = object.metadata();
        let binding = (change != Change::Deleted).then(|| {
            let read: StoredBinding = serde_json::from_slice(object.json()).unwrap_or_default();
            Binding {
                name: metadata.name.clone(),
                namespace: metadata.namespace.clone(),
                role: read.role_ref,
                subjects: read.subjects.unwrap_or_default(),
            }
        });
        Self::of(object, UpdatedObject::Binding(binding))
    }
}

impl Policy {
    /// Applies a change.
    pub fn take(&mut self, update: PolicyUpdate) {
        let PolicyUpdate {
            namespace,
            name,
            what,
        } = update;
        match what {
            UpdatedObject::ClusterRole(Some(role)) => {
                self.cluster_roles.insert(name, role);
            }
            UpdatedObject::ClusterRole(None) => {
                self.cluster_roles.remove(&name);
            }
            UpdatedObject::Role(rules) => self.take_role(&namespace, name, rules),
            UpdatedObject::Binding(binding) => self.take_binding(&namespace, &name, binding),
        }
    }

    fn take_role(&mut self, namespace: &str, name: Box<str>, rules: Option<Arc<[PolicyRule]>>) {
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

    /// The rules of the role that a binding in `namespace` refers to.
    pub fn rules(&self, role: &RoleRef, namespace: &str) -> Option<&Arc<[PolicyRule]>> {
        match &*role.kind {
            "ClusterRole" => self.cluster_roles.get(&role.name).map(|role| &role.rules),
            _ => self.roles.get(namespace)?.get(&role.name),
        }
    }

    /// The bindings that name `who` or one of their groups, the cluster-wide ones first. A binding
    /// that names them twice is returned twice.
    pub(super) fn bindings<'a>(
        &'a self,
        who: Requester<'a>,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Binding> {
        let everywhere = self.bindings.get("");
        let here = (!namespace.is_empty()).then(|| self.bindings.get(namespace));
        let places = everywhere.into_iter().chain(here.flatten());
        places.flat_map(move |bindings| bindings.of(who))
    }

    /// Names of the cluster roles with an aggregation rule.
    pub(super) fn aggregating(&self) -> impl Iterator<Item = &str> {
        let roles = self.cluster_roles.iter();
        roles
            .filter(|(_, role)| role.aggregates)
            .map(|(name, _)| &**name)
    }

    /// The cluster roles in the order of their names: name, labels, rules.
    pub(super) fn cluster_roles(
        &self,
    ) -> impl Iterator<Item = (&str, &Map<String, Value>, &[PolicyRule])> + Clone {
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

    /// The index that a subject of a binding belongs to, and its key there.
    fn place(
        &mut self,
        subject: &BindingSubject,
        binding: &Binding,
    ) -> (&mut HashMap<Box<str>, NamedBindings>, Box<str>) {
        match &*subject.kind {
            "Group" => (&mut self.groups, subject.name.clone()),
            "User" => (&mut self.users, subject.name.clone()),
            _ => (&mut self.users, subject.account(&binding.namespace)),
        }
    }

    fn of<'a>(&'a self, who: Requester<'a>) -> impl Iterator<Item = &'a Binding> {
        let own = self.users.get(who.name);
        let groups = who
            .groups
            .iter()
            .filter_map(|group| self.groups.get(&**group));
        let named = own.into_iter().chain(groups);
        named.flat_map(|named| named.values().map(|binding| &**binding))
    }
}
