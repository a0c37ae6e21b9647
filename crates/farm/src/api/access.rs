//! Who may connect, and who may do what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Authentication, TLS and authorization of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Access {
    /// How callers are authenticated; if absent, every caller that reaches the port is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
    /// The certificate of the server; plain text if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Who may execute actions; every authenticated caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execute: Option<Authorizer>,
    /// Who may read blobs; every authenticated caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Authorizer>,
    /// Who may write blobs to the content addressable storage; every authenticated caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Authorizer>,
    /// Who may write action results; no caller if absent. A caller who may do so decides what others get
    /// from their builds. Workers write results directly to the storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_cache_write: Option<Authorizer>,
}

/// How callers are authenticated. Exactly one field is set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authentication {
    /// Every caller is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<bool>,
    /// No caller is accepted; the text is the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<String>,
    /// A client certificate that one of these authorities signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<ConfigMapKey>,
    /// A JSON Web Token that one of these keys signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt: Option<ConfigMapKey>,
}

/// A key of a ConfigMap of the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapKey {
    /// The ConfigMap.
    pub config_map_name: String,
    /// The key.
    pub key: String,
}

/// The certificate of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// A Secret with `tls.crt` and `tls.key`. It is mounted, and read again every hour.
    pub secret_name: String,
}

/// Who may do something. Exactly one field is set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authorizer {
    /// Every authenticated caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<bool>,
    /// No caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<bool>,
    /// Every authenticated caller, for these instance names and those below them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_name_prefixes: Option<Vec<String>>,
    /// Callers for whom this JMESPath expression is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jmespath: Option<String>,
}
