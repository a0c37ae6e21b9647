//! The addresses of pods and services: a block of the loopback network that belongs to one `neap up`.
//!
//! A process claims a block by listening on the kubelet port of the block's node address, which the
//! operating system grants to one process at a time and releases when it ends. A data folder stores its
//! block, because the stored services have addresses of that block.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use neap_world::node::address::Block;
use tokio::net::TcpListener;

use super::private;
use crate::exit::{Exit, Failure};

/// The port of a kubelet.
const KUBELET_PORT: u16 = 10250;
/// Blocks are numbered from 1 to this.
const LAST_BLOCK: u8 = 254;

/// A block that is claimed as long as this value exists.
#[derive(Debug)]
pub(super) struct BlockClaim {
    pub(super) block: Block,
    /// Serves the health endpoint of the node.
    pub(super) socket: TcpListener,
}

/// Why no block could be claimed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("another process listens on {0}")]
    InUse(SocketAddr),
    #[error("cannot listen on {address}: {source}")]
    Refused {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("all blocks from 127.1.0.0/16 to 127.254.0.0/16 are in use or refused: {0}")]
    NoBlock(io::Error),
    #[error("{path} does not contain a block number")]
    Unreadable { path: PathBuf },
    #[error("cannot write {path}: {source}")]
    Unwritable { path: PathBuf, source: io::Error },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let remedy = match &error {
            Error::InUse(_) => {
                "stop that process, for example another neap up with a copy of this folder; the services stored here have addresses of that block"
            }
            Error::Refused { .. } => {
                "check that this machine has the loopback network 127.0.0.0/8, or run only the API server: neap up --bare"
            }
            Error::NoBlock(_) => {
                "stop other neap up processes, or run only the API server: neap up --bare"
            }
            Error::Unreadable { .. } => {
                "write the number of the services' addresses, 127.NUMBER.x.x, to the file, or remove it"
            }
            Error::Unwritable { .. } => "check the permissions and the free space of the folder",
        };
        Self::new(
            "NT-UP-0020",
            Exit::Refused,
            "cannot claim addresses for pods and services",
            &error.to_string(),
        )
        .remedy(remedy)
    }
}

impl BlockClaim {
    /// Claims the block of the data folder, or any free block.
    pub(super) async fn acquire(data: Option<&Path>) -> Result<Self, Error> {
        let Some(folder) = data else {
            return Self::search(1).await;
        };
        let path = folder.join("block");
        if let Some(block) = stored(&path)? {
            let address = SocketAddr::from((block.node(), KUBELET_PORT));
            return Self::bind(block).await.map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => Error::InUse(address),
                _ => Error::Refused {
                    address,
                    source: error,
                },
            });
        }
        // Different folders start the search at different blocks, so that two of them seldom store the
        // same block.
        let mut hasher = DefaultHasher::new();
        folder.hash(&mut hasher);
        let first = u8::try_from(hasher.finish() % u64::from(LAST_BLOCK)).unwrap_or_default() + 1;
        let claim = Self::search(first).await?;
        let number = format!("{}\n", claim.block.number());
        private::write(&path, &number).map_err(|source| Error::Unwritable { path, source })?;
        Ok(claim)
    }

    async fn search(first: u8) -> Result<Self, Error> {
        let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for number in (first..=LAST_BLOCK).chain(1..first) {
            let Some(block) = Block::new(number) else {
                continue;
            };
            match Self::bind(block).await {
                Ok(claim) => return Ok(claim),
                Err(error) => refused = error,
            }
        }
        Err(Error::NoBlock(refused))
    }

    async fn bind(block: Block) -> io::Result<Self> {
        let socket = TcpListener::bind((block.node(), KUBELET_PORT)).await?;
        Ok(Self { block, socket })
    }
}

fn stored(path: &Path) -> Result<Option<Block>, Error> {
    let unreadable = || Error::Unreadable {
        path: path.to_owned(),
    };
    let Some(text) = private::read(path).map_err(|_| unreadable())? else {
        return Ok(None);
    };
    let block = text.trim().parse().ok().and_then(Block::new);
    block.map(Some).ok_or_else(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn concurrent_claims_get_different_blocks() {
        let (one, other) = (
            BlockClaim::acquire(None).await,
            BlockClaim::acquire(None).await,
        );
        assert_ne!(one.unwrap().block, other.unwrap().block);
    }

    #[tokio::test]
    async fn a_data_folder_keeps_its_block_and_accepts_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let first = BlockClaim::acquire(Some(folder.path())).await.unwrap();
        let taken = BlockClaim::acquire(Some(folder.path())).await;
        assert!(matches!(taken, Err(Error::InUse(_))), "{taken:?}");
        let block = first.block;
        drop(first);
        let again = BlockClaim::acquire(Some(folder.path())).await.unwrap();
        assert_eq!(again.block, block);
        std::fs::write(folder.path().join("block"), "many").unwrap();
        let odd = BlockClaim::acquire(Some(folder.path())).await;
        assert!(matches!(odd, Err(Error::Unreadable { .. })), "{odd:?}");
    }
}
