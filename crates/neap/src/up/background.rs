//! `neap up --detach`, `neap down` and `neap logs`: a server in the background, found by its data folder.
//!
//! The server is the same program with the same arguments. It writes to `neap.log` in the data folder and
//! holds the lock of the folder while it runs, so neither a pid file nor a daemon is needed: `neap down`
//! signals the process that the lock names, and waits until the lock is free.

use std::{
    borrow::Cow,
    ffi::OsString,
    fs::{File, TryLockError},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::private;
use crate::{
    cli::{DownOptions, LogsOptions},
    exit::{Exit, Failure, chain},
    printable::{printable, shell_path},
};

const LOG: &str = "neap.log";
const LOCK: &str = "neap.lock";
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Pods have four seconds to end and the rest of the server ten; a start with a large store takes longer.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// The first words of the line that the transcript prints when the server serves.
const READY: &str = "Ready in ";
/// The first word of its line about how to stop the server.
const STOP: &str = "  stop ";

/// Starts `neap up` without `--detach` in the background, shows what it prints, and returns when it is
/// ready.
pub(super) fn detach(data: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let folder = create(data)?;
    if let Some(process) = running(&folder)? {
        return Err(in_use(&folder, process));
    }
    let log = folder.join(LOG);
    let file = File::create(&log).map_err(|error| unusable(&log, &error))?;
    let second = file.try_clone().map_err(|error| unusable(&log, &error))?;
    let program = std::env::current_exe().map_err(|error| unusable(&log, &error))?;
    let mut child = Command::new(program)
        .args(arguments(std::env::args_os().skip(1)))
        // For the case that the folder is the default, which the server without --detach does not have.
        .env("NEAP_DATA", data)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(second)
        // Ctrl-C in the terminal is meant for the commands that the user runs there.
        .process_group(0)
        .spawn()
        .map_err(|error| unusable(&log, &error))?;
    follow_start(&log, &mut child, out)?;
    let shown = shell_path(data);
    let stop = stop_line(data);
    let lines = format!("  logs     neap logs --data {shown}\n{stop}\n");
    out.write_all(lines.as_bytes())
        .map_err(|error| Failure::output(&error))
}

/// The arguments without `--detach`.
fn arguments(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    all.filter(|it| it != "--detach").collect()
}

/// Copies the log to `out` until the server is ready.
fn follow_start(log: &Path, child: &mut Child, out: &mut dyn Write) -> Result<(), Failure> {
    let mut lines = Lines::open(log).map_err(|error| unusable(log, &error))?;
    let mut ready = false;
    loop {
        let ended = child.try_wait().map_err(|error| unusable(log, &error))?;
        while let Some(line) = lines.next().map_err(|error| unusable(log, &error))? {
            // The server tells how to stop it with Ctrl-C, which does not reach it here.
            // What it logs meanwhile stays in the file.
            if !line.starts_with(STOP) && !line.starts_with('{') {
                writeln!(out, "{}", printable(&line)).map_err(|error| Failure::output(&error))?;
            }
            ready |= line.starts_with(READY);
        }
        // The lines after the first one are written in one go with it.
        if ready && lines.is_complete() {
            return Ok(());
        }
        if let Some(status) = ended {
            let what = "the server ended before it was ready";
            let why = format!(
                "{status}; what it printed is above and in {}",
                log.display()
            );
            return Err(Failure::new("NT-UP-0030", Exit::Failed, what, &why)
                .remedy("correct what the server reports, and start it again"));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Stops the server of a data folder and waits until it has ended.
pub(crate) fn down(options: &DownOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let folder = &options.data;
    let Some(process) = running(folder)? else {
        return Err(not_running(folder));
    };
    signal(process, Signal::TERM)?;
    let polls = STOP_TIMEOUT.as_millis() / POLL_INTERVAL.as_millis();
    for _ in 0..polls {
        if running(folder)? != Some(process) {
            let text = format!("stopped; everything stays in {}\n", folder.display());
            return out
                .write_all(text.as_bytes())
                .map_err(|error| Failure::output(&error));
        }
        thread::sleep(POLL_INTERVAL);
    }
    let what = format!("process {process} has not ended");
    let why = format!("it was asked to end {} s ago", STOP_TIMEOUT.as_secs());
    Err(
        Failure::new("NT-UP-0032", Exit::TimedOut, &what, &why).remedy(format!(
            "see what it waits for: neap logs --data {}",
            shell_path(folder)
        )),
    )
}

/// Prints the log of a server that was started with `--detach`.
pub(crate) fn logs(options: &LogsOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let log = options.data.join(LOG);
    let mut lines = match Lines::open(&log) {
        Ok(lines) => lines,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let what = format!("there is no log in {}", options.data.display());
            let why = "no server was started there with --detach";
            return Err(
                Failure::new("NT-UP-0031", Exit::NotFound, &what, why).remedy(format!(
                    "start one: neap up --detach --data {}",
                    shell_path(&options.data)
                )),
            );
        }
        Err(error) => return Err(unusable(&log, &error)),
    };
    loop {
        while let Some(line) = lines.next().map_err(|error| unusable(&log, &error))? {
            let line = reachable(&line, &options.data);
            writeln!(out, "{}", printable(&line)).map_err(|error| Failure::output(&error))?;
        }
        // A server that has ended writes nothing more.
        if !options.follow || running(&options.data)?.is_none() {
            return Ok(());
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// A line of the log. Where the server tells how to stop it with Ctrl-C, which does not reach it, the line has the
/// command that does.
fn reachable<'a>(line: &'a str, data: &Path) -> Cow<'a, str> {
    if line.starts_with(STOP) {
        stop_line(data).into()
    } else {
        line.into()
    }
}

fn stop_line(data: &Path) -> String {
    format!("{STOP}    neap down --data {}", shell_path(data))
}

/// The process that serves a data folder.
fn running(folder: &Path) -> Result<Option<i32>, Failure> {
    let path = folder.join(LOCK);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(&path, &error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let text = private::read(&path).map_err(|error| unusable(&path, &error))?;
            // Between taking the lock and writing its number, a server has none.
            Ok(text.and_then(|text| text.trim().parse().ok()))
        }
        Err(TryLockError::Error(error)) => Err(unusable(&path, &error)),
    }
}

fn signal(process: i32, signal: Signal) -> Result<(), Failure> {
    let sent = Pid::from_raw(process).map(|process| kill_process(process, signal));
    match sent {
        // A process that has ended in the meantime is what is wanted.
        Some(Ok(()) | Err(rustix::io::Errno::SRCH)) => Ok(()),
        Some(Err(error)) => {
            let what = format!("cannot stop process {process}");
            let why = io::Error::from(error).to_string();
            Err(Failure::new("NT-UP-0032", Exit::NotAllowed, &what, &why)
                .remedy("stop it as the user who started it"))
        }
        None => Err(Failure::new(
            "NT-UP-0032",
            Exit::Failed,
            "cannot stop the server",
            &format!("its lock file names {process}, which is not a process"),
        )
        .remedy("end the process that holds the lock: lsof neap.lock")),
    }
}

fn create(data: &Path) -> Result<PathBuf, Failure> {
    private::create_folder(data)
        .and_then(|()| data.canonicalize())
        .map_err(|error| unusable(data, &error))
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    let what = format!("cannot use {}", path.display());
    Failure::new("NT-UP-0004", Exit::Refused, &what, &chain(error))
        .remedy("choose a folder with write permission with --data")
}

fn in_use(folder: &Path, process: i32) -> Failure {
    let what = format!("the data folder {} is in use", folder.display());
    let why = format!("another neap up uses it (process {process})");
    Failure::new("NT-UP-0003", Exit::Refused, &what, &why)
        .remedy(format!("stop it: neap down --data {}", shell_path(folder)))
}

fn not_running(folder: &Path) -> Failure {
    let what = format!("no server runs on {}", folder.display());
    let why = "no process holds the lock of that folder";
    Failure::new("NT-UP-0031", Exit::NotFound, &what, why)
        .remedy("name the folder that neap up was started with: --data DIR")
}

/// The complete lines of a file that grows.
struct Lines {
    file: BufReader<File>,
    partial: String,
}

impl Lines {
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Self {
            file: BufReader::new(file),
            partial: String::new(),
        })
    }

    /// The next complete line, without its end.
    fn next(&mut self) -> io::Result<Option<String>> {
        let mut bytes = Vec::new();
        // A line without an end is bounded like every other read.
        (&mut self.file)
            .take(1 << 20)
            .read_until(b'\n', &mut bytes)?;
        self.partial.push_str(&String::from_utf8_lossy(&bytes));
        if !self.partial.ends_with('\n') {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.partial);
        line.truncate(line.trim_end_matches('\n').len());
        Ok(Some(line))
    }

    /// Whether no part of a further line was read.
    fn is_complete(&self) -> bool {
        self.partial.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{self, Cli};

    #[test]
    fn a_server_in_the_background_is_not_stopped_with_ctrl_c() {
        let data = Path::new("/data/a");
        let line = "  stop     Ctrl-C; everything stays in /data/a";
        assert_eq!(reachable(line, data), "  stop     neap down --data /data/a");
        assert_eq!(reachable("Stopped.", data), "Stopped.");
    }

    #[test]
    fn only_the_flag_itself_is_left_out_of_the_arguments() {
        let given = ["up", "--detach", "--data", "a"].map(OsString::from);
        let expected = ["up", "--data", "a"].map(OsString::from);
        assert_eq!(arguments(given.into_iter()), expected);
    }

    #[test]
    fn only_a_server_in_the_background_has_a_folder_without_naming_one() {
        let data = |arguments: &[&str]| {
            let parsed = Cli::try_parse_from(arguments).unwrap();
            match parsed.command {
                cli::Command::Up(options) => options.data,
                cli::Command::Down(options) => Some(options.data),
                cli::Command::Logs(options) => Some(options.data),
                _ => None,
            }
        };
        for (arguments, expected) in [
            (&["neap", "up"][..], None),
            (&["neap", "up", "--detach"], Some("./neap-data")),
            (&["neap", "up", "--detach", "--data", "a"], Some("a")),
            (&["neap", "down"], Some("./neap-data")),
            (&["neap", "logs", "-f"], Some("./neap-data")),
            (&["neap", "logs", "--data", "a"], Some("a")),
        ] {
            assert_eq!(
                data(arguments),
                expected.map(PathBuf::from),
                "{arguments:?}"
            );
        }
    }

    #[test]
    fn lines_are_read_when_they_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one\ntw").unwrap();
        let mut lines = Lines::open(&path).unwrap();
        assert_eq!(lines.next().unwrap().as_deref(), Some("one"));
        assert_eq!(lines.next().unwrap(), None);
        assert!(!lines.is_complete());
        file.write_all(b"o\n").unwrap();
        assert_eq!(lines.next().unwrap().as_deref(), Some("two"));
        assert!(lines.is_complete());
    }

    #[test]
    fn a_folder_without_a_server_has_no_process() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(running(folder.path()).unwrap(), None);
        std::fs::write(folder.path().join(LOCK), "1\n").unwrap();
        assert_eq!(running(folder.path()).unwrap(), None, "the lock is free");
        let held = File::open(folder.path().join(LOCK)).unwrap();
        held.lock().unwrap();
        assert_eq!(running(folder.path()).unwrap(), Some(1));
    }
}
