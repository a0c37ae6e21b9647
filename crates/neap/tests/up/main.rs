//! `neap up` as its users run it: the binary, its files, its socket and its end.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod client;
mod identity;
mod kubectl;
mod running;
mod stop;

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use client::{Client, Credentials};
use kubectl::kubectl;
use running::Place;

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .flat_map(|entry| {
            if entry.file_type().unwrap().is_dir() {
                files(&entry.path())
            } else {
                vec![entry.path()]
            }
        })
        .collect()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn transcript_names_stages_kubeconfig_and_next_steps() {
    let place = Place::new();
    let neap = place.up(&[]);
    for text in [
        "store",
        "identity",
        "api",
        "https://127.0.0.1:",
        "Ready in ",
        "export KUBECONFIG=",
        "kubectl get namespaces",
        "Ctrl-C; nothing is left behind",
    ] {
        assert!(neap.transcript().contains(text), "{text}");
    }
}

#[test]
fn kubectl_gets_in_with_the_kubeconfig() {
    let place = Place::new();
    let neap = place.up(&[]);
    let arguments = ["get", "--raw", "/healthz"];
    let test = "kubectl_gets_in_with_the_kubeconfig";
    let Some(output) = kubectl(test, &neap.kubeconfig_path(), &arguments) else {
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.stdout, b"ok");
}

#[test]
fn http2_is_offered() {
    let place = Place::new();
    let neap = place.up(&[]);
    let client = Client::new(&neap.kubeconfig(), Credentials::None);
    assert_eq!(
        client.negotiate(&[b"h2", b"http/1.1"]),
        Some(b"h2".to_vec())
    );
}

