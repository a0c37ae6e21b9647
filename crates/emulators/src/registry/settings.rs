//! What a registry allows.

use std::time::Duration;

use super::access::Access;

/// What a registry allows.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who may do what.
    pub access: Access,
    /// The longest manifest that is accepted.
    pub max_manifest_bytes: usize,
    /// The most bytes of all blobs together.
    pub max_bytes: u64,
    /// The most entries of one page of a list.
    pub max_page: usize,
    /// Whether manifests, blobs and tags can be deleted.
    pub deletion: bool,
    /// The time after which an upload that gets no more data is given up.
    pub upload_expiry: Duration,
    /// The time for which a blob is kept that no manifest names: its push may be under way.
    pub blob_grace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            access: Access::Open,
            max_manifest_bytes: 4 << 20,
            max_bytes: 64 << 30,
            max_page: 1000,
            deletion: true,
            upload_expiry: Duration::from_hours(6),
            blob_grace: Duration::from_hours(6),
        }
    }
}
