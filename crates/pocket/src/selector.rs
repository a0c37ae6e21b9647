//! Label and field selectors: which objects a list, a watch or a workload means.
//!
//! Both are parsed once per request and then asked about many objects, so matching borrows and
//! never allocates. Text from outside is bounded in length and in the number of requirements.
//! Depends on [`crate::status`] alone.

mod field;
mod label;
mod lex;
mod names;
mod object;

pub use field::{FieldRequirement, FieldSelector};
pub use label::{LabelSelector, Operator, Requirement};

use crate::status::{ApiError, Result};

/// The longest selector text that is read.
pub const MAX_LENGTH: usize = 64 * 1024;

/// The most requirements one selector may have.
pub const MAX_REQUIREMENTS: usize = 1000;

fn bounded(text: &str) -> Result<()> {
    if text.len() > MAX_LENGTH {
        return Err(ApiError::bad_request(format!(
            "unable to parse requirement: the selector has {} bytes, at most {MAX_LENGTH} are allowed",
            text.len()
        )));
    }
    Ok(())
}

fn counted(requirements: usize) -> Result<()> {
    if requirements > MAX_REQUIREMENTS {
        return Err(ApiError::bad_request(format!(
            "unable to parse requirement: at most {MAX_REQUIREMENTS} requirements are allowed"
        )));
    }
    Ok(())
}
