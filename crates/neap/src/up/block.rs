//! The addresses of this `neap up`: a block of the loopback network that no other has.
//!
//! A block is claimed by listening on the port of its node, which the system gives to one process
//! and takes back with it. What is kept in a data folder keeps its block too: the addresses of its
//! services are in there.

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

/// Where a kubelet is asked how it is.
const PORT: u16 = 10250;
/// Blocks are numbered from one to this.
const LAST: u8 = 254;

/// A block that is ours as long as this is there.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) block: Block,
    /// Where the node is asked how it is.
    pub(super) socket: TcpListener,
}

/// Why no block could be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("another process listens on {0}")]
    Taken(SocketAddr),
    #[error("{address} cannot be listened on: {source}")]
    Refused {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("every block from 127.1.0.0/16 to 127.254.0.0/16 is taken or refused: {0}")]
    None(io::Error),
    #[error("{path} does not hold the number of a block")]
    Unreadable { path: PathBuf },
    #[error("{path} cannot be written: {source}")]
    Unwritable { path: PathBuf, source: io::Error },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let remedy = match &error {
            Error::Taken(_) => {
                "stop the other one (another neap up with a copy of this folder?); the services kept here have addresses of that block"
            }
            Error::Refused { .. } => {
                "see to it that this machine has the loopback network 127.0.0.0/8; without it, run the API alone: neap up --bare"
            }
            Error::None(_) => "stop some others, or run the API alone: neap up --bare",
            Error::Unreadable { .. } => {
                "write the number that the services' addresses have, 127.NUMBER.x.x, or remove the file"
            }
            Error::Unwritable { .. } => "look at the folder's permissions and free space",
        };
        Self::new(
            "NT-UP-0020",
            Exit::Refused,
            "no addresses for pods and services",
            &error.to_string(),
        )
        .remedy(remedy)
    }
}

impl Claim {
    /// The block of a data folder, or any that is free.
    pub(super) async fn take(data: Option<&Path>) -> Result<Self, Error> {
        let Some(folder) = data else {
            return Self::search(1).await;
        };
        let path = folder.join("block");
        if let Some(block) = kept(&path)? {
            let address = SocketAddr::from((block.node(), PORT));
            return Self::of(block).await.map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => Error::Taken(address),
                _ => Error::Refused {
                    address,
                    source: error,
                },
            });
        }
        // Folders begin at different places, so that two seldom want the same block later.
        let mut hasher = DefaultHasher::new();
        folder.hash(&mut hasher);
        let first = u8::try_from(hasher.finish() % u64::from(LAST)).unwrap_or_default() + 1;
        let claim = Self::search(first).await?;
        let number = format!("{}\n", claim.block.number());
        private::write(&path, &number).map_err(|source| Error::Unwritable { path, source })?;
        Ok(claim)
    }

    async fn search(first: u8) -> Result<Self, Error> {
        let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for number in (first..=LAST).chain(1..first) {
            let Some(block) = Block::new(number) else {
                continue;
            };
            match Self::of(block).await {
                Ok(claim) => return Ok(claim),
                Err(error) => refused = error,
            }
        }
        Err(Error::None(refused))
    }

    async fn of(block: Block) -> io::Result<Self> {
        let socket = TcpListener::bind((block.node(), PORT)).await?;
        Ok(Self { block, socket })
    }
}

fn kept(path: &Path) -> Result<Option<Block>, Error> {
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
    async fn two_at_a_time_have_different_blocks() {
        let (one, other) = (Claim::take(None).await, Claim::take(None).await);
        assert_ne!(one.unwrap().block, other.unwrap().block);
    }

    #[tokio::test]
    async fn a_data_folder_keeps_its_block_and_refuses_another() {
        let folder = tempfile::tempdir().unwrap();
        let first = Claim::take(Some(folder.path())).await.unwrap();
        let taken = Claim::take(Some(folder.path())).await;
        assert!(matches!(taken, Err(Error::Taken(_))), "{taken:?}");
        let block = first.block;
        drop(first);
        let again = Claim::take(Some(folder.path())).await.unwrap();
        assert_eq!(again.block, block);
        std::fs::write(folder.path().join("block"), "many").unwrap();
        let odd = Claim::take(Some(folder.path())).await;
        assert!(matches!(odd, Err(Error::Unreadable { .. })), "{odd:?}");
    }
}
