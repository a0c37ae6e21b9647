//! `neap up`: its transcript, files, socket, errors and shutdown.

mod background;
mod https_client;
mod identity;
mod restricted;
pub(crate) mod sandbox;
mod stop;

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use https_client::{Credentials, HttpsClient};
use sandbox::Sandbox;

use crate::skip::skip;

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
fn transcript_has_steps_kubeconfig_and_next_steps() {
    let sandbox = Sandbox::new();
    let neap = sandbox.up(&[]);
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
fn kinds_of_all_areas_are_served_once_the_transcript_says_ready() {
    let sandbox = Sandbox::new();
    let neap = sandbox.up(&[]);
    let config = neap.kubeconfig();
    let client = HttpsClient::new(&config, Credentials::Token(config.token.clone()));
    for resource in [
        "buildbarn.io/v1alpha1/buildbarnworkers",
        "elasti.truefoundry.com/v1alpha1/elastiservices",
        "image.openshift.io/v1/imagestreams",
        "neaptide.dev/v1alpha1/operations",
        "release.openshift.io/v1alpha1/releasepayloads",
    ] {
        assert_eq!(client.get(&format!("/apis/{resource}")), 200, "{resource}");
    }
}

#[test]
fn kubectl_connects_with_the_kubeconfig() {
    let sandbox = Sandbox::new();
    let neap = sandbox.up(&[]);
    let arguments = ["get", "--raw", "/healthz"];
    let test = "kubectl_connects_with_the_kubeconfig";
    let Some(program) = std::env::var_os("NEAP_KUBECTL") else {
        skip(test, "NEAP_KUBECTL is not set; run cargo xtask test");
        return;
    };
    let output = Command::new(program)
        .arg("--kubeconfig")
        .arg(neap.kubeconfig_path())
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.stdout, b"ok");
}

#[test]
fn http2_is_offered() {
    let sandbox = Sandbox::new();
    let neap = sandbox.up(&[]);
    let client = HttpsClient::new(&neap.kubeconfig(), Credentials::None);
    assert_eq!(
        client.negotiate(&[b"h2", b"http/1.1"]),
        Some(b"h2".to_vec())
    );
}

