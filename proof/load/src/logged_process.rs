//! A process whose output is kept in a file.

use std::{
    fs::File,
    io::{Read, Seek},
    net::{SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::Result;

/// A process whose output is stored; killed when dropped.
#[derive(Debug)]
pub(crate) struct LoggedProcess {
    child: Child,
    /// A file, because it is not read while the process runs and a pipe would fill up.
    output: File,
}

impl LoggedProcess {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let output = tempfile::tempfile()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn()?;
        Ok(Self { child, output })
    }

    /// Its pid.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// The end of its output.
    pub(crate) fn last_output(&mut self) -> Result<String> {
        let mut text = Vec::new();
        self.output.rewind()?;
        self.output.read_to_end(&mut text)?;
        let from = text.len().saturating_sub(4 << 10);
        Ok(String::from_utf8_lossy(&text[from..]).into_owned())
    }

    /// Sends SIGKILL, and waits.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for LoggedProcess {
    fn drop(&mut self) {
        // The number of a process that has ended may be that of another.
        if self.has_ended() {
            return;
        }
        // SIGTERM first, so that a process that has started others ends them.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").arg(id).status();
        for _ in 0..50 {
            if self.has_ended() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A free local address.
pub(crate) fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
