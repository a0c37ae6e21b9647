//! Changes to objects: patches of every kind, server-side apply, and field ownership.
//!
//! Pure functions from values to values; nothing here reads the store or the clock, so that the
//! REST machine may apply a patch again after a conflict. The caller passes the time and the field
//! manager. Depends on [`crate::schema`] and [`crate::status`].

pub mod apply;
mod bounds;
pub mod json;
pub mod managed;
pub mod merge;
pub mod strategic;

use http::StatusCode;

pub use bounds::MAX_DEPTH;

use crate::status::ApiError;

/// 422 with the API's generic message, for a patch that is well-formed and cannot be applied to
/// this object.
fn unprocessable() -> ApiError {
    ApiError::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "Invalid",
        "the server rejected our request due to an error in our request",
    )
    .about("", "", "")
}