#[test]
fn services_of_a_bare_one_get_addresses_of_the_network_that_was_named() {
    let place = Place::new();
    let neap = place.up(&["--bare", "--service-range", "10.77.4.0/28"]);
    let config = neap.kubeconfig();
    let client = Client::new(&config, Credentials::Token(config.token.clone()));
    let services = "/api/v1/namespaces/default/services";
    let (_, own) = client.ask(&format!("{services}/kubernetes"), "");
    assert!(own.contains(r#""clusterIP":"10.77.4.1""#), "{own}");
    let named = |name: usize| {
        let spec = r#"{"ports":[{"port":80}]}"#;
        format!(r#"{{"metadata":{{"name":"s{name}"}},"spec":{spec}}}"#)
    };
    // Neither the first nor the last of a network, nor its own.
    for name in 0..13 {
        let (status, made) = client.ask(services, &named(name));
        assert_eq!(status, 201, "{made}");
        assert!(made.contains(r#""clusterIP":"10.77.4."#), "{made}");
    }
    let (status, said) = client.ask(services, &named(13));
    assert_eq!(status, 422, "{said}");
    assert!(said.contains("range is full"), "{said}");
}

#[test]
fn a_network_that_cannot_be_meant_is_refused() {
    let place = Place::new();
    for (arguments, text) in [
        (
            &["--bare", "--service-range", "10.0.0.0"][..],
            "10.0.0.0/16",
        ),
        (
            &["--bare", "--service-range", "10.0.0.0/30"],
            "from 8 to 28",
        ),
        (&["--bare", "--service-range", "10.0.0.7/24"], "10.0.0.0/24"),
        (&["--bare", "--service-range", "fd00::/112"], "10.0.0.0/16"),
        (&["--service-range", "10.0.0.0/24"], "--bare"),
    ] {
        let end = place.refused(arguments);
        assert_eq!(end.code, Some(2), "{arguments:?}: {}", end.stderr);
        assert!(end.stderr.contains(text), "{arguments:?}: {}", end.stderr);
    }
}

#[test]
fn signal_stops_it_cleanly_and_nothing_is_left() {
    for signal in ["TERM", "INT", "HUP"] {
        let place = Place::new();
        let neap = place.up(&[]);
        let kubeconfig = neap.kubeconfig_path();
        let mut here = files(&place.temporary());
        here.sort();
        let lock = kubeconfig.with_file_name("private.lock");
        assert_eq!(here, [kubeconfig.clone(), lock]);
        assert!(kubeconfig.starts_with(place.temporary()));
        let end = neap.stop(signal);
        assert_eq!(end.code, Some(0), "{signal}: {}", end.stderr);
        assert!(end.stdout.contains("Stopped."));
        assert!(files(&place.temporary()).is_empty(), "{signal}");
        assert!(!kubeconfig.parent().unwrap().exists(), "{signal}");
    }
}

#[test]
fn what_a_killed_one_left_is_removed_by_the_next() {
    let place = Place::new();
    let (living, killed) = (place.up(&[]), place.up(&[]));
    let left = killed.kubeconfig_path();
    assert_eq!(killed.stop("KILL").code, None);
    assert!(left.exists());
    let data = place.path("data");
    let _next = place.up(&["--data", data.to_str().unwrap()]);
    // Ten seconds, in looks.
    let mut looks = 0..1000;
    while left.parent().unwrap().exists() && looks.next().is_some() {
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    assert!(!left.parent().unwrap().exists());
    assert!(living.kubeconfig_path().exists());
}

#[test]
fn open_connection_does_not_keep_it_from_stopping() {
    let place = Place::new();
    let neap = place.up(&[]);
    let config = neap.kubeconfig();
    let client = Client::new(&config, Credentials::Token(config.token.clone()));
    let _idle = client.open("/healthz");
    let end = neap.stop("TERM");
    assert_eq!(end.code, Some(0));
    assert!(
        !end.stderr.contains("did not end in time"),
        "{}",
        end.stderr
    );
}

#[test]
fn private_files_are_private() {
    let place = Place::new();
    let data = place.path("data");
    let file = place.path("named.kubeconfig");
    let _kept = place.up(&[
        "--data",
        data.to_str().unwrap(),
        "--kubeconfig",
        file.to_str().unwrap(),
    ]);
    let _temporary = place.up(&[]);
    let mut all = files(&data);
    all.extend(files(&place.temporary()));
    all.push(file);
    // Tokens for services that sleep come a moment later, if they are not there already.
    all.retain(|path| {
        !path
            .parent()
            .is_some_and(|folder| folder.ends_with("node/idle"))
    });
    assert_eq!(all.len(), 15, "{all:?}");
    for path in &all {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("identity")), 0o700);
}

#[test]
fn yesterdays_kubeconfig_works_today() {
    let place = Place::new();
    let data = place.path("data");
    let arguments = ["--data", data.to_str().unwrap()];
    let first = place.up(&arguments);
    assert_eq!(
        first.kubeconfig_path(),
        data.canonicalize().unwrap().join("kubeconfig")
    );
    let yesterday = first.kubeconfig();
    assert_eq!(first.stop("TERM").code, Some(0));
    assert!(data.join("kubeconfig").exists());

    let second = place.up_on(&yesterday.address(), &arguments);
    assert_eq!(second.kubeconfig(), yesterday);
    let client = Client::new(&yesterday, Credentials::certificate(&yesterday));
    assert_eq!(client.get("/healthz"), 200);
}

#[test]
fn named_kubeconfig_stays_and_is_replaced_by_the_next_start() {
    let place = Place::new();
    let file = place.path("named.kubeconfig");
    let arguments = ["--kubeconfig", file.to_str().unwrap()];
    let first = place.up(&arguments);
    assert_eq!(first.kubeconfig_path(), file);
    let before = first.kubeconfig();
    assert_eq!(first.stop("TERM").code, Some(0));
    assert!(file.exists());
    assert!(files(&place.temporary()).is_empty());
    assert_ne!(place.up(&arguments).kubeconfig(), before);
}

#[test]
fn users_own_kubeconfig_is_never_touched() {
    let place = Place::new();
    let users = place.home().join(".kube/config");
    place.up(&[]).stop("TERM");
    assert!(!users.exists());
    for existing in [None, Some("apiVersion: v1\n")] {
        if let Some(text) = existing {
            fs::write(&users, text).unwrap();
        } else {
            fs::create_dir(users.parent().unwrap()).unwrap();
        }
        let refused = place.refused(&["--kubeconfig", users.to_str().unwrap()]);
        assert_eq!(refused.code, Some(6));
        assert!(refused.stderr.contains("NT-UP-0008"), "{}", refused.stderr);
        assert_eq!(fs::read_to_string(&users).ok().as_deref(), existing);
    }
}

#[test]
fn foreign_file_is_not_overwritten() {
    let place = Place::new();
    let file = place.path("precious");
    fs::write(&file, "precious").unwrap();
    let refused = place.refused(&["--kubeconfig", file.to_str().unwrap()]);
    assert_eq!(refused.code, Some(6));
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn busy_port_is_a_clear_error() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = place.refused(&["--listen", &address]);
    assert_eq!(refused.code, Some(6));
    for text in [
        address.as_str(),
        "another process has the port",
        "--listen 127.0.0.1:0",
        "NT-UP-0001",
    ] {
        assert!(refused.stderr.contains(text), "{text}: {}", refused.stderr);
    }
    assert!(files(&place.temporary()).is_empty());
}

#[test]
fn data_folder_in_use_is_a_clear_error() {
    let place = Place::new();
    let data = place.path("data");
    let arguments = ["--data", data.to_str().unwrap()];
    let first = place.up(&arguments);
    let refused = place.refused(&["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    assert_eq!(refused.code, Some(6));
    let process = format!("process {}", first.id());
    for text in ["data", "in use", process.as_str(), "NT-UP-0003"] {
        assert!(refused.stderr.contains(text), "{text}: {}", refused.stderr);
    }
    let client = Client::new(
        &first.kubeconfig(),
        Credentials::certificate(&first.kubeconfig()),
    );
    assert_eq!(client.get("/healthz"), 200);
}

#[test]
fn logs_are_json_when_nobody_watches() {
    let end = Place::new().up(&[]).stop("TERM");
    let lines: Vec<serde_json::Value> = end
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    assert!(lines.iter().any(|line| line["message"] == "ready"));
}

#[test]
fn ascii_output_has_no_symbols() {
    let end = Place::new().up(&["--ascii"]).stop("TERM");
    assert!(end.stdout.is_ascii(), "{}", end.stdout);
}
