//! A process that goes on as two.

use std::{
    fmt, fs,
    io::{self, PipeReader, PipeWriter, Read, Write},
    os::fd::AsFd,
    time::Duration,
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{Signal, kill},
        wait::waitpid,
    },
    unistd::{ForkResult, Pid, fork},
};

/// Which of the two this is.
#[derive(Debug)]
pub enum Role {
    /// The one that was there before.
    Parent(Child),
    /// Its copy.
    Child(Pen),
}

/// The copy, as the original knows it.
#[derive(Debug)]
pub struct Child {
    process: Pid,
    words: PipeReader,
}

/// What the copy tells the original with.
pub struct Pen(PipeWriter);

/// Goes on as two processes. Refused unless the caller is the only thread of its process: whatever
/// another one holds would be held for ever in the copy.
pub fn split() -> io::Result<Role> {
    if fs::read_dir("/proc/self/task")?.count() > 1 {
        return Err(io::Error::other(
            "a process with several threads cannot split",
        ));
    }
    let (words, pen) = io::pipe()?;
    // SAFETY: the process has one thread, as was just seen, and that is here: no lock is held by
    // anybody who is not copied.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            drop(pen);
            Ok(Role::Parent(Child {
                process: child,
                words,
            }))
        }
        ForkResult::Child => {
            drop(words);
            Ok(Role::Child(Pen(pen)))
        }
    }
}

impl Child {
    /// What the copy told before it ended; `None` if it was silent for so long and was killed.
    pub fn wait(mut self, limit: Duration) -> io::Result<Option<Vec<u8>>> {
        let heard = self.listen(limit);
        if !matches!(heard, Ok(Some(_))) {
            let _ = kill(self.process, Signal::SIGKILL);
        }
        waitpid(self.process, None)?;
        heard
    }

    fn listen(&mut self, limit: Duration) -> io::Result<Option<Vec<u8>>> {
        let mut told = Vec::new();
        let patience = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        let mut piece = [0; 16 * 1024];
        loop {
            let mut ready = [PollFd::new(self.words.as_fd(), PollFlags::POLLIN)];
            if poll(&mut ready, patience)? == 0 {
                return Ok(None);
            }
            match self.words.read(&mut piece)? {
                0 => return Ok(Some(told)),
                length => told.extend_from_slice(&piece[..length]),
            }
        }
    }
}

impl Pen {
    /// Tells `words` and ends this process at once: nothing is dropped, nothing else is run.
    pub fn finish(mut self, words: &[u8]) -> ! {
        let told = self.0.write_all(words);
        // SAFETY: ends the process without running anything of it.
        unsafe { nix::libc::_exit(i32::from(told.is_err())) }
    }
}

impl fmt::Debug for Pen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pen")
    }
}
