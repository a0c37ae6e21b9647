//! Who somebody is: the holder of a certificate or of a token, or nobody in particular.
//!
//! Everything here takes values and gives values. The time is handed in or comes from the clock
//! that was; objects are looked up through [`Records`]. May use `environment`,
//! `status` and `store`.
//!
//! What it keeps true: a credential that is wrong is never taken for one that is absent, and no
//! error or log line has a credential in it.

mod accounts;
mod certificates;
mod claims;
mod credentials;
mod grant;
mod key;
mod refused;
mod tokens;
mod user;

pub use accounts::{Accounts, ISSUER, Records};
pub use certificates::Certificates;
pub use claims::{Claims, Reference};
pub use credentials::{Authenticate, Credentials, Verdict};
pub use grant::{Bound, Grant};
pub(crate) use grant::{check_name, check_uid};
pub use key::{KeyError, SigningKey};
pub use refused::Refused;
pub use tokens::{TableError, Tokens};
pub use user::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User};

/// A user that a token was found to belong to, and for which of the audiences asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Who.
    pub user: User,
    /// Before whom the token counts.
    pub audiences: Vec<String>,
}

/// The key under which a user's extra fields say which credential was shown.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// What both have, in the order of the first.
fn in_common(one: &[String], other: &[String]) -> Vec<String> {
    let both = one.iter().filter(|item| other.contains(item));
    both.cloned().collect()
}

#[cfg(test)]
mod tests;
