//! The schemas of objects, built-in and custom, in one representation.
//!
//! Patching, managed fields, defaulting, pruning, validation and OpenAPI all walk the same
//! [`Schema`]. Nodes live in an arena ([`Schemas`]) because some built-in types refer to
//! themselves.

mod builtin;
pub mod conform;
mod field_path;
pub(crate) mod go;
mod limits;
mod numbers;
mod struct_fields;

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

pub(crate) use builtin::strings;
pub use builtin::{OBJECT_META, builtin, definitions, of_kind};
pub use field_path::FieldPath;
pub use limits::{Limits, Pattern, ValidationRule};
pub(crate) use numbers::whole_numbers;
pub use struct_fields::{StructFields, Zero};

/// Index of a node in its arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

/// The JSON type of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Type {
    /// A map or a struct.
    Object,
    /// A list.
    Array,
    /// A string.
    String,
    /// A number without fraction.
    Integer,
    /// Any number.
    Number,
    /// true or false.
    Boolean,
    /// An integer or a string (`x-kubernetes-int-or-string`).
    IntOrString,
    /// A quantity: a string, or a number that is read as one.
    Quantity,
    /// Anything at all.
    #[default]
    Any,
}

/// How a list merges under server-side apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ListType {
    /// As a whole.
    #[default]
    Atomic,
    /// Element by element, the element being its own key.
    Set,
    /// Element by element, keyed by these properties.
    Map(Vec<Box<str>>),
}

/// How a field merges under a strategic merge patch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchMarks {
    /// `merge`: lists merge element by element.
    pub merge: bool,
    /// `replace` on a map: replaced as a whole.
    pub replace: bool,
    /// `retainKeys`: keys absent from `$retainKeys` are dropped.
    pub retain_keys: bool,
    /// The property that identifies an element of a merged list of objects.
    pub merge_key: Option<Box<str>>,
}

/// One node of a schema.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// JSON type.
    pub ty: Type,
    /// `format`, such as `int32` or `date-time`.
    pub format: Option<Box<str>>,
    /// Whether `null` is a value of its own and not the same as absent.
    pub nullable: bool,
    /// Unknown properties are kept.
    pub preserve_unknown: bool,
    /// The node is a whole object with apiVersion, kind and metadata.
    pub embedded_resource: bool,
    /// Named properties.
    pub properties: BTreeMap<Box<str>, NodeId>,
    /// The schema of all other properties, for a map.
    pub additional: Option<NodeId>,
    /// The schema of list elements.
    pub items: Option<NodeId>,
    pub required: Vec<Box<str>>,
    /// The value an absent field takes.
    pub default: Option<Value>,
    /// Merge behaviour of a list under server-side apply.
    pub list_type: ListType,
    /// The map or struct is atomic under server-side apply.
    pub atomic_map: bool,
    /// Merge behaviour under a strategic merge patch.
    pub patch: PatchMarks,
    /// Allowed values, empty when all are.
    pub enumeration: Vec<Value>,
    /// Limits on values; only custom resources have them.
    pub limits: Option<Box<Limits>>,
    /// How kube-apiserver holds the fields; only built-in types have it.
    pub held: Option<&'static StructFields>,
}

/// An arena of schema nodes.
#[derive(Debug, Default)]
pub struct Schemas {
    nodes: Vec<Node>,
    names: HashMap<Box<str>, NodeId>,
}

impl Schemas {
    /// Adds a node and returns its id.
    pub fn add(&mut self, node: Node) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node);
        id
    }

    /// Replaces the node at `id`; used for recursive types.
    pub fn set(&mut self, id: NodeId, node: Node) {
        self.nodes[id.0 as usize] = node;
    }

    /// Gives `id` a name.
    pub fn name(&mut self, name: &str, id: NodeId) {
        self.names.insert(name.into(), id);
    }

    /// The schema at `id`.
    pub fn at(&self, id: NodeId) -> Schema<'_> {
        Schema { set: self, id }
    }

    /// The schema called `name`, such as `io.k8s.api.core.v1.Pod`.
    pub fn named(&self, name: &str) -> Option<Schema<'_>> {
        self.names.get(name).map(|&id| self.at(id))
    }

    /// Copies `schema`, with everything it refers to, out of another arena.
    pub fn import(&mut self, schema: Schema<'_>) -> NodeId {
        let mut copied = HashMap::new();
        self.import_into(schema, &mut copied)
    }

    fn import_into(&mut self, schema: Schema<'_>, copied: &mut HashMap<NodeId, NodeId>) -> NodeId {
        if let Some(&id) = copied.get(&schema.id) {
            return id;
        }
        let id = self.add(Node::default());
        copied.insert(schema.id, id);
        let mut node = schema.node().clone();
        for child in node.children_mut() {
            *child = self.import_into(schema.set.at(*child), copied);
        }
        self.set(id, node);
        id
    }
}

impl Node {
    fn children_mut(&mut self) -> impl Iterator<Item = &mut NodeId> {
        let limits = self
            .limits
            .iter_mut()
            .flat_map(|limits| limits.children_mut());
        self.properties
            .values_mut()
            .chain(self.additional.iter_mut())
            .chain(self.items.iter_mut())
            .chain(limits)
    }
}

/// A node together with its arena.
#[derive(Debug, Clone, Copy)]
pub struct Schema<'a> {
    set: &'a Schemas,
    id: NodeId,
}

impl<'a> Schema<'a> {
    pub fn node(self) -> &'a Node {
        &self.set.nodes[self.id.0 as usize]
    }

    pub fn id(self) -> NodeId {
        self.id
    }

    /// Whether this is a built-in type, which kube-apiserver holds as a struct: a struct inside it
    /// exists, empty, before any client sets it.
    pub fn is_builtin(self) -> bool {
        std::ptr::eq(self.set, builtin())
    }

    /// Another node of the same arena.
    pub fn sibling(self, id: NodeId) -> Schema<'a> {
        self.set.at(id)
    }

    /// The schema of a named property, ignoring `additional`.
    pub fn property(self, name: &str) -> Option<Schema<'a>> {
        self.node().properties.get(name).map(|&id| self.set.at(id))
    }

    /// A named property with its name as the schema holds it.
    pub fn named_property(self, name: &str) -> Option<(&'a str, Schema<'a>)> {
        let (name, &id) = self.node().properties.get_key_value(name)?;
        Some((name, self.set.at(id)))
    }

    /// The schema of the value under `key`: a named property, else the map's value type.
    pub fn field(self, key: &str) -> Option<Schema<'a>> {
        self.property(key).or_else(|| self.additional())
    }

    /// The schema of a map's values.
    pub fn additional(self) -> Option<Schema<'a>> {
        self.node().additional.map(|id| self.set.at(id))
    }

    /// The schema of list elements.
    pub fn items(self) -> Option<Schema<'a>> {
        self.node().items.map(|id| self.set.at(id))
    }
}
