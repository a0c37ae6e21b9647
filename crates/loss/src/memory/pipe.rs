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
use neap_idle::resolver::net::Carries;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// So many bytes wait in each direction until somebody reads them.
pub(super) const ROOM: usize = 64 << 10;

/// One end of a connection. Dropping it closes it.
#[derive(Debug)]
pub(super) struct End {
    lanes: Arc<Mutex<[Lane; 2]>>,
    /// Which of the lanes it writes to; it reads from the other.
    side: usize,
    local: SocketAddr,
    resets: AtomicBool,
}

/// What goes one way.
#[derive(Debug, Default)]
struct Lane {
    bytes: BytesMut,
    /// Nothing more will be written.
    ended: bool,
    /// Nobody reads any more, and nobody has told the writer.
    deaf: bool,
    /// Neither can be done any more, and why.
    broken: Option<io::ErrorKind>,
    reader: Option<Waker>,
    peeker: Option<Waker>,
    writer: Option<Waker>,
}

/// Those who are to be told, once nothing is locked any more.
type Told = [Option<Waker>; 3];

impl Lane {
    /// What a reader gets, if it gets anything.
    fn state(&self) -> Option<io::Result<usize>> {
        match self.broken {
            _ if !self.bytes.is_empty() => Some(Ok(self.bytes.len())),
            _ if self.ended => Some(Ok(0)),
            Some(why) => Some(Err(why.into())),
            None => None,
        }
    }

    /// How much may be written now: nothing means that somebody has to read first.
    fn room(&self) -> io::Result<usize> {
        match self.broken {
            Some(why) => Err(why.into()),
            None if self.ended => Err(io::ErrorKind::BrokenPipe.into()),
            None => Ok(ROOM - self.bytes.len()),
        }
    }

    /// Takes what there is room for, and says how much that was.
    fn write(&mut self, slices: &[io::IoSlice<'_>], room: usize) -> usize {
        let mut left = room;
        for slice in slices {
            let count = slice.len().min(left);
            left -= count;
            if !self.deaf {
                self.bytes.extend_from_slice(&slice[..count]);
            }
        }
        if self.deaf {
            // What was just written is answered with that nobody is there.
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

    fn told(&mut self) -> Told {
        [self.reader.take(), self.peeker.take(), self.writer.take()]
    }
}

fn tell(told: Told) {
    told.into_iter().flatten().for_each(Waker::wake);
}

fn note(place: &mut Option<Waker>, context: &Context<'_>) {
    match place {
        Some(waker) => waker.clone_from(context.waker()),
        None => *place = Some(context.waker().clone()),
    }
}

impl End {
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

    /// Takes bytes into whatever `take` fills, which says how many it took.
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
                    note(&mut lane.reader, context);
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
        let (written, told) = self.outgoing(|lane| match lane.room() {
            Err(error) => (Poll::Ready(Err(error)), Told::default()),
            Ok(0) => {
                if let Some(context) = context {
                    note(&mut lane.writer, context);
                }
                (Poll::Pending, Told::default())
            }
            Ok(room) => {
                let count = lane.write(slices, room);
                let told = [lane.reader.take(), lane.peeker.take(), None];
                (Poll::Ready(Ok(count)), told)
            }
        });
        tell(told);
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

impl Carries for End {
    fn poll_peek(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.incoming(|lane| {
            let seen = lane.peek(buffer);
            if seen.is_none() {
                note(&mut lane.peeker, context);
            }
            seen.map_or(Poll::Pending, Poll::Ready)
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

impl AsyncRead for End {
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

impl AsyncWrite for End {
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
        let told = self.outgoing(|lane| {
            lane.ended = true;
            lane.told()
        });
        tell(told);
        Poll::Ready(Ok(()))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let mut lanes = self.lanes.lock();
        let unread = !lanes[1 - self.side].bytes.is_empty();
        // Who leaves something unread resets the connection, as a system does.
        let resets = unread || self.resets.load(Ordering::Relaxed);
        lanes[1 - self.side].deaf = true;
        if resets {
            for lane in &mut *lanes {
                lane.break_off(io::ErrorKind::ConnectionReset);
            }
        } else {
            lanes[self.side].ended = true;
        }
        lanes[1 - self.side].bytes = BytesMut::new();
        let [one, other] = &mut *lanes;
        let told = (one.told(), other.told());
        drop(lanes);
        tell(told.0);
        tell(told.1);
    }
}
