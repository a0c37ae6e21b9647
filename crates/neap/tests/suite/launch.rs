//! `neap launch`: the environment of a container's process, and the end of all its processes.

mod namespaces;

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
    launch::{ContainerNamespaces, JoinedContainer, Launch, Mount},
    namespace_support,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A container and its folder.
struct Container {
    folder: TempDir,
    launch: Launch,
    /// Whether an unprivileged user starts it.
    unprivileged: bool,
}

impl Container {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let namespaces = ContainerNamespaces {
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
            namespaces: Some(namespaces),
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

    fn namespaces(&mut self) -> &mut ContainerNamespaces {
        self.launch.namespaces.as_mut().unwrap()
    }

    /// Creates the folder `volume` on the machine, with a file in it.
    fn file(self, volume: &str, name: &str, content: &str) -> (Self, PathBuf) {
        let path = self.folder.path().join(volume);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(name), content).unwrap();
        (self, path)
    }

    fn mounted(mut self, from: &Path, to: &str, read_only: bool) -> Self {
        let (from, to) = (from.to_owned(), to.into());
        self.namespaces().mounts.push(Mount {
            read_only,
            ..Mount::new(from, to)
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

    /// Starts a parent process that only starts the launcher, so that the test can kill the parent.
    fn start_with_parent(&self) -> Child {
        let description = self.folder.path().join("launch.json");
        let neap = env!("CARGO_BIN_EXE_neap");
        // The id of the parent is known only when it runs. A killed parent may leave its sed behind.
        let script = r#"sed "s/\"parent\":[0-9]*/\"parent\":$$/" "$1" > "$1.$$"
            "$2" launch "$1.$$" & wait"#;
        fs::write(&description, serde_json::to_string(&self.launch).unwrap()).unwrap();
        Command::new("sh")
            .args(["-c", script, "parent"])
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
fn the_command_starts_with_no_blocked_signals() {
    // Without a shell, which would unblock signals itself.
    let grep = ["grep", "^SigBlk:", "/proc/self/status"].map(str::to_owned);
    let mut container = Container::new("");
    container.launch.command = grep.into();
    let none = "SigBlk:\t0000000000000000";
    assert_eq!(printed(&container.output()), [none]);
    container.launch.namespaces = None;
    assert_eq!(printed(&container.output()), [none]);
}

#[test]
fn a_command_without_signal_handlers_ends_by_a_signal() {
    let mut container = Container::new("");
    container.launch.command = ["tail", "-f", "/proc/self/comm"].map(str::to_owned).into();
    let mut launcher = container.start();
    let mut output = BufReader::new(launcher.stdout.take().unwrap());
    let mut first = String::new();
    output.read_line(&mut first).unwrap();
    assert_eq!(first, "tail\n");
    let pid = Pid::from_child(&launcher);
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(launcher.wait().unwrap().code(), Some(143));
}

#[test]
fn volumes_are_mounted_at_their_paths() {
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
    assert!(
        !Path::new("/config").exists(),
        "not visible outside of the container"
    );
}

#[test]
fn a_command_sees_only_its_own_environment_and_processes() {
    let mut container = Container::new(
        "env | sort | grep -v -e ^_= -e ^PWD= -e ^SHLVL=; id -u; kill -0 $$ && echo $PPID",
    );
    container
        .launch
        .environment
        .insert("COLOUR".into(), "blue".into());
    container.namespaces().user = 70;
    let lines = printed(&container.output());
    assert_eq!(lines, ["COLOUR=blue", "PATH=/usr/bin:/bin", "70", "1"]);
}

#[test]
fn the_exit_code_is_that_of_the_command() {
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
fn a_description_can_exceed_the_size_of_a_variable() {
    // As in a namespace with many services.
    let mut container = Container::new(
        "env | grep -c _SERVICE_HOST=; ls -l /proc/self/fd | grep -c launch.json; true",
    );
    for service in 0..5000 {
        let (name, address) = (format!("SHOP_{service}_SERVICE_HOST"), "127.1.128.1");
        container.launch.environment.insert(name, address.into());
    }
    assert!(serde_json::to_string(&container.launch).unwrap().len() > 1 << 17);
    for namespaces in [container.launch.namespaces.clone(), None] {
        container.launch.namespaces = namespaces;
        let lines = printed(&container.output());
        // The launcher leaves no file descriptor open.
        assert_eq!(lines, ["5000", "0"]);
    }
}

#[test]
fn start_errors_are_reported_through_the_pipe() {
    let start = |container: &mut Container| {
        container.launch.reports = true;
        let (mut errors, report) = std::io::pipe().unwrap();
        let mut command = container.command();
        let mut child = command.stdin(report).spawn().unwrap();
        drop(command);
        let mut why = String::new();
        errors.read_to_string(&mut why).unwrap();
        let lasts = child.try_wait().unwrap().is_none();
        (why, lasts, child.wait_with_output().unwrap())
    };
    for namespaces in [true, false] {
        let of = |command: &[&str]| {
            let mut container = Container::new("");
            container.launch.command = command.iter().map(|&word| word.to_owned()).collect();
            if !namespaces {
                container.launch.namespaces = None;
            }
            container
        };
        let (why, _, output) = start(&mut of(&["/no/such/program"]));
        assert_eq!(
            why,
            "/no/such/program could not be started: No such file or directory (os error 2)"
        );
        assert_eq!(output.status.code(), Some(127));
        // The pipe closes at the start of the command, long before its end.
        let script = "cat; echo done; sleep 0.5";
        let (why, lasts, output) = start(&mut of(&["sh", "-c", script]));
        assert_eq!((why.as_str(), lasts), ("", true));
        assert_eq!(printed(&output), ["done"]);
    }
    let mut nowhere = Container::new("true").mounted(Path::new("/no/such/folder"), "/a", false);
    let (why, _, _) = start(&mut nowhere);
    assert!(
        why.starts_with("/no/such/folder could not be mounted"),
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
fn no_process_survives_a_killed_launcher() {
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
fn without_namespaces_no_process_survives_the_container() {
    let marker = format!("86401.{}", std::process::id());
    let script = format!("(sleep {marker} &); setsid sleep {marker} & echo ready; wait");
    let mut container = Container::new(&script);
    container.launch.namespaces = None;
    let mut child = container.start();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    until("both run", || running(&marker) == 2);
    kill_process(pid(&child), Signal::POWER).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(137));
    assert_eq!(running(&marker), 0, "all ended before the launcher");
    container.launch.command[2] = format!("(sleep {marker} &); exit 4");
    assert_eq!(container.output().status.code(), Some(4));
    assert_eq!(running(&marker), 0, "they end with the command");
}

/// Kills the parent of a launcher at several points in time; all processes must end.
fn assert_nothing_survives_the_parent(container: &Container, marker: &str) {
    for moment in 0..12 {
        let mut parent = container.start_with_parent();
        if moment < 9 {
            std::thread::park_timeout(Duration::from_millis(4 * moment));
        } else {
            let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
            assert_eq!(lines.next().unwrap().unwrap(), "ready");
            until("it runs", || running(marker) > 0);
        }
        parent.kill().unwrap();
        parent.wait().unwrap();
        until("all are gone", || running(marker) == 0);
    }
}

#[test]
fn no_process_survives_a_killed_parent() {
    let marker = format!("86402.{}", std::process::id());
    let script = format!("(sleep {marker} &); echo ready; sleep {marker}; true");
    let mut container = Container::new(&script);
    assert_nothing_survives_the_parent(&container, &marker);
    container.launch.namespaces = None;
    assert_nothing_survives_the_parent(&container, &marker);

    let mut host = Container::new("echo ready; sleep 60");
    // A process that joins must still find the processes of the machine.
    let neap = Path::new(env!("CARGO_BIN_EXE_neap"));
    host.namespaces().own_proc = namespace_support::own_proc(neap, host.folder.path()).is_ok();
    let mut child = host.start();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let script = format!("echo ready; sleep {marker}; true");
    let mut guest = Container::new(&script);
    guest.launch.namespaces = None;
    guest.launch.joins = Some(joined(&child));
    assert_nothing_survives_the_parent(&guest, &marker);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Polls until the condition holds.
#[track_caller]
fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..1000 {
        if condition() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("never reached: {what}");
}

/// The container of a running launcher.
fn joined(launcher: &Child) -> JoinedContainer {
    let line = fs::read_to_string(format!("/proc/{}/stat", launcher.id())).unwrap();
    let (_, fields) = line.rsplit_once(')').unwrap();
    JoinedContainer {
        launcher: launcher.id(),
        began: fields.split_whitespace().nth(19).unwrap().parse().unwrap(),
        as_root: false,
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).unwrap()
}

/// The number of processes of the machine with `marker` as an argument.
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

fn make_world_writable(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
}
