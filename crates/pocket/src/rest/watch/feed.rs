//! The stream of one watch: renders only what the client is ready to take.

use std::{collections::VecDeque, sync::Arc, task::Poll, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, poll, stream};

use super::{
    Lines,
    schedule::{Due, Schedule, Scheduled},
};
use crate::{
    environment::lane,
    rest::selection::Selection,
    store::{Cursor, Event, Flow, Object},
};

/// Lines are gathered into chunks of about this size.
const CHUNK: usize = 64 << 10;

/// What is still to be sent.
enum Item {
    /// An object of the initial state.
    Initial(Arc<Object>),
    /// A change.
    Event(Arc<Event>),
    /// The end of the initial state, which was read at this revision.
    InitialEnd(u64),
    /// Everything up to this revision came before.
    Mark(u64),
}

/// One watch on its way to a client.
pub(super) struct Feed {
    lines: Lines,
    selection: Selection,
    cursor: Cursor,
    items: VecDeque<Item>,
    bookmarks: bool,
    marked: u64,
    schedule: Scheduled,
    /// Nothing is taken any more; what is queued is still sent.
    ended: bool,
    /// The client was told that the watch cannot go on.
    failed: bool,
}

impl Feed {
    pub(super) fn new(
        lines: Lines,
        selection: Selection,
        cursor: Cursor,
        lifetime: Duration,
    ) -> Self {
        let schedule = Schedule::new(lines.clock(), lines.definition(), lifetime);
        Self {
            marked: cursor.revision(),
            schedule: schedule.begin(),
            lines,
            selection,
            cursor,
            items: VecDeque::new(),
            bookmarks: false,
            ended: false,
            failed: false,
        }
    }

    /// Queues the initial state, with a mark behind it if asked for.
    pub(super) fn begin(&mut self, objects: Vec<Arc<Object>>, mark: bool) {
        self.items.extend(objects.into_iter().map(Item::Initial));
        if mark {
            self.items
                .push_back(Item::InitialEnd(self.cursor.revision()));
        }
    }

    /// Sends a bookmark now and then.
    pub(super) fn send_bookmarks(&mut self) {
        self.bookmarks = true;
    }

    /// The lines, in chunks.
    pub(super) fn into_stream(self) -> impl Stream<Item = Bytes> + Send + 'static {
        // Boxed, because it is handed to and fro with every chunk.
        stream::unfold(Box::new(self), |mut feed| async move {
            let chunk = feed.next().await?;
            Some((chunk, feed))
        })
        .fuse()
    }

    async fn next(&mut self) -> Option<Bytes> {
        let mut chunk = BytesMut::new();
        loop {
            {
                let bulk = self.lines.bulk();
                let _turn = bulk.turn(self.items.len()).await;
                self.fill(&mut chunk).await;
            }
            if self.items.is_empty() {
                // What a watch began with has been told; the news that follow are few.
                lane::hurry();
            }
            if !chunk.is_empty() {
                return Some(chunk.freeze());
            }
            if self.ended {
                return None;
            }
            // On a busy resource there is always a change: what is due must not wait for a lull.
            if let Poll::Ready((due, schedule)) = poll!(&mut self.schedule) {
                self.due(due, schedule, &mut chunk);
            } else if !self.take(&mut chunk) && !self.ended {
                self.wait(&mut chunk).await;
            }
        }
    }

    /// Queues what has happened. False if that is nothing. If it came too late the watch ends with
    /// an error, after which nothing is sent.
    fn take(&mut self, chunk: &mut BytesMut) -> bool {
        match self.cursor.take() {
            Ok(events) => {
                let any = !events.is_empty();
                self.items.extend(events.into_iter().map(Item::Event));
                any
            }
            Err(error) => {
                Lines::expired(&error, chunk);
                self.items.clear();
                self.ended = true;
                self.failed = true;
                false
            }
        }
    }

    /// Renders queued items until the chunk is full.
    async fn fill(&mut self, chunk: &mut BytesMut) {
        while chunk.len() < CHUNK
            && let Some(item) = self.items.pop_front()
        {
            match item {
                Item::Initial(object) => self.lines.added(&object, chunk),
                Item::InitialEnd(revision) => self.lines.bookmark(revision, true, chunk),
                Item::Mark(revision) => self.lines.bookmark(revision, false, chunk),
                Item::Event(event) => self.deliver(&event, chunk).await,
            }
        }
    }

    async fn deliver(&mut self, event: &Event, chunk: &mut BytesMut) {
        let hooks = self.lines.hooks();
        if let Some(hooks) = &hooks {
            match hooks.before_event(event).await {
                Flow::Deliver => {}
                Flow::Skip => return,
                Flow::Cut => {
                    self.ended = true;
                    self.items.clear();
                    return;
                }
            }
        }
        self.lines.event(event, &self.selection, chunk);
        if let Some(hooks) = &hooks {
            hooks.after_event(event);
        }
    }

    /// Waits for a change, the next bookmark or the end.
    async fn wait(&mut self, chunk: &mut BytesMut) {
        tokio::select! {
            biased;
            () = self.cursor.changed() => {}
            (due, schedule) = &mut self.schedule => self.due(due, schedule, chunk),
        }
    }

    fn due(&mut self, due: Due, schedule: Schedule, chunk: &mut BytesMut) {
        match due {
            // Nothing comes after it that would have to be told.
            Due::Over => {
                while self.take(chunk) {}
                self.ended = true;
            }
            Due::End => self.finish(chunk),
            Due::Bookmark => self.mark(chunk),
        }
        self.schedule = schedule.begin();
    }

    /// Queues what has happened until now as the last that is sent.
    fn finish(&mut self, chunk: &mut BytesMut) {
        self.ended = true;
        self.take(chunk);
        self.mark(chunk);
    }

    /// Tells how far the watch has come, if it has come any further. Changes of other resources
    /// count: who resumes from here need not look through them.
    fn mark(&mut self, chunk: &mut BytesMut) {
        if !self.bookmarks || self.failed {
            return;
        }
        self.take(chunk);
        if self.failed {
            return;
        }
        let revision = self.cursor.revision();
        if revision > self.marked {
            self.marked = revision;
            self.items.push_back(Item::Mark(revision));
        }
    }
}
