//! Why a service account token is refused. The texts appear in token reviews.

/// Why a token is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The server did not issue it; another authenticator may know it.
    #[error("invalid bearer token")]
    Unknown,
    /// Its issuer is this server, but the signature is invalid.
    #[error("the signature is invalid")]
    Signature,
    /// It has other audiences.
    #[error("token audiences {} is invalid for the target audiences {}", quoted(.token), quoted(.target))]
    Audience {
        /// The audiences of the token.
        token: Vec<String>,
        /// The expected audiences.
        target: Vec<String>,
    },
    /// It has expired.
    #[error("service account token has expired")]
    Expired,
    /// It is not valid yet.
    #[error("service account token is not valid yet")]
    Early,
    /// The account does not exist.
    #[error("serviceaccounts {0:?} not found")]
    NoAccount(String),
    /// The account, or an object the token is bound to, is being deleted.
    #[error("service account {0} has been deleted")]
    Ending(String),
    /// The object the token is bound to does not exist.
    #[error("service account token has been invalidated")]
    Unbound,
    /// The account's name now belongs to another account.
    #[error("service account UID ({found}) does not match claim ({claimed})")]
    OtherAccount {
        /// The uid of the existing account.
        found: String,
        /// The uid in the token.
        claimed: String,
    },
    /// The name of the bound object now belongs to another object.
    #[error("{kind} UID ({found}) does not match service account {kind} ref claim ({claimed})")]
    OtherObject {
        /// `pod`, `secret` or `node`.
        kind: &'static str,
        /// The uid of the existing object.
        found: String,
        /// The uid in the token.
        claimed: String,
    },
}

impl Refused {
    /// The error of a token review.
    pub fn review(&self) -> String {
        match self {
            Self::Unknown => self.to_string(),
            other => format!("[{}, {other}]", Self::Unknown),
        }
    }
}

/// `["a" "b"]`.
fn quoted(items: &[String]) -> String {
    let items: Vec<_> = items.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", items.join(" "))
}
