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

/// A write to what has changed since it was read is no failure: the change itself asks for another
/// look.
pub(crate) fn unless_replaced<T>(written: Result<T, Error>) -> Result<Option<T>, Error> {
    match written {
        Ok(written) => Ok(Some(written)),
        Err(Error::Replaced(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
