//! `neap audit verify`: the audit log of a data folder, and its anchor in the server.

use std::{fs, path::Path};

use kube::Client;
use neap_kit::{
    apply::Writer,
    audit::{Anchor, AnchorOptions, Audit},
    clock::Clock,
    lease::Leadership,
};
use tokio_util::sync::CancellationToken;

use super::{json_of, neap, parts};
use crate::{kube_client::connect, up::sandbox::Sandbox};

/// Writes five records to the audit log of the folder, and anchors the last one.
async fn write_records(folder: &Path, client: Client) -> AnchorOptions {
    write_records_in_parts(1 << 20, folder, client).await
}

async fn write_records_in_parts(bytes: u64, folder: &Path, client: Client) -> AnchorOptions {
    let clock = Clock::system();
    let options = AnchorOptions::for_data_folder(folder);
    let (audit, service) = Audit::open_with_part_size(bytes, &options.path, clock).unwrap();
    let writer = Writer::new(client, "audit", Leadership::without_election(clock), clock);
    let anchor = Anchor::new(audit.clone(), writer, options.clone(), clock);
    let (writing, anchoring) = (CancellationToken::new(), CancellationToken::new());
    let recording = async {
        for number in 0..5 {
            let object = format!("thing {number}");
            audit.record("tester", "touch", &object, "done").await;
        }
        writing.cancel();
    };
    tokio::join!(service.run(writing.clone()), recording);
    anchoring.cancel();
    anchor.run(anchoring).await;
    options
}

#[tokio::test]
async fn edits_and_truncation_are_found_and_the_line_is_named() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    let folder = data.to_str().unwrap();
    let up = sandbox.up(&["--bare", "--data", folder]);
    let nowhere = Path::new("/nowhere");
    let arguments = ["audit", "verify", "--data", folder];
    let output = neap(&sandbox, nowhere, &arguments);
    let (code, _, stderr) = parts(&output);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("NT-CLI-0011"), "{stderr}");

    let file = write_records(&data, connect(&up.kubeconfig_path()).await)
        .await
        .path;
    let output = neap(&sandbox, nowhere, &arguments);
    let (code, stdout, stderr) = parts(&output);
    assert_eq!(code, Some(0), "{stderr}");
    let verified = "5 records, none changed; the anchor matches record 5";
    assert!(stdout.contains(verified), "{stdout}");

    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<_> = whole.lines().collect();
    let cut = lines[..3].join("\n") + "\n";
    for (text, expected) in [
        (
            whole.replace("thing 1", "thing 9"),
            "line 2: record 2 was changed after it was written",
        ),
        (
            cut,
            "line 4: the file ends with record 3, and record 5 was anchored",
        ),
        (
            whole[..whole.len() - 9].to_owned(),
            "line 5: record 5, the last, is incomplete",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let output = neap(&sandbox, nowhere, &arguments);
        let (code, stdout, stderr) = parts(&output);
        assert_eq!((code, stdout), (Some(1), ""), "{stderr}");
        assert!(
            stderr.contains(expected) && stderr.contains("NT-KIT-010"),
            "{stderr}"
        );
    }
    let output = neap(
        &sandbox,
        nowhere,
        &["check", "--data", folder, "-o", "short"],
    );
    assert_eq!(parts(&output).0, Some(1));
    assert!(parts(&output).1.contains("record 5"), "{output:?}");
}

#[tokio::test]
async fn a_log_in_parts_is_verified_and_a_missing_part_is_found() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    let folder = data.to_str().unwrap();
    let up = sandbox.up(&["--bare", "--data", folder]);
    let client = connect(&up.kubeconfig_path()).await;
    // Each round starts a new part, because the previous one is full.
    for _ in 0..3 {
        write_records_in_parts(1, &data, client.clone()).await;
    }
    let verify = || {
        let arguments = ["audit", "verify", "--data", folder];
        neap(&sandbox, Path::new("/nowhere"), &arguments)
    };
    let output = verify();
    let (code, stdout, stderr) = parts(&output);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("15 records, none changed"), "{stdout}");
    let entries = fs::read_dir(&data).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut file_names: Vec<_> = names.filter(|it| it.starts_with("audit.jsonl.")).collect();
    file_names.sort();
    assert!(file_names.len() >= 2, "{file_names:?}");

    let second = data.join(&file_names[1]);
    let whole = fs::read_to_string(&second).unwrap();
    fs::write(&second, whole.replacen("done", "none", 1)).unwrap();
    let output = verify();
    let (code, _, stderr) = parts(&output);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains(&format!("{} was changed", file_names[1])),
        "{stderr}"
    );
    assert!(stderr.contains("line 1: record "), "{stderr}");

    fs::remove_file(&second).unwrap();
    let output = verify();
    let (code, _, stderr) = parts(&output);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains("a part of the audit is missing"),
        "{stderr}"
    );
}

#[tokio::test]
async fn without_an_anchor_truncation_is_undetected_and_reported_as_unanchored() {
    let sandbox = Sandbox::new();
    let up = sandbox.up(&[]);
    let file = write_records(&sandbox.home(), connect(&up.kubeconfig_path()).await)
        .await
        .path;
    let whole = fs::read_to_string(&file).unwrap();
    let cut: Vec<_> = whole.split_inclusive('\n').take(3).collect();
    fs::write(&file, cut.concat()).unwrap();
    let file = file.to_str().unwrap();
    let arguments = ["audit", "verify", "--file", file, "-o", "json"];
    let json = json_of(&neap(&sandbox, Path::new("/nowhere"), &arguments));
    assert_eq!(
        (&json["records"], &json["anchored"]),
        (&3.into(), &().into())
    );
    assert_eq!(json["unanchored"], "no cluster is configured");
    let output = neap(&sandbox, &up.kubeconfig_path(), &arguments);
    let (code, _, stderr) = parts(&output);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("record 5 was anchored"), "{stderr}");
}

#[test]
fn writes_of_neap_up_are_recorded_and_an_edit_is_found() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    let folder = data.to_str().unwrap();
    let up = sandbox.up(&["--data", folder]);
    let file = data.join("audit.jsonl");
    let registered = || fs::read_to_string(&file).is_ok_and(|text| text.contains("Node"));
    for _ in 0..6000 {
        if registered() {
            break;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    drop(up);
    let arguments = ["audit", "verify", "--data", folder];
    let output = neap(&sandbox, Path::new("/nowhere"), &arguments);
    let (code, stdout, stderr) = parts(&output);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("none changed"), "{stdout}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("Node"), "{text}");
    fs::write(&file, text.replacen("Node", "Mode", 1)).unwrap();
    let output = neap(&sandbox, Path::new("/nowhere"), &arguments);
    let (code, _, stderr) = parts(&output);
    assert_eq!(code, Some(1), "{stderr}");
    // A changed log is not continued either.
    let refused = sandbox.refused(&["--data", folder, "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, Some(6), "{}", refused.stderr);
    assert!(refused.stderr.contains("NT-UP-0023"), "{}", refused.stderr);
}
