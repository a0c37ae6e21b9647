//! `neap` commands that need no server: help, version, completion and usage errors.

use std::process::{Command, Output};

fn neap(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_neap"))
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = neap(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    for text in [
        "neap up",
        "--data ./neap-data",
        "completion",
        "version",
        "Exit codes",
    ] {
        assert!(stdout(&help).contains(text), "{text}");
    }
}

#[test]
fn help_of_up_explains_kubeconfig_and_shutdown() {
    let help = neap(&["up", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    for text in [
        "--data <DIR>",
        "--listen <ADDR>",
        "--kubeconfig <FILE>",
        "127.0.0.1:6443",
        "NEAP_DATA",
        "~/.kube/config is never read or written",
        "kubectl get namespaces",
        "Ctrl-C",
    ] {
        assert!(stdout(&help).contains(text), "{text}");
    }
}

#[test]
fn help_of_read_only_commands_has_examples() {
    for (command, texts) in [
        (
            &["explain"] as &[&str],
            &[
                "neap explain NT-UP-0001",
                "deployment/web -n shop",
                "--kubeconfig",
                "--context",
            ] as &[&str],
        ),
        (&["status"], &["neap status -A", "-o json", "--namespace"]),
        (
            &["check"],
            &[
                "neap check --data ./neap-data",
                "-o short",
                "exit code is 0",
            ],
        ),
        (&["audit", "verify"], &["--file", "anchor", "Examples:"]),
    ] {
        let help = neap(&[command, &["--help"]].concat());
        assert_eq!(help.status.code(), Some(0), "{command:?}");
        for text in texts {
            assert!(stdout(&help).contains(text), "{command:?}: {text}");
        }
    }
}

#[test]
fn version_names_neap_and_the_api_level() {
    let version = neap(&["version"]);
    assert_eq!(version.status.code(), Some(0));
    let text = stdout(&version);
    assert!(text.starts_with(concat!("neap ", env!("CARGO_PKG_VERSION"))));
    assert!(text.contains("Kubernetes v1.36."));
}

#[test]
fn version_as_json_is_a_versioned_envelope() {
    let version = neap(&["version", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(stdout(&version)).unwrap();
    assert_eq!(json["kind"], "Version");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert!(json["apiVersion"].is_string());
    assert!(json["kubernetes"].as_str().unwrap().starts_with("v1.36."));
}

#[test]
fn every_shell_gets_a_completion_script() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = neap(&["completion", shell]);
        assert_eq!(script.status.code(), Some(0), "{shell}");
        for word in ["kubeconfig", "explain", "all-namespaces", "verify"] {
            assert!(stdout(&script).contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn wrong_usage_exits_with_2_and_a_hint() {
    for (arguments, hint) in [
        (&["up", "--lisen", "x"] as &[_], "--listen"),
        (&["upp"], "up"),
        (&["completion", "basch"], "bash"),
        (&["up", "--listen", "localhost:no"], "65535"),
        (&["up", "--listen", ":6443"], "0.0.0.0:6443"),
        (&["version", "-o", "xml"], "json"),
        (&["audit", "verify"], "--file"),
        (&["status", "-A", "-n", "shop"], "cannot be used with"),
        (&["check", "-o", "long"], "short"),
        (&["explain", "pod", "web", "0"], "WHAT"),
        (&[], "neap up"),
    ] {
        let output = neap(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr(&output).contains(hint),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
