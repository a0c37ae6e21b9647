//! Patches: a change described by the client, applied to the live object.
//!
//! Every kind of patch is a function from two values to a value or a refusal. Nothing here reads
//! the store or the clock, so that the REST machine may apply a patch again after a conflict.
//! Depends on [`crate::schema`] and [`crate::status`].

mod bounds;
pub mod json;
pub mod merge;
pub mod strategic;

use http::StatusCode;

pub use bounds::MAX_DEPTH;

use crate::status::ApiError;

/// 422 in the server's generic words, for a patch that is well-formed and cannot be applied to
/// this object; the cause says where and why.
fn unprocessable(field: &str, why: &str) -> ApiError {
    ApiError::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "Invalid",
        "the server rejected our request due to an error in our request",
    )
    .caused_by("FieldValueInvalid", field, why)
}
