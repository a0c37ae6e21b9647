//! Why a call to the store failed.

/// Why a call to the store failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A document of this id exists.
    #[error("the document {0} exists")]
    Exists(String),
    /// There is no document of this id.
    #[error("there is no document {0}")]
    Missing(String),
    /// The document was changed since it was read.
    #[error("the document {0} was changed since it was read")]
    Conflict(String),
    /// Another worker holds the lease.
    #[error("the lease on {0} is lost: another worker has claimed it")]
    LeaseLost(String),
    /// Another document has the same value of a unique key.
    #[error("another document has the same {name}")]
    Unique {
        /// The name of the unique key.
        name: String,
        /// The id of the document that has it.
        holder: String,
    },
    /// The document cannot be stored.
    #[error("the document cannot be stored: {0}")]
    Invalid(String),
    /// The database reported an error at the end of a transaction that it may have committed.
    #[error("it is unknown whether the transaction was committed")]
    OutcomeUnknown(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database cannot be used at this moment.
    #[error("the database cannot be used")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database has no room for the write, which did not happen.
    #[error("the disk of the database is full")]
    Full(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The changes after this position are no longer known; list again.
    #[error("the changes after this position are no longer known: list again and start a new feed")]
    FeedExpired,
    /// The database was written by a version of the program that this one cannot follow.
    #[error(
        "the database has schema {found}, which programs below schema {readable_by} cannot use; this one has schema {ours}: start a newer version, or restore a backup from before the upgrade"
    )]
    TooNew {
        /// The schema of the database.
        found: i64,
        /// The oldest program that can use it.
        readable_by: i64,
        /// The schema of this program.
        ours: i64,
    },
    /// A secure field cannot be opened.
    #[error("the secure field {path} of {document} cannot be opened: {why}")]
    Sealed {
        /// The document.
        document: String,
        /// The path of the field.
        path: String,
        /// Why it cannot be opened.
        why: &'static str,
    },
    /// Another key has this version.
    #[error(
        "version {0} of the key that seals secrets is not the one that this database was used with: give the program the same folder of keys as all others of this database, or restore it from its backup"
    )]
    OtherKey(String),
    /// The address of a database that this program does not know.
    #[error("{0} is no address of a store: write sqlite:FILE, postgres://… or memory:")]
    Address(String),
}

impl Error {
    /// Whether the same call may succeed later without any change by the caller.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_) | Self::OutcomeUnknown(_) | Self::Full(_)
        )
    }
}
