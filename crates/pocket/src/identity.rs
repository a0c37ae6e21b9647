//! Authentication: the user behind a certificate or a token, or the anonymous user.
//!
//! Everything here takes values and returns values. Time is a parameter or comes from the given
//! clock; objects are looked up through [`Records`]. May use `environment`, `status` and `store`.
//!
//! Invariants: an invalid credential is never treated as an absent one, and no error or log line
//! contains a credential.

mod accounts;
mod certificates;
mod claims;
mod credentials;
mod grant;
mod key;
mod refused;
mod tokens;
mod user;

pub use accounts::{AccountTokens, ISSUER, Records};
pub use certificates::Certificates;
pub use claims::{Claims, Reference};
pub use credentials::{Authenticate, Credentials, Verdict};
pub use grant::{BoundObjectKind, Grant};
pub(crate) use grant::{check_name, check_uid};
pub use key::{KeyError, SigningKey};
pub use refused::Refused;
pub use tokens::{TableError, Tokens};
pub use user::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User};

/// The user of a token, and the requested audiences that it is valid for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub user: User,
    /// The audiences that the token is valid for.
    pub audiences: Vec<String>,
}

/// The key of a user's extra fields that identifies the credential used.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The elements of both lists, in the order of the first.
fn in_common(one: &[String], other: &[String]) -> Vec<String> {
    let both = one.iter().filter(|item| other.contains(item));
    both.cloned().collect()
}

#[cfg(test)]
mod tests;