#[test]
fn bare_services_get_addresses_of_the_service_range() {
    let sandbox = Sandbox::new();
    let neap = sandbox.up(&["--bare", "--service-range", "10.77.4.0/28"]);
    let config = neap.kubeconfig();
    let client = HttpsClient::new(&config, Credentials::Token(config.token.clone()));
    let services = "/api/v1/namespaces/default/services";
    let (_, own) = client.request_text(&format!("{services}/kubernetes"), "");
    assert!(own.contains(r#""clusterIP":"10.77.4.1""#), "{own}");
    let named = |name: usize| {
        let spec = r#"{"ports":[{"port":80}]}"#;
        format!(r#"{{"metadata":{{"name":"s{name}"}},"spec":{spec}}}"#)
    };
    // All but the first and last address of the network and that of the Service kubernetes.
    for name in 0..13 {
        let (status, made) = client.request_text(services, &named(name));
        assert_eq!(status, 201, "{made}");
        assert!(made.contains(r#""clusterIP":"10.77.4."#), "{made}");
    }
    let (status, said) = client.request_text(services, &named(13));
    assert_eq!(status, 422, "{said}");
    assert!(said.contains("range is full"), "{said}");
}

#[test]
fn an_invalid_service_range_is_refused() {
    let sandbox = Sandbox::new();
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
        let end = sandbox.refused(arguments);
        assert_eq!(end.code, Some(2), "{arguments:?}: {}", end.stderr);
        assert!(end.stderr.contains(text), "{arguments:?}: {}", end.stderr);
    }
}

#[test]
fn signals_stop_it_cleanly_and_remove_private_files() {
    for signal in ["TERM", "INT", "HUP"] {
        let sandbox = Sandbox::new();
        let neap = sandbox.up(&[]);
        let kubeconfig = neap.kubeconfig_path();
        let mut here = files(&sandbox.temporary());
        // Areas have files of their own: tokens, and a database that is opened a moment later.
        here.retain(|path| !is_in(path, "node/fleet") && !is_in(path, "node/idle"));
        here.sort();
        let lock = kubeconfig.with_file_name("private.lock");
        assert_eq!(here, [kubeconfig.clone(), lock]);
        assert!(kubeconfig.starts_with(sandbox.temporary()));
        let end = neap.stop(signal);
        assert_eq!(end.code, Some(0), "{signal}: {}", end.stderr);
        assert!(end.stdout.contains("Stopped."));
        assert!(files(&sandbox.temporary()).is_empty(), "{signal}");
        assert!(!kubeconfig.parent().unwrap().exists(), "{signal}");
    }
}

#[test]
fn private_folders_of_killed_servers_are_removed() {
    let sandbox = Sandbox::new();
    let (living, killed) = (sandbox.up(&[]), sandbox.up(&[]));
    let left = killed.kubeconfig_path();
    assert_eq!(killed.stop("KILL").code, None);
    assert!(left.exists());
    let data = sandbox.path("data");
    let _next = sandbox.up(&["--data", data.to_str().unwrap()]);
    // Ten seconds, in polls.
    let mut polls = 0..1000;
    while left.parent().unwrap().exists() && polls.next().is_some() {
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    assert!(!left.parent().unwrap().exists());
    assert!(living.kubeconfig_path().exists());
}

#[test]
fn open_connection_does_not_block_shutdown() {
    let sandbox = Sandbox::new();
    let neap = sandbox.up(&[]);
    let config = neap.kubeconfig();
    let client = HttpsClient::new(&config, Credentials::Token(config.token.clone()));
    let _idle = client.open("/healthz");
    let end = neap.stop("TERM");
    assert_eq!(end.code, Some(0));
    assert!(
        !end.stderr.contains("did not stop in time"),
        "{}",
        end.stderr
    );
}

/// Whether the folder of the file ends with `folder`.
fn is_in(path: &Path, folder: &str) -> bool {
    path.parent().is_some_and(|parent| parent.ends_with(folder))
}

#[test]
fn private_files_are_private() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    let file = sandbox.path("named.kubeconfig");
    let _kept = sandbox.up(&[
        "--data",
        data.to_str().unwrap(),
        "--kubeconfig",
        file.to_str().unwrap(),
    ]);
    let _temporary = sandbox.up(&[]);
    let mut all = files(&data);
    all.extend(files(&sandbox.temporary()));
    all.push(file);
    // Temporary files of SQLite may be gone already.
    for path in all.iter().filter(|path| path.exists()) {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
    // Areas write their files later: the tokens of operator and resolver, the database of the provider.
    all.retain(|path| !is_in(path, "node/idle") && !is_in(path, "node/fleet"));
    assert_eq!(all.len(), 15, "{all:?}");
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("identity")), 0o700);
}

#[test]
fn kubeconfig_stays_valid_across_restarts() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    let arguments = ["--data", data.to_str().unwrap()];
    let first = sandbox.up(&arguments);
    assert_eq!(
        first.kubeconfig_path(),
        data.canonicalize().unwrap().join("kubeconfig")
    );
    let yesterday = first.kubeconfig();
    assert_eq!(first.stop("TERM").code, Some(0));
    assert!(data.join("kubeconfig").exists());

    let second = sandbox.up_on(&yesterday.address(), &arguments);
    assert_eq!(second.kubeconfig(), yesterday);
    let client = HttpsClient::new(&yesterday, Credentials::certificate(&yesterday));
    assert_eq!(client.get("/healthz"), 200);
}

#[test]
fn kubeconfig_file_stays_and_is_replaced_by_the_next_start() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("named.kubeconfig");
    let arguments = ["--kubeconfig", file.to_str().unwrap()];
    let first = sandbox.up(&arguments);
    assert_eq!(first.kubeconfig_path(), file);
    let before = first.kubeconfig();
    assert_eq!(first.stop("TERM").code, Some(0));
    assert!(file.exists());
    assert!(files(&sandbox.temporary()).is_empty());
    assert_ne!(sandbox.up(&arguments).kubeconfig(), before);
}

#[test]
fn kubeconfig_in_the_home_folder_is_never_written() {
    let sandbox = Sandbox::new();
    let users = sandbox.home().join(".kube/config");
    sandbox.up(&[]).stop("TERM");
    assert!(!users.exists());
    for existing in [None, Some("apiVersion: v1\n")] {
        if let Some(text) = existing {
            fs::write(&users, text).unwrap();
        } else {
            fs::create_dir(users.parent().unwrap()).unwrap();
        }
        let refused = sandbox.refused(&["--kubeconfig", users.to_str().unwrap()]);
        assert_eq!(refused.code, Some(6));
        assert!(refused.stderr.contains("NT-UP-0008"), "{}", refused.stderr);
        assert_eq!(fs::read_to_string(&users).ok().as_deref(), existing);
    }
}

#[test]
fn foreign_file_is_not_overwritten() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("precious");
    fs::write(&file, "precious").unwrap();
    let refused = sandbox.refused(&["--kubeconfig", file.to_str().unwrap()]);
    assert_eq!(refused.code, Some(6));
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn busy_port_is_a_clear_error() {
    let sandbox = Sandbox::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = sandbox.refused(&["--listen", &address]);
    assert_eq!(refused.code, Some(6));
    for text in [
        address.as_str(),
        "another process uses the port",
        "--listen 127.0.0.1:0",
        "NT-UP-0001",
    ] {
        assert!(refused.stderr.contains(text), "{text}: {}", refused.stderr);
    }
    assert!(files(&sandbox.temporary()).is_empty());
}

#[test]
fn files_and_addresses_that_cannot_be_used_are_refused_before_the_server_is_ready() {
    let sandbox = Sandbox::new();
    for (arguments, exit, code) in [
        (["--images", "/nowhere/images.toml"], 3, "NT-UP-0022"),
        (["--fleet-store", "foo:bar"], 6, "NT-FLEET-0001"),
        (
            ["--fleet-store", "sqlite:/nowhere/a.db"],
            3,
            "NT-FLEET-0001",
        ),
        (["--fleet-store", "sqlite:/"], 6, "NT-FLEET-0001"),
    ] {
        let [flag, value] = arguments;
        let refused = sandbox.refused(&["--listen", "127.0.0.1:0", flag, value]);
        assert_eq!(refused.code, Some(exit), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains(code), "{arguments:?}: {refused:?}");
        assert!(
            !refused.stdout.contains("Ready"),
            "{arguments:?}: {refused:?}"
        );
    }
}

#[test]
fn data_folder_in_use_is_a_clear_error() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    let arguments = ["--data", data.to_str().unwrap()];
    let first = sandbox.up(&arguments);
    let refused = sandbox.refused(&["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    assert_eq!(refused.code, Some(6));
    let process = format!("process {}", first.id());
    for text in ["data", "in use", process.as_str(), "NT-UP-0003"] {
        assert!(refused.stderr.contains(text), "{text}: {}", refused.stderr);
    }
    let client = HttpsClient::new(
        &first.kubeconfig(),
        Credentials::certificate(&first.kubeconfig()),
    );
    assert_eq!(client.get("/healthz"), 200);
}

#[test]
fn logs_are_json_without_a_terminal() {
    let end = Sandbox::new().up(&[]).stop("TERM");
    let lines: Vec<serde_json::Value> = end
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    assert!(lines.iter().any(|line| line["message"] == "ready"));
}

#[test]
fn ascii_output_has_no_symbols() {
    let end = Sandbox::new().up(&["--ascii"]).stop("TERM");
    assert!(end.stdout.is_ascii(), "{}", end.stdout);
}
