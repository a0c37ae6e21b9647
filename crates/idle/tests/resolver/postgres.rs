//! psql, which wakes a real PostgreSQL over raw TCP.

use std::{
    net::{SocketAddr, TcpListener},
    os::unix::{fs::chown, process::CommandExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    fixture::{ResolverFixture, TEST_TIMEOUT},
    programs::{output, programs, stdout_of},
};

/// PostgreSQL refuses to run as root, so tests that run as root use this user.
const UNPRIVILEGED_UID: u32 = 65534;

/// A database that is initialised and not started.
struct Database {
    postgres: PathBuf,
    folder: TempDir,
    address: SocketAddr,
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::QUIT);
        }
        let _ = self.0.wait();
    }
}

impl Database {
    fn made_by(initdb: &PathBuf, postgres: PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if geteuid().is_root() {
            chown(
                folder.path(),
                Some(UNPRIVILEGED_UID),
                Some(UNPRIVILEGED_UID),
            )
            .unwrap();
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let database = Self {
            postgres,
            address: free.local_addr().unwrap(),
            folder,
        };
        let made = database
            .command(initdb)
            .args(["--username=postgres", "--auth=trust", "--no-sync", "-D"])
            .arg(database.folder.path().join("data"))
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{error}");
        database
    }

    fn command(&self, program: &PathBuf) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env("LC_ALL", "C");
        if geteuid().is_root() {
            command.uid(UNPRIVILEGED_UID).gid(UNPRIVILEGED_UID);
        }
        command
    }

    /// Starts the database, and waits until it answers.
    async fn start(&self, psql: &PathBuf) -> Running {
        let port = self.address.port().to_string();
        let child = self
            .command(&self.postgres)
            .args(["-p", &port, "-h", "127.0.0.1"])
            .args(["-c", "unix_socket_directories=", "-c", "fsync=off", "-D"])
            .arg(self.folder.path().join("data"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let running = Running(child);
        let place = format!("host=127.0.0.1 port={port} user=postgres");
        let answers = async {
            while !output(psql, ["-X", "-c", "select 1", &place])
                .await
                .status
                .success()
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, answers)
            .await
            .expect("no start");
        running
    }
}

#[tokio::test]
async fn psql_wakes_a_database_and_gets_its_answer() {
    let test = "postgres::psql_wakes_a_database_and_gets_its_answer";
    let names = ["NEAP_INITDB", "NEAP_POSTGRES", "NEAP_PSQL"];
    let Some([initdb, postgres, psql]) = programs(test, names) else {
        return;
    };
    let database = Database::made_by(&initdb, postgres);
    let fixture = ResolverFixture::new("TCP", &json!({}));
    let port = fixture.address.port();
    let place = format!("host=127.0.0.1 port={port} user=postgres connect_timeout=120");
    // It requests TLS first, and continues without it if the server has none.
    let query = |query: &str| {
        let arguments = [
            "-X",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            &place,
            "-c",
            query,
        ];
        let arguments = arguments.map(str::to_owned);
        let psql = psql.clone();
        async move { stdout_of(&psql, arguments).await }
    };
    let wake = async {
        fixture.wait_until_waking(1).await;
        let running = database.start(&psql).await;
        fixture.pods(&[database.address]);
        running
    };
    let (answer, _running) = tokio::join!(query("select 40 + 2"), wake);
    assert_eq!(answer.trim(), "42");
    let sum =
        query("select sum(n), md5(string_agg(n::text, ',')) from generate_series(1, 100000) n");
    assert!(sum.await.starts_with("5000050000|"));
    // A large result is complete.
    let rows = query("select n, repeat('x', 100) from generate_series(1, 50000) n").await;
    assert_eq!(rows.lines().count(), 50000);
    assert_eq!(fixture.wake_requests(), 1);
}
