//! What several of the tests share.

pub(crate) mod chronicle;
pub(crate) mod paused;
pub(crate) mod raw;
pub(crate) mod slow_disk;
pub(crate) mod stream;
