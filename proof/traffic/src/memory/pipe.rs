//! The two ends of a connection.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::{Buf, BytesMut};
use neap_idle::resolver::net::NetworkStream;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are buffered in each direction.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

/// One end of a connection. Dropping it closes it.
#[derive(Debug)]
pub(super) struct ConnectionEnd {
    lanes: Arc<Mutex<[Lane; 2]>>,
    /// The lane it writes to; it reads from the other.
    side: usize,
    local: SocketAddr,
    resets: AtomicBool,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Lane {
    bytes: BytesMut,
    /// Nothing more will be written.
    ended: bool,
    /// The reader is gone, and the writer does not know it yet.
    reader_gone: bool,
    /// Why neither reading nor writing is possible any more.
    broken: Option<io::ErrorKind>,
    reader: Option<Waker>,
    peeker: Option<Waker>,
    writer: Option<Waker>,
}

/// Wakers to be woken once nothing is locked any more.
type Wakers = [Option<Waker>; 3];

impl Lane {
    /// The result of a read, if there is one.
    fn state(&self) -> Option<io::Result<usize>> {
        match self.broken {
            _ if !self.bytes.is_empty() => Some(Ok(self.bytes.len())),
            _ if self.ended => Some(Ok(0)),
            Some(why) => Some(Err(why.into())),
            None => None,
        }
    }

    /// The bytes that may be written now; zero means that the reader has to read first.
    fn room(&self) -> io::Result<usize> {
        match self.broken {
            Some(why) => Err(why.into()),
            None if self.ended => Err(io::ErrorKind::BrokenPipe.into()),
            None => Ok(BUFFER_BYTES - self.bytes.len()),
        }
    }

    /// Buffers what there is room for, and returns how much that was.
    fn write(&mut self, slices: &[io::IoSlice<'_>], room: usize) -> usize {
        let mut left = room;
        for slice in slices {
            let count = slice.len().min(left);
            left -= count;
            if !self.reader_gone {
                self.bytes.extend_from_slice(&slice[..count]);
            }
        }
        if self.reader_gone {
            // The reader is gone, so the next operation fails.
            self.broken = Some(io::ErrorKind::BrokenPipe);
        }
        room - left
    }

    fn peek(&self, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        let there = self.state()?;
        Some(there.map(|there| {
            let count = there.min(buffer.len());
            buffer[..count].copy_from_slice(&self.bytes[..count]);
            count
        }))
    }

    fn break_off(&mut self, why: io::ErrorKind) {
        self.broken = self.broken.or(Some(why));
    }

    fn wakers(&mut self) -> Wakers {
        [self.reader.take(), self.peeker.take(), self.writer.take()]
    }
}

fn wake_all(wakers: Wakers) {
    wakers.into_iter().flatten().for_each(Waker::wake);
}

fn register(place: &mut Option<Waker>, context: &Context<'_>) {
    match place {
        Some(waker) => waker.clone_from(context.waker()),
        None => *place = Some(context.waker().clone()),
    }
}

impl ConnectionEnd {
    pub(super) fn pair(here: SocketAddr, there: SocketAddr) -> (Self, Self) {
        let lanes = Arc::<Mutex<[Lane; 2]>>::default();
        let end = |side, local| Self {
            lanes: lanes.clone(),
            side,
            local,
            resets: AtomicBool::new(false),
        };
        (end(0, here), end(1, there))
    }

    fn incoming<T>(&self, with: impl FnOnce(&mut Lane) -> T) -> T {
        with(&mut self.lanes.lock()[1 - self.side])
    }

    fn outgoing<T>(&self, with: impl FnOnce(&mut Lane) -> T) -> T {
        with(&mut self.lanes.lock()[self.side])
    }

    /// Passes the buffered bytes to `take`, which returns how many it consumed.
    fn read(
        &self,
        context: Option<&Context<'_>>,
        take: impl FnOnce(&[u8]) -> usize,
    ) -> Poll<io::Result<usize>> {
        let (read, writer) = self.incoming(|lane| match lane.state() {
            Some(Ok(_)) => {
                let count = take(&lane.bytes);
                lane.bytes.advance(count);
                (Poll::Ready(Ok(count)), lane.writer.take())
            }
            Some(Err(error)) => (Poll::Ready(Err(error)), None),
            None => {
                if let Some(context) = context {
                    register(&mut lane.reader, context);
                }
                (Poll::Pending, None)
            }
        });
        writer.into_iter().for_each(Waker::wake);
        read
    }

    fn write(
        &self,
        context: Option<&Context<'_>>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let (written, wakers) = self.outgoing(|lane| match lane.room() {
            Err(error) => (Poll::Ready(Err(error)), Wakers::default()),
            Ok(0) => {
                if let Some(context) = context {
                    register(&mut lane.writer, context);
                }
                (Poll::Pending, Wakers::default())
            }
            Ok(room) => {
                let count = lane.write(slices, room);
                let wakers = [lane.reader.take(), lane.peeker.take(), None];
                (Poll::Ready(Ok(count)), wakers)
            }
        });
        wake_all(wakers);
        written
    }
}

fn at_once<T>(done: Poll<io::Result<T>>) -> io::Result<T> {
    match done {
        Poll::Ready(done) => done,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

fn fill(buffer: &mut [u8], bytes: &[u8]) -> usize {
    let count = buffer.len().min(bytes.len());
    buffer[..count].copy_from_slice(&bytes[..count]);
    count
}

impl NetworkStream for ConnectionEnd {
    fn poll_peek(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.incoming(|lane| {
            let peeked = lane.peek(buffer);
            if peeked.is_none() {
                register(&mut lane.peeker, context);
            }
            peeked.map_or(Poll::Pending, Poll::Ready)
        })
    }

    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        at_once(self.read(None, |bytes| fill(buffer, bytes)))
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        at_once(self.write(None, &[io::IoSlice::new(bytes)]))
    }

    fn is_quiet(&self) -> bool {
        self.incoming(|lane| lane.state().is_none())
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }

    fn reset_at_end(&self) {
        self.resets.store(true, Ordering::Relaxed);
    }
}

impl AsyncRead for ConnectionEnd {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.read(Some(context), |bytes| {
            let count = buffer.remaining().min(bytes.len());
            buffer.put_slice(&bytes[..count]);
            count
        });
        read.map_ok(drop)
    }
}

impl AsyncWrite for ConnectionEnd {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(Some(context), &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(Some(context), slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wakers = self.outgoing(|lane| {
            lane.ended = true;
            lane.wakers()
        });
        wake_all(wakers);
        Poll::Ready(Ok(()))
    }
}

impl Drop for ConnectionEnd {
    fn drop(&mut self) {
        let mut lanes = self.lanes.lock();
        let unread = !lanes[1 - self.side].bytes.is_empty();
        // Closing with unread data resets the connection, as an operating system does.
        let resets = unread || self.resets.load(Ordering::Relaxed);
        lanes[1 - self.side].reader_gone = true;
        if resets {
            for lane in &mut *lanes {
                lane.break_off(io::ErrorKind::ConnectionReset);
            }
        } else {
            lanes[self.side].ended = true;
        }
        lanes[1 - self.side].bytes = BytesMut::new();
        let [one, other] = &mut *lanes;
        let wakers = (one.wakers(), other.wakers());
        drop(lanes);
        wake_all(wakers.0);
        wake_all(wakers.1);
    }
}
