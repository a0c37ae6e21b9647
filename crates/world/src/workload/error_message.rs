//! The message of a failed write.

use neap_kit::apply::Error;

/// The cause that the API server gave, or the error itself.
pub(crate) fn error_message(error: &Error) -> String {
    match error {
        Error::Refused { source, .. } => source.to_string(),
        error => error.to_string(),
    }
}
