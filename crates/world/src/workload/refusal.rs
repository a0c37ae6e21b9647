//! What to make of a write that did not happen.

use neap_kit::apply::Error;

/// The error with what is behind it, for people.
pub(crate) fn reason(error: &Error) -> String {
    match error {
        Error::Refused { source, .. } => source.to_string(),
        error => error.to_string(),
    }
}
