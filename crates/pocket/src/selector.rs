//! Label and field selectors: which objects a list, a watch or a workload selects.
//!
//! Both are parsed once per request and then matched with many objects, so matching borrows and
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

/// Bytes of a selector, at most.
pub const MAX_LENGTH: usize = 64 * 1024;

/// Requirements of one selector, at most.
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
