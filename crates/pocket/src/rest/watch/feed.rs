//! The stream of one watch: renders only what the client is ready to receive.

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

/// Approximate bytes of a chunk.
const CHUNK_BYTES: usize = 64 << 10;

/// An item that is still to be sent.
enum FeedItem {
    /// An object of the initial state.
    Initial(Arc<Object>),
    /// A change.
    Event(Arc<Event>),
    /// The end of the initial state, which was read at this revision.
    InitialEnd(u64),
    /// A bookmark: everything up to this revision was sent before.
    Mark(u64),
}

pub(super) struct Feed {
    lines: Lines,
    selection: Selection,
    cursor: Cursor,
    items: VecDeque<FeedItem>,
    bookmarks: bool,
    marked: u64,
    schedule: Scheduled,
    /// No more changes are read; queued items are still sent.
    ended: bool,
    /// The client was sent the error that ends the watch.
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

    /// Queues the initial state, followed by a bookmark if requested.
    pub(super) fn begin(&mut self, objects: Vec<Arc<Object>>, mark: bool) {
        self.items
            .extend(objects.into_iter().map(FeedItem::Initial));
        if mark {
            self.items
                .push_back(FeedItem::InitialEnd(self.cursor.revision()));
        }
    }

    /// Enables periodic bookmarks.
    pub(super) fn send_bookmarks(&mut self) {
        self.bookmarks = true;
    }

    /// The lines, in chunks.
    pub(super) fn into_stream(self) -> impl Stream<Item = Bytes> + Send + 'static {
        // Boxed, because it is moved with every chunk.
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
                // The initial state was sent; the changes that follow are small.
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

    /// Queues the changes since the last call. False if there are none. If the position was
    /// compacted, the watch ends with an error, after which nothing is sent.
    fn take(&mut self, chunk: &mut BytesMut) -> bool {
        match self.cursor.take() {
            Ok(events) => {
                let any = !events.is_empty();
                self.items.extend(events.into_iter().map(FeedItem::Event));
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
        while chunk.len() < CHUNK_BYTES
            && let Some(item) = self.items.pop_front()
        {
            match item {
                FeedItem::Initial(object) => self.lines.added(&object, chunk),
                FeedItem::InitialEnd(revision) => self.lines.bookmark(revision, true, chunk),
                FeedItem::Mark(revision) => self.lines.bookmark(revision, false, chunk),
                FeedItem::Event(event) => self.deliver(&event, chunk).await,
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
            // No later change must be sent.
            Due::Over => {
                while self.take(chunk) {}
                self.ended = true;
            }
            Due::End => self.finish(chunk),
            Due::Bookmark => self.mark(chunk),
        }
        self.schedule = schedule.begin();
    }

    /// Queues the changes until now as the last that are sent.
    fn finish(&mut self, chunk: &mut BytesMut) {
        self.ended = true;
        self.take(chunk);
        self.mark(chunk);
    }

    /// Queues a bookmark, if the watch has advanced. Changes of other resources count: a client
    /// that resumes from here need not read them.
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
            self.items.push_back(FeedItem::Mark(revision));
        }
    }
}
