//! Somebody, as the rest of the server knows them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The name of whoever shows nothing.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of whoever shows nothing.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of everybody else.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group whose members may do everything, whatever roles say.
pub const MASTERS: &str = "system:masters";

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: String,
    /// Unique id, if whoever vouches for the user has one.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// What else is known, such as the token a service account showed.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The name under which the server does what nobody asked for.
const SERVER: &str = "system:apiserver";

impl User {
    /// Whoever shows nothing.
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.into(),
            groups: vec![UNAUTHENTICATED.into()],
            ..Self::default()
        }
    }

    /// The server itself, which may do everything.
    pub(crate) fn server() -> Self {
        Self {
            name: SERVER.into(),
            groups: vec![MASTERS.into()],
            ..Self::default()
        }
    }

    /// Whether this is the server itself: everybody else was asked who they are, and is a member of
    /// the group of those who said so or of those who did not.
    pub(crate) fn is_server(&self) -> bool {
        self.name == SERVER && !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED)
    }

    /// The same user as a member of the group of all who showed who they are.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        if !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.into());
        }
        self
    }

    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// The user as reviews show it; what is empty is left out.
    pub fn to_value(&self) -> Value {
        let mut value = Map::new();
        for (field, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                value.insert(field.into(), json!(text));
            }
        }
        if !self.groups.is_empty() {
            value.insert("groups".into(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            value.insert("extra".into(), json!(self.extra));
        }
        Value::Object(value)
    }
}
