//! A `neap up` that is started, measured and ended from outside.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Seek},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    client::Client, kubeconfig::Kubeconfig, process::resident_bytes, stopwatch::Stopwatch,
};

/// A starting or running server; killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// A file, because it is not read while the server runs and a pipe would fill up.
    stderr: File,
    watch: Stopwatch,
    ready_after: Duration,
    kubeconfig: PathBuf,
    /// What it has printed until it was ready.
    printed: String,
}

impl Server {
    /// Starts `neap up --bare` on a free port, with a data folder if one is named, and does not
    /// wait.
    pub fn launch(neap: &Path, data: Option<&Path>) -> Result<Self> {
        let mut command = Command::new(neap);
        Self::launch_command(&mut command, data)
    }

    /// The same with a command that executes `neap`, such as a shell that sets limits.
    pub fn launch_command(command: &mut Command, data: Option<&Path>) -> Result<Self> {
        command.args(["up", "--bare", "--listen", "127.0.0.1:0"]);
        Self::spawn(command, data)
    }

    /// Starts `neap up --bare` in memory with a large service range, and waits until it is ready.
    pub fn start_roomy(neap: &Path) -> Result<Self> {
        let mut command = Command::new(neap);
        command.args(["up", "--bare", "--listen", "127.0.0.1:0"]);
        command.args(["--service-range", "10.0.0.0/16"]);
        Self::spawn(&mut command, None)?.ready()
    }

    /// Starts a complete `neap up` in memory, with its controllers and its node, which may have a
    /// table of images, and waits until it is ready.
    pub fn start_whole(neap: &Path, images: Option<&Path>) -> Result<Self> {
        let mut command = Command::new(neap);
        command.args(["up", "--listen", "127.0.0.1:0"]);
        if let Some(images) = images {
            command.arg("--images").arg(images);
        }
        Self::spawn(&mut command, None)?.ready()
    }

    /// The same with further arguments.
    pub fn start_whole_with(neap: &Path, arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(neap);
        command.args(["up", "--listen", "127.0.0.1:0"]);
        Self::spawn(command.args(arguments), None)?.ready()
    }

    /// The same without such a table, with a command that executes `neap`, such as one that sets
    /// variables.
    pub fn start_whole_command(command: &mut Command) -> Result<Self> {
        command.args(["up", "--listen", "127.0.0.1:0"]);
        Self::spawn(command, None)?.ready()
    }

    fn spawn(command: &mut Command, data: Option<&Path>) -> Result<Self> {
        let watch = Stopwatch::start();
        if let Some(data) = data {
            command.arg("--data").arg(data);
        }
        let stderr = tempfile::tempfile()?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr.try_clone()?)
            .spawn()
            .context("cannot run neap")?;
        let stdout = child.stdout.take().context("neap up has no output")?;
        Ok(Self {
            child,
            stdout: BufReader::new(stdout),
            stderr,
            watch,
            ready_after: Duration::ZERO,
            kubeconfig: PathBuf::new(),
            printed: String::new(),
        })
    }

    /// Starts it and waits until it is ready.
    pub fn start(neap: &Path, data: Option<&Path>) -> Result<Self> {
        Self::launch(neap, data)?.ready()
    }

    /// Waits until the server reports that it is ready; fails with its stderr if it ends instead.
    pub fn ready(mut self) -> Result<Self> {
        let mut line = String::new();
        while self.stdout.read_line(&mut line)? > 0 {
            if let Some((_, path)) = line.trim_end().split_once("KUBECONFIG=") {
                self.ready_after = self.watch.elapsed();
                self.kubeconfig = path.into();
                return Ok(self);
            }
            self.printed.push_str(&line);
            line.clear();
        }
        let status = self.child.wait()?;
        bail!(
            "neap up ended before it was ready ({status}): {}",
            self.complaints()?
        )
    }

    /// The time from its start to its report that it is ready.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// Its pid.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The host and port of its image registry.
    pub fn registry(&self) -> Result<&str> {
        let rest = self.printed.split_once(" registry ");
        let address = rest.and_then(|(_, rest)| rest.split_once("http://"));
        let address = address.and_then(|(_, address)| address.split_whitespace().next());
        address.context("neap up has printed no registry")
    }

    /// A client with the credentials of the kubeconfig.
    pub fn client(&self) -> Result<Client> {
        Client::new(&Kubeconfig::read(&self.kubeconfig)?)
    }

    pub fn resident_bytes(&self) -> Result<u64> {
        resident_bytes(self.id())
    }

    /// Sends SIGKILL, which is as close to a power cut as the kernel allows, and waits.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Sends SIGTERM, and returns its exit status and its stderr.
    pub fn stop(mut self) -> Result<(ExitStatus, String)> {
        let id = self.id().to_string();
        let sent = Command::new("kill").arg(&id).status()?;
        anyhow::ensure!(sent.success(), "the server is gone already");
        let status = self.child.wait()?;
        Ok((status, self.complaints()?))
    }

    /// Its stderr so far.
    pub fn complaints(&mut self) -> Result<String> {
        let mut text = String::new();
        self.stderr.rewind()?;
        self.stderr.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Whether it ended by itself.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The size of all files under a folder.
pub fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        bytes += if data.is_dir() {
            folder_bytes(&entry.path())?
        } else {
            data.len()
        };
    }
    Ok(bytes)
}
