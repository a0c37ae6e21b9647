//! The claims of a service account token.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CREDENTIAL_ID, User};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The audiences that it is valid for.
    pub aud: Vec<String>,
    /// The second at which it expires.
    pub exp: i64,
    /// The second at which it was issued.
    pub iat: i64,
    /// The issuer.
    pub iss: String,
    /// The unique id of the token.
    pub jti: String,
    /// The account and the objects that the token is bound to.
    #[serde(rename = "kubernetes.io")]
    pub account: Account,
    /// The second from which it is valid.
    pub nbf: i64,
    /// The name of the user.
    pub sub: String,
}

/// The account of a token, and the objects it is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The namespace of the account.
    pub namespace: String,
    /// The node it is bound to; for a pod, the node the pod runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    /// The pod it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    /// The secret it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
    /// The account.
    pub serviceaccount: Reference,
    /// The second by which its holder should have renewed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnafter: Option<i64>,
}

/// A reference to one object, by name and uid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

impl Account {
    /// The user name of the account.
    pub fn name(&self) -> String {
        let (namespace, name) = (&self.namespace, &self.serviceaccount.name);
        format!("system:serviceaccount:{namespace}:{name}")
    }
}

impl Claims {
    /// The user that the token authenticates.
    pub fn user(&self) -> User {
        let account = &self.account;
        let mut extra = BTreeMap::new();
        if !self.jti.is_empty() {
            extra.insert(CREDENTIAL_ID.into(), vec![format!("JTI={}", self.jti)]);
        }
        for (kind, reference) in [("node", &account.node), ("pod", &account.pod)] {
            let Some(reference) = reference else { continue };
            for (part, value) in [("name", &reference.name), ("uid", &reference.uid)] {
                // A pod may name a node that does not exist.
                if !value.is_empty() {
                    let key = format!("authentication.kubernetes.io/{kind}-{part}");
                    extra.insert(key, vec![value.clone()]);
                }
            }
        }
        let groups = vec![
            "system:serviceaccounts".into(),
            format!("system:serviceaccounts:{}", account.namespace),
        ];
        let user = User {
            name: account.name(),
            uid: account.serviceaccount.uid.clone(),
            groups,
            extra,
        };
        user.authenticated()
    }
}
