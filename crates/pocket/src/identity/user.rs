//! A user, as the rest of the server sees them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The name of the anonymous user, who presents no credential.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of the anonymous user.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of all other users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group whose members are allowed everything, whatever the roles grant.
pub const MASTERS: &str = "system:masters";

/// The user of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    /// Unique id; empty if the authenticator knows none.
    pub uid: String,
    pub groups: Vec<String>,
    /// Further attributes, such as the id of the token used.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The name under which the server makes its own writes.
const SERVER: &str = "system:apiserver";

impl User {
    /// The anonymous user.
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.into(),
            groups: vec![UNAUTHENTICATED.into()],
            ..Self::default()
        }
    }

    /// The server itself, which is allowed everything.
    pub(crate) fn server() -> Self {
        Self {
            name: SERVER.into(),
            groups: vec![MASTERS.into()],
            ..Self::default()
        }
    }

    /// Whether this is the server itself: every other user is a member of the authenticated or of
    /// the unauthenticated group.
    pub(crate) fn is_server(&self) -> bool {
        self.name == SERVER && !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED)
    }

    /// Adds the user to the group of authenticated users.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        if !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.into());
        }
        self
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// The user as reviews show it; empty fields are left out.
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
