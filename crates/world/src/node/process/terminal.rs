//! The near end of a terminal whose far end a process has.

use std::{
    io,
    os::fd::OwnedFd,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
    pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, unix::AsyncFd};

/// The near end. What is written to it was typed; what is read from it is on the screen.
#[derive(Debug, Clone)]
pub struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    /// A new terminal, and its far end.
    #[expect(
        deprecated,
        reason = "an owned descriptor stays open; what is advised instead is unsafe"
    )]
    pub(super) fn open() -> io::Result<(Self, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = openpt(flags)?;
        unlockpt(&near)?;
        let far = ioctl_tiocgptpeer(&near, flags)?;
        fcntl_setfl(&near, fcntl_getfl(&near)? | OFlags::NONBLOCK)?;
        Ok((Self(Arc::new(AsyncFd::new(near)?)), far))
    }

    /// The window has another size; whoever draws in it is told.
    pub fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(tcsetwinsize(self.0.get_ref(), size)?)
    }
}

impl AsyncRead for Terminal {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(context))?;
            let room = into.initialize_unfilled();
            match ready.try_io(|near| Ok(rustix::io::read(near.get_ref(), &mut *room)?)) {
                Ok(Ok(count)) => {
                    into.advance(count);
                    return Poll::Ready(Ok(()));
                }
                // Nobody has the far end any more.
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_not_ready) => {}
            }
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        typed: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.0.poll_write_ready(context))?;
            match ready.try_io(|near| Ok(rustix::io::write(near.get_ref(), typed)?)) {
                Ok(written) => return Poll::Ready(written),
                Err(_not_ready) => {}
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
