//! A server, and the kubectl command configured for it.

use std::{
    fmt::Write as _,
    fs::{self, File, Permissions},
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{command_output::CommandOutput, skip::skip};

/// Bounds the wait for a line of a followed command.
const LINE_TIMEOUT: Duration = Duration::from_mins(1);

/// A running `neap up`, and the working folder of kubectl.
pub(crate) struct KubectlCluster {
    folder: TempDir,
    kubectl: PathBuf,
    neap: Child,
    _transcript: BufReader<ChildStdout>,
}

impl KubectlCluster {
    /// Starts an API server without workloads; skips the test and returns `None` if kubectl is missing.
    pub(crate) fn start(test: &str) -> Option<Self> {
        Self::up(test, &["--bare"])
    }

    /// Starts a server; without `--bare` it runs workloads.
    pub(crate) fn up(test: &str, arguments: &[&str]) -> Option<Self> {
        Self::launch(test, Command::new(program()), arguments)
    }

    /// Starts a server as an unprivileged user, or as the current user if that is not root.
    pub(crate) fn up_without_root(test: &str) -> Option<Self> {
        Self::up_from(test, &program())
    }

    /// Starts a copy of the program as an unprivileged user.
    pub(crate) fn up_from(test: &str, neap: &Path) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return Self::launch(test, Command::new(neap), &[]);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(neap);
        Self::launch(test, command, &[])
    }

    fn launch(test: &str, mut neap: Command, arguments: &[&str]) -> Option<Self> {
        let Some(kubectl) = std::env::var_os("NEAP_KUBECTL") else {
            skip(test, "NEAP_KUBECTL is not set; run cargo xtask test");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        // The user of the server must be able to write files here.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        let mut neap = neap
            .args(["up", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(folder.path().join("kubeconfig"))
            .args(arguments)
            .env_clear()
            .env("HOME", folder.path().join("home"))
            .env("TMPDIR", folder.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut transcript = BufReader::new(neap.stdout.take().unwrap());
        let mut printed = String::new();
        // The line about stopping is the last one of the start-up transcript.
        while !printed.contains("\n  stop ") {
            let read = transcript.read_line(&mut printed).unwrap();
            assert!(read > 0, "neap up ended early: {printed}");
        }
        Some(Self {
            folder,
            kubectl: kubectl.into(),
            neap,
            _transcript: transcript,
        })
    }

    /// Kills the server and waits for its end.
    pub(crate) fn kill(&mut self) {
        let _ = self.neap.kill();
        let _ = self.neap.wait();
    }

    /// Writes a YAML file to the working folder.
    pub(crate) fn file(&self, name: &str, text: &str) {
        // Older releases of kubectl parse a file that starts with a brace as JSON.
        let text = format!("---\n{text}");
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// A command from a line such as `get pods -l 'a in (b)'`, split as by a shell.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .args(words(line))
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path().join("home"))
            .env("TMPDIR", self.folder.path())
            .env("KUBECONFIG", self.folder.path().join("kubeconfig"))
            // For diff, and for the sed of the editor.
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end, whatever its exit code.
    pub(crate) fn run(&self, line: &str) -> CommandOutput {
        run_to_end(&mut self.command(line))
    }

    /// Runs a command that must succeed; returns its output.
    pub(crate) fn ok(&self, line: &str) -> String {
        let said = self.run(line);
        let ok = said.code == Some(0);
        assert!(ok, "kubectl {line}: {said:?}\n{}", self.diagnostics());
        said.stdout
    }

    /// Objects, events and the server log, for the report of an unexpected failure, which may be hard to
    /// reproduce.
    fn diagnostics(&self) -> String {
        let mut text = String::new();
        for line in ["get all,pvc -A -o wide", "get pods -o yaml", "get events"] {
            let CommandOutput { stdout, stderr, .. } = self.run(line);
            let _ = writeln!(text, "--- kubectl {line}\n{stdout}{stderr}");
        }
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        text + "--- the server's log\n" + &log
    }

    /// Runs a command that must succeed; returns the JSON that it prints.
    pub(crate) fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("{line} -o json"))).unwrap()
    }

    /// Runs a command that must exit with 1; returns its error output.
    pub(crate) fn refused(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!(said.code, Some(1), "kubectl {line}: {said:?}");
        assert!(!said.stderr.contains("goroutine"), "{}", said.stderr);
        said.stderr
    }

    /// Runs a command with standard input.
    pub(crate) fn run_with_input(&self, line: &str, input: &str) -> CommandOutput {
        let mut command = self.command(line);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap().into()
    }

    /// Runs a command that must succeed, until its output contains all of `words`.
    #[track_caller]
    pub(crate) fn prints(&self, line: &str, words: &[&str]) -> String {
        let mut text = String::new();
        for _ in 0..600 {
            text = self.ok(line);
            if words.iter().all(|words| text.contains(words)) {
                return text;
            }
            std::thread::park_timeout(Duration::from_millis(100));
        }
        panic!("kubectl {line} never prints {words:?}:\n{text}");
    }

    /// Runs `neap` with the kubeconfig of this cluster.
    pub(crate) fn neap(&self, line: &str) -> CommandOutput {
        let mut command = Command::new(program());
        command.args(words(line)).env_clear();
        command.env("KUBECONFIG", self.folder.path().join("kubeconfig"));
        run_to_end(&mut command)
    }

    /// Edits an object with a sed script as the editor.
    pub(crate) fn edit(&self, object: &str, script: &str) -> CommandOutput {
        let editor = format!("sed -i -e '{script}'");
        run_to_end(
            self.command(&format!("edit {object}"))
                .env("KUBE_EDITOR", editor),
        )
    }

    /// Starts a command that keeps printing.
    pub(crate) fn follow(&self, line: &str) -> FollowedCommand {
        let mut child = self
            .command(line)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::sync_channel(64);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        FollowedCommand { child, lines }
    }
}

impl Drop for KubectlCluster {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A running command, read line by line.
pub(crate) struct FollowedCommand {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl FollowedCommand {
    /// The next line, with runs of spaces collapsed.
    pub(crate) fn line(&self) -> String {
        let line = self.lines.recv_timeout(LINE_TIMEOUT);
        squeezed(&line.expect("another line"))
    }

    /// Waits for the end; returns the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for FollowedCommand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program under test.
pub(crate) fn program() -> PathBuf {
    let other = std::env::var_os("NEAP_BIN");
    other.unwrap_or(env!("CARGO_BIN_EXE_neap").into()).into()
}

fn run_to_end(command: &mut Command) -> CommandOutput {
    command.output().unwrap().into()
}

/// Splits a line at spaces, except inside single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![];
    let (mut word, mut quoted) = (String::new(), false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
            }
            c => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Asserts the lines of a table: `expected` has single spaces, and `*` for any word. Blank lines between
/// tables are ignored.
#[track_caller]
pub(crate) fn assert_table(text: &str, expected: &[&str]) {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let same = |line: &str, pattern: &str| {
        let (line, pattern) = (line.split_whitespace(), pattern.split(' '));
        line.clone().count() == pattern.clone().count()
            && line.zip(pattern).all(|(word, p)| p == "*" || p == word)
    };
    let agree = lines.len() == expected.len()
        && lines
            .iter()
            .zip(expected)
            .all(|(line, pattern)| same(line, pattern));
    assert!(agree, "{text}\nis not\n{expected:#?}");
}

/// Asserts that the text has these lines, in any order and with any indentation.
#[track_caller]
pub(crate) fn assert_lines(text: &str, expected: &[&str]) {
    for line in expected {
        assert!(
            text.lines().any(|found| squeezed(found) == *line),
            "no line {line:?} in\n{text}"
        );
    }
}
