//! Why a token of a service account is not taken. The texts are what the holder of a review reads.

/// Why a token is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not one of ours; somebody else may know it.
    #[error("invalid bearer token")]
    Unknown,
    /// It says that it is ours, and our key did not sign it.
    #[error("the signature is wrong")]
    Signature,
    /// It is meant for others.
    #[error("token audiences {} is invalid for the target audiences {}", quoted(.token), quoted(.target))]
    Audience {
        /// For whom it is.
        token: Vec<String>,
        /// For whom it should be.
        target: Vec<String>,
    },
    /// Its time is over.
    #[error("service account token has expired")]
    Expired,
    /// Its time has not come.
    #[error("service account token is not valid yet")]
    Early,
    /// The account is gone.
    #[error("serviceaccounts {0:?} not found")]
    NoAccount(String),
    /// The account, or what the token is bound to, is on its way out.
    #[error("service account {0} has been deleted")]
    Ending(String),
    /// What the token is bound to is gone.
    #[error("service account token has been invalidated")]
    Unbound,
    /// Another account has taken the name.
    #[error("service account UID ({found}) does not match claim ({claimed})")]
    OtherAccount {
        /// Of the account that is there.
        found: String,
        /// Of the account that the token was made for.
        claimed: String,
    },
    /// Another object has taken the name of what the token is bound to.
    #[error("{kind} UID ({found}) does not match service account {kind} ref claim ({claimed})")]
    OtherObject {
        /// `pod`, `secret` or `node`.
        kind: &'static str,
        /// Of the object that is there.
        found: String,
        /// Of the object that the token was made for.
        claimed: String,
    },
}

impl Refused {
    /// What a review says about it.
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
