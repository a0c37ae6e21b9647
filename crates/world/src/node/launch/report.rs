//! Reports to the requesting process why a command could not be started.
//!
//! It is a pipe that each process of a launch passes to the next. The last one becomes the command,
//! which does not inherit it: the end of the pipe means that the command runs.

use std::{
    fs::File,
    io::{self, Write, stdin},
    os::fd::OwnedFd,
    process::{Command, Stdio},
};

use rustix::{io::fcntl_dupfd_cloexec, stdio::dup2_stdin};

use super::{Error, Launch};

const DEV_NULL: &str = "/dev/null";
/// The first descriptor after the standard streams.
const FIRST_FREE_FD: i32 = 3;

#[derive(Debug)]
pub(super) struct StartReport(OwnedFd);

impl StartReport {
    /// Takes the pipe from standard input, if the launch has one.
    pub(super) fn of(launch: &Launch) -> Result<Option<Self>, Error> {
        let taken = launch.reports.then(Self::take).transpose();
        taken.map_err(|source| Error::Root {
            path: DEV_NULL.into(),
            source,
        })
    }

    fn take() -> io::Result<Self> {
        let own = fcntl_dupfd_cloexec(stdin(), FIRST_FREE_FD)?;
        dup2_stdin(File::open(DEV_NULL)?)?;
        Ok(Self(own))
    }

    /// Passes it to the process that `command` starts.
    pub(super) fn give(&self, command: &mut Command) -> io::Result<()> {
        command.stdin(Stdio::from(self.0.try_clone()?));
        Ok(())
    }

    pub(super) fn send(self, why: &str) {
        // The reader may have given up.
        let _ = File::from(self.0).write_all(why.as_bytes());
    }
}
