//! A process that goes on as two.

use std::{
    fmt, fs,
    io::{self, PipeReader, PipeWriter, Read, Write},
    time::Duration,
};

use nix::{
    sys::{
        resource::{Resource, setrlimit},
        wait::waitpid,
    },
    unistd::{ForkResult, Pid, fork},
};

use crate::afresh;

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

/// Goes on as two processes. Refused unless the caller is the only thread of its process that does
/// anything: whatever another one holds would be held for ever in the copy.
///
/// The copy is killed once it has used `limit` of a core: real time says nothing about a run, which
/// may have to wait for its turn.
pub fn split(limit: Duration) -> io::Result<Role> {
    if fs::read_dir("/proc/self/task")?.count() > 1 + afresh::waiting() {
        return Err(io::Error::other(
            "a process with several threads cannot split",
        ));
    }
    let (words, pen) = io::pipe()?;
    // SAFETY: no other thread does anything, as was just seen: one may wait for this one to end, and
    // holds nothing meanwhile. So no lock is held by anybody who is not copied.
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
            afresh::alone();
            let seconds = limit.as_secs().max(1);
            let pen = Pen(pen);
            if setrlimit(Resource::RLIMIT_CPU, seconds, seconds).is_err() {
                // It must not go on as if it were the original, nor without a limit.
                pen.finish(&[]);
            }
            Ok(Role::Child(pen))
        }
    }
}

impl Child {
    /// What the copy told before it ended: nothing if it was killed or died.
    pub fn wait(mut self) -> io::Result<Vec<u8>> {
        let mut told = Vec::new();
        let heard = self.words.read_to_end(&mut told);
        waitpid(self.process, None)?;
        heard?;
        Ok(told)
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
