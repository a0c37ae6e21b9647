//! A server and a kubectl that knows it, in a folder of their own.

use std::{
    fmt::Write as _,
    fs::{self, File, Permissions},
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Output, Stdio},
    sync::mpsc,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

/// How long a test waits for a line that does not come.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running `neap up` and the folder that kubectl works in.
pub(crate) struct Cluster {
    folder: TempDir,
    kubectl: PathBuf,
    neap: Child,
    _transcript: BufReader<ChildStdout>,
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Cluster {
    /// Starts a server on which nothing runs; `None`, and a word about it, if there is no kubectl.
    pub(crate) fn start(test: &str) -> Option<Self> {
        Self::up(test, &["--bare"])
    }

    /// Starts a server; on all but a bare one workloads run.
    pub(crate) fn up(test: &str, arguments: &[&str]) -> Option<Self> {
        Self::launch(test, Command::new(program()), arguments)
    }

    /// The same for a user without privileges; as oneself, if one has none.
    pub(crate) fn up_without_root(test: &str) -> Option<Self> {
        Self::up_from(test, &program())
    }

    /// The same with the program at another place.
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
        // Whoever the server runs as writes its files here.
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
        let mut said = String::new();
        // The line about stopping is the last one before the server waits.
        while !said.contains("\n  stop ") {
            let read = transcript.read_line(&mut said).unwrap();
            assert!(read > 0, "neap up ended early: {said}");
        }
        Some(Self {
            folder,
            kubectl: kubectl.into(),
            neap,
            _transcript: transcript,
        })
    }

    /// Kills the server as it stands, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.neap.kill();
        let _ = self.neap.wait();
    }

    /// Writes a YAML file that later commands know by its name.
    pub(crate) fn file(&self, name: &str, text: &str) {
        // Older releases take what begins with a brace for JSON.
        let text = format!("---\n{text}");
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// A command line such as `get pods -l 'a in (b)'`, split as a shell does.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .args(words(line))
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path().join("home"))
            .env("TMPDIR", self.folder.path())
            .env("KUBECONFIG", self.folder.path().join("kubeconfig"))
            // diff and the editor's sed come from here.
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command, however it ends.
    pub(crate) fn run(&self, line: &str) -> Said {
        said(&mut self.command(line))
    }

    /// Runs a command that succeeds; its output.
    pub(crate) fn ok(&self, line: &str) -> String {
        let said = self.run(line);
        let ok = said.code == Some(0);
        assert!(ok, "kubectl {line}: {said:?}\n{}", self.scene());
        said.stdout
    }

    /// What there is to be seen when a command failed that must not: a failure may not come again soon.
    fn scene(&self) -> String {
        let mut scene = String::new();
        for line in ["get all,pvc -A -o wide", "get pods -o yaml", "get events"] {
            let Said { stdout, stderr, .. } = self.run(line);
            let _ = writeln!(scene, "--- kubectl {line}\n{stdout}{stderr}");
        }
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        scene + "--- the server's log\n" + &log
    }

    /// Runs a command that succeeds; the JSON that it prints.
    pub(crate) fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("{line} -o json"))).unwrap()
    }

    /// Runs a command that ends with 1 and says why.
    pub(crate) fn refused(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!(said.code, Some(1), "kubectl {line}: {said:?}");
        assert!(!said.stderr.contains("goroutine"), "{}", said.stderr);
        said.stderr
    }

    /// Runs a command that is given something to read.
    pub(crate) fn fed(&self, line: &str, input: &str) -> Said {
        let mut command = self.command(line);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        of(child.wait_with_output().unwrap())
    }

    /// Runs a command that succeeds, until what it prints has all of these words.
    #[track_caller]
    pub(crate) fn says(&self, line: &str, words: &[&str]) -> String {
        let mut text = String::new();
        for _ in 0..600 {
            text = self.ok(line);
            if words.iter().all(|words| text.contains(words)) {
                return text;
            }
            std::thread::park_timeout(Duration::from_millis(100));
        }
        panic!("kubectl {line} never says {words:?}:\n{text}");
    }

    /// Runs `neap` itself on this cluster.
    pub(crate) fn neap(&self, line: &str) -> Said {
        let mut command = Command::new(program());
        command.args(words(line)).env_clear();
        command.env("KUBECONFIG", self.folder.path().join("kubeconfig"));
        said(&mut command)
    }

    /// Edits an object with a sed script for an editor.
    pub(crate) fn edit(&self, object: &str, script: &str) -> Said {
        let editor = format!("sed -i -e '{script}'");
        said(
            self.command(&format!("edit {object}"))
                .env("KUBE_EDITOR", editor),
        )
    }

    /// Starts a command that goes on.
    pub(crate) fn follow(&self, line: &str) -> Follow {
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
        Follow { child, lines }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A command that goes on, read line by line.
pub(crate) struct Follow {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Follow {
    /// The next line, with runs of spaces as one.
    pub(crate) fn line(&self) -> String {
        let line = self.lines.recv_timeout(PATIENCE);
        squeezed(&line.expect("another line"))
    }

    /// Waits for the end; the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Follow {
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

fn said(command: &mut Command) -> Said {
    of(command.output().unwrap())
}

fn of(output: Output) -> Said {
    Said {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Words are parted by spaces, except inside single quotes.
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

/// Asserts what a table says: lines with single spaces, `*` for any one word. Blank lines between
/// tables do not count.
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

/// Asserts that a text has lines, in any order, whatever their indentation.
#[track_caller]
pub(crate) fn assert_lines(text: &str, expected: &[&str]) {
    for line in expected {
        assert!(
            text.lines().any(|said| squeezed(said) == *line),
            "no line {line:?} in\n{text}"
        );
    }
}

/// Says that a test did not run, so that it is not counted as passed.
pub(crate) fn skip(test: &str, why: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
    assert!(!in_ci, "{test} did not run: {why}");
    if let Some(path) = std::env::var_os("NEAP_SKIPS") {
        let mut file = File::options().append(true).open(path).unwrap();
        // One write, so that lines of tests that run at the same time do not mix.
        file.write_all(format!("SKIPPED {test}: {why}\n").as_bytes())
            .unwrap();
    }
}
