//! Says why a command could not be started, to whoever asked for it.
//!
//! It is a pipe that each process of a launch has until the next one has it. The last one turns into
//! the command, which does not have it: the end of the pipe says that the command runs.

use std::{
    fs::File,
    io::{self, Write, stdin},
    os::fd::OwnedFd,
    process::{Command, Stdio},
};

use rustix::{io::fcntl_dupfd_cloexec, stdio::dup2_stdin};

use super::{Error, Launch};

const NOTHING: &str = "/dev/null";
/// The standard streams come before.
const FIRST_OTHER: i32 = 3;

#[derive(Debug)]
pub(super) struct Report(OwnedFd);

impl Report {
    /// Takes standard input, if that is what it is.
    pub(super) fn of(launch: &Launch) -> Result<Option<Self>, Error> {
        let taken = launch.reports.then(Self::take).transpose();
        taken.map_err(|source| Error::Root {
            path: NOTHING.into(),
            source,
        })
    }

    fn take() -> io::Result<Self> {
        let own = fcntl_dupfd_cloexec(stdin(), FIRST_OTHER)?;
        dup2_stdin(File::open(NOTHING)?)?;
        Ok(Self(own))
    }

    /// Gives it to the process that `command` starts, too.
    pub(super) fn give(&self, command: &mut Command) -> io::Result<()> {
        command.stdin(Stdio::from(self.0.try_clone()?));
        Ok(())
    }

    pub(super) fn tell(self, why: &str) {
        // Somebody who does not read it any more does not want to know.
        let _ = File::from(self.0).write_all(why.as_bytes());
    }
}
