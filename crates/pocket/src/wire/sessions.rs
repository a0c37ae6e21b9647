//! Limits the upgraded connections. Each costs a process or a socket of the machine, and does not
//! end by itself.

use std::sync::Arc;

use http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::status::{ApiError, Result};

/// Open sessions, at most: more than people and their programs need, and few enough for the
/// machine.
const MAX_SESSIONS: usize = 256;

/// The open sessions of all clients of a server.
#[derive(Debug, Clone)]
pub(super) struct Sessions(Arc<Semaphore>);

/// An open session, until it is dropped.
pub(super) type SessionPermit = OwnedSemaphorePermit;

impl Default for Sessions {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_SESSIONS)))
    }
}

impl Sessions {
    /// Opens a session, if there is room.
    pub(super) fn open(&self) -> Result<SessionPermit> {
        self.0.clone().try_acquire_owned().map_err(|_| {
            let message = format!(
                "{MAX_SESSIONS} sessions of kubectl exec and the like are open, and this server keeps no more at the same time: end one of them"
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
        let mut open: Vec<_> = (0..MAX_SESSIONS)
            .map(|_| sessions.open().unwrap())
            .collect();
        let full = sessions.clone().open().unwrap_err();
        assert_eq!(full.code, StatusCode::TOO_MANY_REQUESTS);
        assert!(full.message.starts_with("256 sessions"), "{full}");
        open.pop();
        assert!(sessions.open().is_ok());
    }
}
