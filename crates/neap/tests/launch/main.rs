//! What a container's process finds around it, and that nothing of it is left behind.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod rooms;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use neap_world::node::{
    launch::{Joined, Launch, Mount, Rooms},
    trial,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A folder for a container, and what is to run in it.
struct Container {
    folder: TempDir,
    launch: Launch,
    /// Started by a user without privileges.
    unprivileged: bool,
}

impl Container {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rooms = Rooms {
            root: folder.path().join("root"),
            mounts: Vec::new(),
            user: 0,
            group: 0,
            host_name: "web-0".into(),
            own_proc: false,
            as_root: false,
        };
        let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        let launch = Launch {
            command: ["/bin/sh", "-c", script].map(str::to_owned).into(),
            environment: BTreeMap::from([path]),
            folder: None,
            parent: std::process::id(),
            rooms: Some(rooms),
            joins: None,
            terminal: false,
            reports: false,
        };
        Self {
            folder,
            launch,
            unprivileged: false,
        }
    }

    fn rooms(&mut self) -> &mut Rooms {
        self.launch.rooms.as_mut().unwrap()
    }

    /// A folder `volume` on the machine with a file in it.
    fn file(self, volume: &str, name: &str, content: &str) -> (Self, PathBuf) {
        let path = self.folder.path().join(volume);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(name), content).unwrap();
        (self, path)
    }

    fn mounted(mut self, from: &Path, to: &str, read_only: bool) -> Self {
        let (from, to) = (from.to_owned(), to.into());
        self.rooms().mounts.push(Mount {
            from,
            to,
            read_only,
        });
        self
    }

    fn command(&self) -> Command {
        let description = self.folder.path().join("launch.json");
        fs::write(&description, serde_json::to_string(&self.launch).unwrap()).unwrap();
        let neap = env!("CARGO_BIN_EXE_neap");
        let mut command = if self.unprivileged {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", neap]);
            command
        } else {
            Command::new(neap)
        };
        command.arg("launch").arg(description);
        command.env("SECRET_OF_THE_LAUNCHER", "1");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn start(&self) -> Child {
        self.command().spawn().unwrap()
    }

    /// A process that asks for it and does nothing else, to be killed.
    fn asker(&self) -> Child {
        let description = self.folder.path().join("launch.json");
        let neap = env!("CARGO_BIN_EXE_neap");
        // Who asks is known only when it runs. One that is killed may leave its sed behind.
        let script = r#"sed "s/\"parent\":[0-9]*/\"parent\":$$/" "$1" > "$1.$$"
            "$2" launch "$1.$$" & wait"#;
        fs::write(&description, serde_json::to_string(&self.launch).unwrap()).unwrap();
        Command::new("sh")
            .args(["-c", script, "asker"])
            .arg(description)
            .arg(neap)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn output(&self) -> Output {
        self.command().output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn printed(output: &Output) -> Vec<String> {
    let complaint = text(&output.stderr);
    assert!(output.status.success(), "{}: {complaint}", output.status);
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn no_signal_is_kept_from_the_command() {
    // Not by way of a shell, which sees to that itself.
    let grep = ["grep", "^SigBlk:", "/proc/self/status"].map(str::to_owned);
    let mut container = Container::new("");
    container.launch.command = grep.into();
    let none = "SigBlk:\t0000000000000000";
    assert_eq!(printed(&container.output()), [none]);
    container.launch.rooms = None;
    assert_eq!(printed(&container.output()), [none]);
}

#[test]
fn a_command_that_does_not_mind_signals_ends_by_them() {
    let mut container = Container::new("");
    container.launch.command = ["tail", "-f", "/proc/self/comm"].map(str::to_owned).into();
    let mut launcher = container.start();
    let mut words = BufReader::new(launcher.stdout.take().unwrap());
    let mut first = String::new();
    words.read_line(&mut first).unwrap();
    assert_eq!(first, "tail\n");
    let pid = Pid::from_child(&launcher);
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(launcher.wait().unwrap().code(), Some(143));
}

#[test]
fn volumes_are_at_their_places() {
    let script = "cat /config/a /etc/app/deep/b; test -f /etc/passwd && echo passwd; \
        echo no > /config/a 2>/dev/null || echo read-only; echo yes > /data/c; ls -A /tmp; hostname";
    let (container, config) = Container::new(script).file("config", "a", "of the config\n");
    let (container, deep) = container.file("deep", "b", "in a place of others\n");
    let (container, data) = container.file("data", "c", "");
    let container = container
        .mounted(&config, "/config", true)
        .mounted(&deep, "/etc/app/deep", true)
        .mounted(&data, "/data", false);
    let lines = printed(&container.output());
    let expected = [
        "of the config",
        "in a place of others",
        "passwd",
        "read-only",
        "web-0",
    ];
    assert_eq!(lines, expected);
    assert_eq!(fs::read_to_string(data.join("c")).unwrap(), "yes\n");
    assert!(!Path::new("/config").exists(), "seen by nobody else");
}

#[test]
fn a_command_sees_its_own_environment_and_its_own_processes() {
    let mut container = Container::new(
        "env | sort | grep -v -e ^_= -e ^PWD= -e ^SHLVL=; id -u; kill -0 $$ && echo $PPID",
    );
    container
        .launch
        .environment
        .insert("COLOUR".into(), "blue".into());
    container.rooms().user = 70;
    let lines = printed(&container.output());
    assert_eq!(lines, ["COLOUR=blue", "PATH=/usr/bin:/bin", "70", "1"]);
}

#[test]
fn a_container_ends_as_its_command_does() {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        let output = Container::new(script).output();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{script}: {}",
            text(&output.stderr)
        );
    }
    let mut absent = Container::new("");
    absent.launch.command = vec!["/no/such/program".into()];
    let output = absent.output();
    assert_eq!(output.status.code(), Some(127));
    let complaint = text(&output.stderr);
    assert!(
        complaint.contains("/no/such/program could not be started: No such file"),
        "{complaint}"
    );
}

#[test]
fn a_description_may_be_longer_than_a_variable() {
    // As in a namespace with many services.
    let mut container = Container::new(
        "env | grep -c _SERVICE_HOST=; ls -l /proc/self/fd | grep -c launch.json; true",
    );
    for service in 0..5000 {
        let (name, address) = (format!("SHOP_{service}_SERVICE_HOST"), "127.1.128.1");
        container.launch.environment.insert(name, address.into());
    }
    assert!(serde_json::to_string(&container.launch).unwrap().len() > 1 << 17);
    for rooms in [container.launch.rooms.clone(), None] {
        container.launch.rooms = rooms;
        let lines = printed(&container.output());
        // Nothing of ours is open.
        assert_eq!(lines, ["5000", "0"]);
    }
}

#[test]
fn why_a_command_could_not_be_started_is_told_to_whoever_asked() {
    let told = |container: &mut Container| {
        container.launch.reports = true;
        let (mut told, report) = std::io::pipe().unwrap();
        let mut command = container.command();
        let mut child = command.stdin(report).spawn().unwrap();
        drop(command);
        let mut why = String::new();
        told.read_to_string(&mut why).unwrap();
        let lasts = child.try_wait().unwrap().is_none();
        (why, lasts, child.wait_with_output().unwrap())
    };
    for rooms in [true, false] {
        let of = |command: &[&str]| {
            let mut container = Container::new("");
            container.launch.command = command.iter().map(|&word| word.to_owned()).collect();
            if !rooms {
                container.launch.rooms = None;
            }
            container
        };
        let (why, _, output) = told(&mut of(&["/no/such/program"]));
        assert_eq!(
            why,
            "/no/such/program could not be started: No such file or directory (os error 2)"
        );
        assert_eq!(output.status.code(), Some(127));
        // It is told by the end of the pipe, long before that of the command, which reads nothing.
        let script = "cat; echo done; sleep 0.5";
        let (why, lasts, output) = told(&mut of(&["sh", "-c", script]));
        assert_eq!((why.as_str(), lasts), ("", true));
        assert_eq!(printed(&output), ["done"]);
    }
    let mut nowhere = Container::new("true").mounted(Path::new("/no/such/folder"), "/a", false);
    let (why, _, _) = told(&mut nowhere);
    assert!(
        why.starts_with("/no/such/folder could not be put in its place"),
        "{why}"
    );
}

#[test]
fn a_signal_reaches_the_command() {
    let script = "trap 'echo asked to end; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let container = Container::new(script);
    let mut child = container.start();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    kill_process(pid(&child), Signal::TERM).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "asked to end");
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn nothing_is_left_of_a_container_whose_launcher_is_killed() {
    let marker = format!("86400.{}", std::process::id());
    let script = format!("sleep {marker} & (sleep {marker} &) ; echo ready; wait");
    let container = Container::new(&script);
    let mut child = container.start();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    until("both run", || running(&marker) >= 2);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    until("all are gone", || running(&marker) == 0);
}

#[test]
fn without_rooms_nothing_is_left_of_a_container_that_is_ended() {
    let marker = format!("86401.{}", std::process::id());
    let script = format!("(sleep {marker} &); setsid sleep {marker} & echo ready; wait");
    let mut container = Container::new(&script);
    container.launch.rooms = None;
    let mut child = container.start();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    until("both run", || running(&marker) == 2);
    kill_process(pid(&child), Signal::POWER).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(137));
    assert_eq!(running(&marker), 0, "all ended before the launcher");
    container.launch.command[2] = format!("(sleep {marker} &); exit 4");
    assert_eq!(container.output().status.code(), Some(4));
    assert_eq!(running(&marker), 0, "they go with the command");
}

/// Kills whoever asked for a process at several moments; everything must go with it.
fn nothing_is_left_of(container: &Container, marker: &str) {
    for moment in 0..12 {
        let mut asker = container.asker();
        if moment < 9 {
            std::thread::park_timeout(Duration::from_millis(4 * moment));
        } else {
            let mut lines = BufReader::new(asker.stdout.take().unwrap()).lines();
            assert_eq!(lines.next().unwrap().unwrap(), "ready");
            until("it runs", || running(marker) > 0);
        }
        asker.kill().unwrap();
        asker.wait().unwrap();
        until("all are gone", || running(marker) == 0);
    }
}

#[test]
fn nothing_outlives_whoever_asked_for_it_at_any_moment() {
    let marker = format!("86402.{}", std::process::id());
    let script = format!("(sleep {marker} &); echo ready; sleep {marker}; true");
    let mut container = Container::new(&script);
    nothing_is_left_of(&container, &marker);
    container.launch.rooms = None;
    nothing_is_left_of(&container, &marker);

    let mut host = Container::new("echo ready; sleep 60");
    // Whoever joins it has to find the machine's processes all the same.
    let neap = Path::new(env!("CARGO_BIN_EXE_neap"));
    host.rooms().own_proc = trial::own_proc(neap, host.folder.path()).is_ok();
    let mut child = host.start();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let script = format!("echo ready; sleep {marker}; true");
    let mut guest = Container::new(&script);
    guest.launch.rooms = None;
    guest.launch.joins = Some(joined(&child));
    nothing_is_left_of(&guest, &marker);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Looks again and again until it is so.
#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("still not so: {what}");
}

/// The container of a launcher that is there.
fn joined(launcher: &Child) -> Joined {
    let line = fs::read_to_string(format!("/proc/{}/stat", launcher.id())).unwrap();
    let (_, fields) = line.rsplit_once(')').unwrap();
    Joined {
        launcher: launcher.id(),
        began: fields.split_whitespace().nth(19).unwrap().parse().unwrap(),
        as_root: false,
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).unwrap()
}

/// How many processes of the machine have `marker` as an argument.
fn running(marker: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let commands = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    commands
        .filter(|command| {
            command
                .split(|&byte| byte == 0)
                .any(|argument| argument == marker.as_bytes())
        })
        .count()
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
}
