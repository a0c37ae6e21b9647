//! Runs `neap up` with its own home and temporary folder.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use tempfile::TempDir;

use crate::command_output::CommandOutput;

/// Home and temporary folder of the servers of a test; removed on drop.
pub(crate) struct Sandbox(TempDir);

impl Sandbox {
    pub(crate) fn new() -> Self {
        let sandbox = Self(tempfile::tempdir().unwrap());
        fs::create_dir(sandbox.home()).unwrap();
        fs::create_dir(sandbox.temporary()).unwrap();
        sandbox
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.path("tmp")
    }

    /// Starts `neap up` on a free port and waits until it is ready.
    pub(crate) fn up(&self, arguments: &[&str]) -> RunningServer {
        self.up_on("127.0.0.1:0", arguments)
    }

    pub(crate) fn up_on(&self, listen: &str, arguments: &[&str]) -> RunningServer {
        let mut command = self.command(arguments);
        let mut child = command.args(["--listen", listen]).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut transcript = String::new();
        // The line about stopping is the last one of the start-up transcript.
        while !transcript.contains("\n  stop ") {
            if stdout.read_line(&mut transcript).unwrap() == 0 {
                let end = wait_for_end(child, stdout);
                panic!("neap up ended early: {transcript}{}", end.stderr);
            }
        }
        RunningServer {
            child: Some((child, stdout)),
            transcript,
        }
    }

    /// Runs a `neap up` that must fail to start.
    pub(crate) fn refused(&self, arguments: &[&str]) -> CommandOutput {
        self.command(arguments).output().unwrap().into()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_neap"));
        command
            .arg("up")
            .args(arguments)
            .process_group(0)
            .env_clear()
            .env("HOME", self.home())
            .env("TMPDIR", self.temporary())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// A server that is ready; killed on drop.
pub(crate) struct RunningServer {
    child: Option<(Child, BufReader<ChildStdout>)>,
    transcript: String,
}

impl RunningServer {
    pub(crate) fn transcript(&self) -> &str {
        &self.transcript
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().0.id()
    }

    pub(crate) fn kubeconfig_path(&self) -> PathBuf {
        let (_, rest) = self.transcript.split_once("KUBECONFIG=").unwrap();
        rest.lines().next().unwrap().into()
    }

    pub(crate) fn kubeconfig(&self) -> AdminKubeconfig {
        AdminKubeconfig::read(&self.kubeconfig_path())
    }

    /// Sends the signal and waits for the end.
    pub(crate) fn stop(self, signal: &str) -> CommandOutput {
        let id = self.id().to_string();
        self.end(&["-s", signal, &id])
    }

    /// Does what Ctrl-C in a terminal does: sends SIGINT to the process group.
    pub(crate) fn interrupt(self) -> CommandOutput {
        let group = format!("-{}", self.id());
        self.end(&["-s", "INT", "--", &group])
    }

    fn end(mut self, kill: &[&str]) -> CommandOutput {
        let (child, stdout) = self.child.take().unwrap();
        let sent = Command::new("kill").args(kill).status();
        assert!(sent.unwrap().success());
        wait_for_end(child, stdout)
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if let Some((mut child, _)) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits for the end of a server; the output is what it printed since the start-up transcript.
fn wait_for_end(mut child: Child, mut stdout: BufReader<ChildStdout>) -> CommandOutput {
    let mut end = CommandOutput {
        code: None,
        stdout: String::new(),
        stderr: String::new(),
    };
    stdout.read_to_string(&mut end.stdout).unwrap();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut end.stderr).unwrap();
    end.code = child.wait().unwrap().code();
    end
}

/// The credentials in the kubeconfig of `neap up`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AdminKubeconfig {
    pub(crate) server: String,
    pub(crate) authority: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) token: String,
}

impl AdminKubeconfig {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let config: Value = serde_saphyr::from_str(&text).unwrap();
        let text = |pointer| {
            config
                .pointer(pointer)
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        };
        let pem = |pointer| String::from_utf8(STANDARD.decode(text(pointer)).unwrap()).unwrap();
        assert_eq!(text("/current-context"), text("/contexts/0/name"));
        Self {
            server: text("/clusters/0/cluster/server"),
            authority: pem("/clusters/0/cluster/certificate-authority-data"),
            certificate: pem("/users/1/user/client-certificate-data"),
            key: pem("/users/1/user/client-key-data"),
            token: text("/users/0/user/token"),
        }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> String {
        self.server.strip_prefix("https://").unwrap().to_owned()
    }
}
