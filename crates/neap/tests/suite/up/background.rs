//! `neap up --detach`, `neap logs` and `neap down`, as a user runs them.

use std::{fs, path::Path, process::Command};

use super::sandbox::Sandbox;
use crate::command_output::CommandOutput;

/// A data folder; its server is stopped on drop.
struct Background<'a> {
    sandbox: &'a Sandbox,
    data: String,
}

impl Background<'_> {
    fn neap(&self, arguments: &[&str]) -> CommandOutput {
        Command::new(env!("CARGO_BIN_EXE_neap"))
            .args(arguments)
            .env_clear()
            .env("HOME", self.sandbox.home())
            .env("TMPDIR", self.sandbox.temporary())
            .env("PATH", "/usr/bin:/bin")
            .env("KUBECONFIG", Path::new(&self.data).join("kubeconfig"))
            .output()
            .unwrap()
            .into()
    }

    fn on_folder(&self, arguments: &[&str]) -> CommandOutput {
        self.neap(&[arguments, &["--data", &self.data]].concat())
    }

    fn up(&self) -> CommandOutput {
        self.on_folder(&["up", "--detach", "--listen", "127.0.0.1:0"])
    }
}

impl Drop for Background<'_> {
    fn drop(&mut self) {
        self.on_folder(&["down"]);
    }
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?}: {text}");
    }
}

#[test]
fn a_server_starts_in_the_background_and_is_found_by_its_folder() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("my data").to_str().unwrap().to_owned();
    let server = Background {
        sandbox: &sandbox,
        data,
    };
    for arguments in [["down"], ["logs"]] {
        let nothing = server.on_folder(&arguments);
        assert_eq!(nothing.code, Some(3), "{arguments:?}: {nothing:?}");
        contains(&nothing.stderr, &["NT-UP-0031", &server.data]);
    }

    let started = server.up();
    assert_eq!(started.code, Some(0), "{started:?}");
    contains(
        &started.stdout,
        &[
            "Ready in ",
            "neap logs --data ",
            "neap down --data ",
            "my data",
        ],
    );
    // Ctrl-C does not reach it.
    assert!(!started.stdout.contains("Ctrl-C"), "{started:?}");
    let status = server.neap(&["status"]);
    assert_eq!(status.code, Some(0), "{status:?}");
    contains(&status.stdout, &["Kubernetes v1."]);
    let logs = server.on_folder(&["logs"]);
    assert_eq!(logs.code, Some(0), "{logs:?}");
    contains(&logs.stdout, &["Ready in ", "export KUBECONFIG="]);
    let again = server.up();
    assert_eq!(again.code, Some(6), "{again:?}");
    contains(&again.stderr, &["NT-UP-0003", "is in use", "neap down"]);
    assert_eq!(server.neap(&["status"]).code, Some(0), "it still runs");

    let stopped = server.on_folder(&["down"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    contains(&stopped.stdout, &["stopped; everything stays in "]);
    assert_eq!(server.neap(&["status"]).code, Some(7), "it does not answer");
    let logs = server.on_folder(&["logs"]);
    contains(&logs.stdout, &["Ready in ", "Stopped."]);
    let down = server.on_folder(&["down"]);
    assert_eq!(down.code, Some(3), "{down:?}");
    contains(&down.stderr, &["NT-UP-0031", "no server runs on", "--data"]);
    assert!(fs::exists(Path::new(&server.data).join("store")).unwrap());
}
