//! How many connections may be taken over for streams. Each costs a process or a socket of the
//! machine, and none ends by itself.

use std::sync::Arc;

use http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::status::{ApiError, Result};

/// More than people and their programs need, and less than hurts.
const MOST: usize = 256;

/// Those that are open, counted for all clients of a server.
#[derive(Debug, Clone)]
pub(super) struct Sessions(Arc<Semaphore>);

/// One that is open, until it is dropped.
pub(super) type Session = OwnedSemaphorePermit;

impl Default for Sessions {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

impl Sessions {
    /// Room for one more.
    pub(super) fn open(&self) -> Result<Session> {
        self.0.clone().try_acquire_owned().map_err(|_| {
            let message = format!(
                "{MOST} sessions of kubectl exec and the like are open, and this server keeps no more at the same time: end one of them"
            );
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_again_when_one_ends() {
        let sessions = Sessions::default();
        let mut open: Vec<_> = (0..MOST).map(|_| sessions.open().unwrap()).collect();
        let full = sessions.clone().open().unwrap_err();
        assert_eq!(full.code, StatusCode::TOO_MANY_REQUESTS);
        assert!(full.message.starts_with("256 sessions"), "{full}");
        open.pop();
        assert!(sessions.open().is_ok());
    }
}
