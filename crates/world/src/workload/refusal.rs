//! What to make of a write that did not happen.

use neap_kit::apply::{Error, Hand, Object};

/// The error with what is behind it, for people.
pub(crate) fn reason(error: &Error) -> String {
    match error {
        Error::Refused { source, .. } => source.to_string(),
        error => error.to_string(),
    }
}

/// Writes the status of `object`, unless it has changed since: then it is looked at again because
/// of that.
pub(crate) async fn report<K: Object>(hand: &Hand, object: &K) -> Result<(), Error> {
    match hand.replace_status(object).await {
        Ok(_) | Err(Error::Replaced(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
