//! The timers of a watch: bookmarks and the end.

use std::{pin::Pin, sync::Arc, time::Duration};

use super::definition::WatchedDefinition;
use crate::environment::{BoxFuture, Clock, PollOnWake};

/// The interval of bookmarks on an idle watch.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);

/// A timer that has fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The watched resource is no longer served as it was.
    Over,
    /// The timeout of the watch.
    End,
    Bookmark,
}

/// The timers of one watch.
pub(super) struct Schedule {
    clock: Arc<dyn Clock>,
    definition: WatchedDefinition,
    end: BoxFuture<()>,
    bookmark: BoxFuture<()>,
}

/// Resolves when something is due, and returns the schedule.
pub(super) type Scheduled = PollOnWake<BoxFuture<(Due, Schedule)>>;

impl Schedule {
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        definition: WatchedDefinition,
        lifetime: Duration,
    ) -> Self {
        Self {
            end: clock.sleep(lifetime),
            bookmark: clock.sleep(BOOKMARK_INTERVAL),
            definition,
            clock,
        }
    }

    pub(super) fn begin(mut self) -> Scheduled {
        PollOnWake::new(Box::pin(async move {
            let due = self.next().await;
            (due, self)
        }) as Pin<Box<_>>)
    }

    async fn next(&mut self) -> Due {
        loop {
            tokio::select! {
                biased;
                () = self.definition.changed() => {
                    if self.definition.is_over() {
                        return Due::Over;
                    }
                }
                () = &mut self.end => return Due::End,
                () = &mut self.bookmark => {
                    self.bookmark = self.clock.sleep(BOOKMARK_INTERVAL);
                    return Due::Bookmark;
                }
            }
        }
    }
}
