//! Layers: archives of files, read with limits and written so that equal files give equal bytes.
//!
//! A layer comes from a registry and is not trusted, although its digest was checked: its author may have
//! written names that lead out of the image, headers of gigabytes, or a megabyte that unpacks to a terabyte.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use self::{
    read::{EntryHead, EntryKind, LayerEntry, Limits, read},
    write::{LayerBlob, LayerFile, write},
};

/// Why a layer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The archive ends too early or is damaged.
    #[error("the layer is truncated or damaged")]
    Damaged(#[source] std::io::Error),
    /// It unpacks to more than can be true.
    #[error("the layer unpacks to more than {limit} bytes from {compressed}: a decompression bomb")]
    Bomb {
        /// The limit.
        limit: u64,
        /// The size of the layer.
        compressed: u64,
    },
    /// Too many entries.
    #[error("the layer has more than {0} entries")]
    TooManyEntries(u64),
    /// A file that is to be read is too large.
    #[error("{name} has {size} bytes; at most {limit} are read")]
    FileTooLarge {
        /// The name.
        name: String,
        /// The size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The files that are to be read are too large together.
    #[error("the files of the layer have more than {0} bytes together")]
    FilesTooLarge(u64),
    /// A name that leads out of the image.
    #[error("the layer has an entry named {0:?}, which leads out of the image")]
    Escape(String),
    /// A header that is too large.
    #[error("an entry of the layer has a header of {0} bytes")]
    HeaderTooLarge(u64),
    /// The name does not fit.
    #[error("{0:?} cannot be stored in a layer")]
    Name(String),
}
