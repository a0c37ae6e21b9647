//! A real PostgreSQL, started by the test from programs that the environment names.

use std::{
    fs::File,
    io::Write,
    net::{SocketAddr, TcpListener},
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use neap_store::Store;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::options;

/// PostgreSQL refuses to run as root, so tests that run as root use this user.
const UNPRIVILEGED_UID: u32 = 65534;

pub(crate) struct Postgres {
    program: PathBuf,
    folder: TempDir,
    address: SocketAddr,
    process: Option<Child>,
}

impl Postgres {
    /// Nothing, with a note, if the programs are not on this machine.
    pub(crate) fn start(test: &str) -> Option<Self> {
        Self::start_with(test, &[])
    }

    /// The same with a cluster of databases that was made with these flags.
    pub(crate) fn start_with(test: &str, flags: &[&str]) -> Option<Self> {
        let programs = ["NEAP_INITDB", "NEAP_POSTGRES"].map(std::env::var_os);
        let [Some(initdb), Some(postgres)] = programs else {
            assert!(
                std::env::var_os("CI").is_none(),
                "{test} needs PostgreSQL, and NEAP_INITDB and NEAP_POSTGRES do not name it"
            );
            skipped(test);
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let user = Some(UNPRIVILEGED_UID);
        if geteuid().is_root() {
            chown(folder.path(), user, user).unwrap();
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut database = Self {
            program: postgres.into(),
            address: free.local_addr().unwrap(),
            folder,
            process: None,
        };
        drop(free);
        let made = database
            .command(Path::new(&initdb))
            .args(flags)
            .args(["--username=postgres", "--auth=trust", "--no-sync", "-D"])
            .arg(database.folder.path().join("data"))
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{error}");
        database.run();
        Some(database)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env("LC_ALL", "C");
        if geteuid().is_root() {
            command.uid(UNPRIVILEGED_UID).gid(UNPRIVILEGED_UID);
        }
        command
    }

    /// Starts the server, which answers after a while.
    pub(crate) fn run(&mut self) {
        let port = self.address.port().to_string();
        let child = self
            .command(&self.program)
            .args(["-p", &port, "-h", "127.0.0.1"])
            .args(["-c", "unix_socket_directories=", "-D"])
            .arg(self.folder.path().join("data"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.process = Some(child);
    }

    /// Ends the server at once, as a loss of power does: what it acknowledged must be on disk.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            signal(&process, Signal::QUIT);
            let _ = process.wait();
        }
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> SocketAddr {
        self.address
    }

    /// The address of the database of a store.
    pub(crate) fn address_of(&self, name: &str) -> String {
        format!("postgres://postgres@{}/{name}", self.address)
    }

    /// The address of the database that every server has.
    pub(crate) fn address(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.address)
    }

    /// A store on a new database.
    pub(crate) async fn store(&self, name: &str) -> Store {
        // Names of databases have at most 63 characters.
        let name: String = name.chars().take(40).collect();
        self.create(&name).await;
        Store::open(&self.address_of(&name), options())
            .await
            .unwrap()
    }

    /// A new database.
    pub(crate) async fn create(&self, name: &str) {
        sqlx::any::install_default_drivers();
        let pool = self.connect().await;
        sqlx::query(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&pool)
            .await
            .unwrap();
        pool.close().await;
    }

    async fn connect(&self) -> sqlx::AnyPool {
        loop {
            match sqlx::AnyPool::connect(&self.address()).await {
                Ok(pool) => return pool,
                // It has not started yet.
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

fn signal(process: &Child, signal: Signal) {
    let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process(pid, signal);
    }
}

/// Records in the file that `NEAP_SKIPS` names that a test did not run, so that it is not counted
/// as passed.
fn skipped(test: &str) {
    if let Some(path) = std::env::var_os("NEAP_SKIPS") {
        let mut file = File::options()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        writeln!(file, "SKIPPED {test}: PostgreSQL is not here").unwrap();
    }
}
