//! What a watch does when nothing happens: tell how far it has come, and end.

use std::{pin::Pin, sync::Arc, time::Duration};

use super::definition::Definition;
use crate::environment::{BoxFuture, Clock, Seldom};

/// How often an idle watch is told how far it has come.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// What was watched is no longer served as it was.
    Over,
    /// The time of the watch is up.
    End,
    /// A bookmark.
    Bookmark,
}

/// When something is due.
pub(super) struct Schedule {
    clock: Arc<dyn Clock>,
    definition: Definition,
    end: BoxFuture<()>,
    bookmark: BoxFuture<()>,
}

/// Resolves when something is due, and gives the schedule back.
pub(super) type Scheduled = Seldom<BoxFuture<(Due, Schedule)>>;

impl Schedule {
    pub(super) fn new(clock: Arc<dyn Clock>, definition: Definition, lifetime: Duration) -> Self {
        Self {
            end: clock.sleep(lifetime),
            bookmark: clock.sleep(BOOKMARK_EVERY),
            definition,
            clock,
        }
    }

    pub(super) fn begin(mut self) -> Scheduled {
        Seldom::new(Box::pin(async move {
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
                    self.bookmark = self.clock.sleep(BOOKMARK_EVERY);
                    return Due::Bookmark;
                }
            }
        }
    }
}
