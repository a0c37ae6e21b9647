//! Clients that shut their side of a connection after a request: they still get the answer.
//!
//! hyper ends a connection when its client's side ends, so the end is withheld while a request is being
//! answered. TCP does not tell a client that has shut its side from one that has closed the connection
//! before bytes are sent to it: then the second answers with a reset. An interim response, which every
//! client of HTTP/1.1 has to skip, makes that difference while a request is held; otherwise the requests
//! of clients that have left would stay in the queue and reach a pod.

use std::{
    io,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use neap_kit::clock::{Clock, Uptime};

use crate::resolver::net::Stream;

/// The interim response that is sent to find out whether the client is still there.
const INTERIM_RESPONSE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Time for the reset of a client that has left to arrive.
const RESET_WAIT: Duration = Duration::from_millis(20);
/// Interval of checks. A client may leave long after it has shut its side.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// An answer that has begun is given up after this time without a byte of it: a client that has left is
/// noticed only by bytes that are sent to it, and a stream of events may have none for hours.
const QUIET_LIMIT: Duration = Duration::from_secs(30);

/// The end of a client's side while one of its requests is being answered.
pub(super) struct ClientEnd {
    next_check: BoxFuture<'static, ()>,
    /// An interim response was sent, and a reset may be on its way.
    probed: bool,
    /// When the end was seen, or a byte of an answer was written after it.
    progress_at: Uptime,
}

/// What a check of the client needs.
pub(super) struct ClientEndCheck<'a> {
    pub(super) stream: &'a Stream,
    pub(super) clock: Clock,
    /// No byte of the answer was sent, and the client speaks HTTP/1.1.
    pub(super) may_probe: bool,
}

impl ClientEnd {
    /// The first check is due at once.
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            next_check: futures::future::ready(()).boxed(),
            probed: false,
            progress_at: clock.uptime(),
        }
    }

    /// Records that bytes of an answer were written.
    pub(super) fn record_progress(&mut self, clock: Clock) {
        self.progress_at = clock.uptime();
    }

    /// Pending while the client may wait for its answer, an error once it has left, and the plain end
    /// once the answer has been quiet for too long.
    pub(super) fn poll(
        &mut self,
        check: &ClientEndCheck<'_>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.next_check.as_mut().poll(context));
            // Fails after a reset, which a read does not report once the client's side has ended.
            ignore_would_block(check.stream.try_write(&[]))?;
            let quiet = check.clock.uptime().saturating_sub(self.progress_at);
            if check.may_probe {
                self.progress_at = check.clock.uptime();
            } else if quiet >= QUIET_LIMIT {
                return Poll::Ready(Ok(()));
            }
            self.probed = check.may_probe && !self.probed && probe(check.stream)?;
            let wait = if self.probed {
                RESET_WAIT
            } else {
                CHECK_INTERVAL
            };
            let clock = check.clock;
            self.next_check = async move { clock.sleep(wait).await }.boxed();
        }
    }
}

/// Sends an interim response; `false` if the connection accepts no bytes at the moment.
fn probe(stream: &Stream) -> io::Result<bool> {
    let sent = ignore_would_block(stream.try_write(INTERIM_RESPONSE))?;
    if (1..INTERIM_RESPONSE.len()).contains(&sent) {
        // The rest of it would have to precede the answer.
        return Err(io::ErrorKind::WriteZero.into());
    }
    Ok(sent > 0)
}

fn ignore_would_block(written: io::Result<usize>) -> io::Result<usize> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}
