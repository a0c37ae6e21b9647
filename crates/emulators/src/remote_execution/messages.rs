//! The messages that are served. Fields have the names of the protocol; those that nothing here reads are left
//! out, and skipped when they are received. Enums are numbers.

mod action;
mod execution;
mod storage;

pub use self::{action::*, execution::*, storage::*};

/// The stages of an execution.
pub mod stage {
    /// A worker is waited for.
    pub const QUEUED: i32 = 2;
    /// A worker executes it.
    pub const EXECUTING: i32 = 3;
    /// It has ended.
    pub const COMPLETED: i32 = 4;
}

/// The number of SHA-256 among the digest functions.
pub const SHA256: i32 = 1;

impl AnyMessage {
    /// A message with the name of its type.
    pub fn pack(name: &str, message: &impl prost::Message) -> Self {
        Self {
            type_url: format!("type.googleapis.com/{name}"),
            value: message.encode_to_vec().into(),
        }
    }

    /// The message inside, if its type has this name.
    pub fn unpack<M: prost::Message + Default>(&self, name: &str) -> Option<M> {
        let found = self.type_url.rsplit('/').next()?;
        (found == name).then(|| M::decode(self.value.clone()).ok())?
    }
}
