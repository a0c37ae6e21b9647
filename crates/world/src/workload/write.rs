//! What becomes of writes.

use std::time::Duration;

use neap_kit::apply::Error;

/// So long a write may take to come back by the watch. Late is no harm: names and victims are
/// chosen the same again.
pub(crate) const ECHO: Duration = Duration::from_secs(5);

/// The error with what is behind it, for people.
pub(crate) fn in_words(error: &Error) -> String {
    match error {
        Error::Refused { source, .. } => source.to_string(),
        error => error.to_string(),
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
