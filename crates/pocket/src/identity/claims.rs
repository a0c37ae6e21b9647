//! What a token of a service account says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CREDENTIAL, User};

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Before whom it counts.
    pub aud: Vec<String>,
    /// The second at which it ends.
    pub exp: i64,
    /// The second at which it was made.
    pub iat: i64,
    /// Who made it.
    pub iss: String,
    /// Its own name.
    pub jti: String,
    /// Whose it is and what it is bound to.
    #[serde(rename = "kubernetes.io")]
    pub account: Account,
    /// The second at which it begins.
    pub nbf: i64,
    /// The name of the user.
    pub sub: String,
}

/// The account of a token, and what it is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Where the account lives.
    pub namespace: String,
    /// The node it is for; with a pod, the one that the pod is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    /// The pod it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    /// The secret it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
    /// The account.
    pub serviceaccount: Reference,
    /// The second at which its holder should have had a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnafter: Option<i64>,
}

/// One object, and no other of its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Name.
    pub name: String,
    /// Identity.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

impl Account {
    /// The account as a user.
    pub fn name(&self) -> String {
        let (namespace, name) = (&self.namespace, &self.serviceaccount.name);
        format!("system:serviceaccount:{namespace}:{name}")
    }
}

impl Claims {
    /// Whom the token makes its holder.
    pub fn user(&self) -> User {
        let account = &self.account;
        let mut extra = BTreeMap::new();
        if !self.jti.is_empty() {
            extra.insert(CREDENTIAL.into(), vec![format!("JTI={}", self.jti)]);
        }
        for (kind, reference) in [("node", &account.node), ("pod", &account.pod)] {
            let Some(reference) = reference else { continue };
            for (part, value) in [("name", &reference.name), ("uid", &reference.uid)] {
                // A pod may name a node that is not there.
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
