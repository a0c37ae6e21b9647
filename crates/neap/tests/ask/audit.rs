//! The audit of a data folder, and its anchor in the server.

use std::{fs, path::Path};

use kube::Client;
use neap_kit::{
    apply::Hand,
    audit::{Anchor, AnchorOptions, Audit},
    clock::Clock,
    lease::Leadership,
};
use tokio_util::sync::CancellationToken;

use super::{Place, client, json_of, neap, said};

/// Notes five deeds in the folder's audit, and anchors their end.
async fn noted(folder: &Path, client: Client) -> AnchorOptions {
    noted_in_parts_of(1 << 20, folder, client).await
}

async fn noted_in_parts_of(bytes: u64, folder: &Path, client: Client) -> AnchorOptions {
    let clock = Clock::system();
    let options = AnchorOptions::of(folder);
    let (audit, service) = Audit::open_in_parts_of(bytes, &options.path, clock).unwrap();
    let hand = Hand::new(client, "audit", Leadership::alone(clock), clock);
    let anchor = Anchor::new(audit.clone(), hand, options.clone(), clock);
    let (writing, anchoring) = (CancellationToken::new(), CancellationToken::new());
    let noting = async {
        for number in 0..5 {
            let object = format!("thing {number}");
            audit.note("tester", "touch", &object, "done").await;
        }
        writing.cancel();
    };
    tokio::join!(service.run(writing.clone()), noting);
    anchoring.cancel();
    anchor.run(anchoring).await;
    options
}

#[tokio::test]
async fn edits_and_cuts_are_found_and_the_line_is_named() {
    let place = Place::new();
    let data = place.path("data");
    let folder = data.to_str().unwrap();
    let up = place.up(&["--bare", "--data", folder]);
    let nowhere = Path::new("/nowhere");
    let arguments = ["audit", "verify", "--data", folder];
    let output = neap(&place, nowhere, &arguments);
    let (code, _, stderr) = said(&output);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("NT-CLI-0011"), "{stderr}");

    let file = noted(&data, client(&up.kubeconfig_path()).await).await.path;
    let output = neap(&place, nowhere, &arguments);
    let (code, stdout, stderr) = said(&output);
    assert_eq!(code, Some(0), "{stderr}");
    let fits = "5 records, each as it was written; the anchor of record 5 fits";
    assert!(stdout.contains(fits), "{stdout}");

    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<_> = whole.lines().collect();
    let cut = lines[..3].join("\n") + "\n";
    for (text, expected) in [
        (
            whole.replace("thing 1", "thing 9"),
            "line 2: record 2 is not as it was written",
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
        let output = neap(&place, nowhere, &arguments);
        let (code, stdout, stderr) = said(&output);
        assert_eq!((code, stdout), (Some(1), ""), "{stderr}");
        assert!(
            stderr.contains(expected) && stderr.contains("NT-KIT-010"),
            "{stderr}"
        );
    }
    let output = neap(&place, nowhere, &["check", "--data", folder, "-o", "short"]);
    assert_eq!(said(&output).0, Some(1));
    assert!(said(&output).1.contains("record 5"), "{output:?}");
}

#[tokio::test]
async fn an_audit_in_parts_is_read_whole_and_a_part_that_is_missing_is_named() {
    let place = Place::new();
    let data = place.path("data");
    let folder = data.to_str().unwrap();
    let up = place.up(&["--bare", "--data", folder]);
    let client = client(&up.kubeconfig_path()).await;
    // Each process begins a new part: the one before is full.
    for _ in 0..3 {
        noted_in_parts_of(1, &data, client.clone()).await;
    }
    let verify = || {
        let arguments = ["audit", "verify", "--data", folder];
        neap(&place, Path::new("/nowhere"), &arguments)
    };
    let output = verify();
    let (code, stdout, stderr) = said(&output);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("15 records, each as"), "{stdout}");
    let entries = fs::read_dir(&data).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut parts: Vec<_> = names.filter(|it| it.starts_with("audit.jsonl.")).collect();
    parts.sort();
    assert!(parts.len() >= 2, "{parts:?}");

    let second = data.join(&parts[1]);
    let whole = fs::read_to_string(&second).unwrap();
    fs::write(&second, whole.replacen("done", "none", 1)).unwrap();
    let output = verify();
    let (code, _, stderr) = said(&output);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains(&format!("{} is not", parts[1])), "{stderr}");
    assert!(stderr.contains("line 1: record "), "{stderr}");

    fs::remove_file(&second).unwrap();
    let output = verify();
    let (code, _, stderr) = said(&output);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains("a part of the audit is missing"),
        "{stderr}"
    );
}

#[tokio::test]
async fn without_an_anchor_a_cut_cannot_be_seen_and_that_is_said() {
    let place = Place::new();
    let up = place.up(&[]);
    let file = noted(&place.home(), client(&up.kubeconfig_path()).await)
        .await
        .path;
    let whole = fs::read_to_string(&file).unwrap();
    let cut: Vec<_> = whole.split_inclusive('\n').take(3).collect();
    fs::write(&file, cut.concat()).unwrap();
    let file = file.to_str().unwrap();
    let arguments = ["audit", "verify", "--file", file, "-o", "json"];
    let json = json_of(&neap(&place, Path::new("/nowhere"), &arguments));
    assert_eq!(
        (&json["records"], &json["anchored"]),
        (&3.into(), &().into())
    );
    assert_eq!(json["unanchored"], "no cluster is named");
    let output = neap(&place, &up.kubeconfig_path(), &arguments);
    let (code, _, stderr) = said(&output);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("record 5 was anchored"), "{stderr}");
}

#[test]
fn what_neap_up_does_is_noted_and_an_edit_is_found() {
    let place = Place::new();
    let data = place.path("data");
    let folder = data.to_str().unwrap();
    let up = place.up(&["--data", folder]);
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
    let output = neap(&place, Path::new("/nowhere"), &arguments);
    let (code, stdout, stderr) = said(&output);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("each as it was written"), "{stdout}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("Node"), "{text}");
    fs::write(&file, text.replacen("Node", "Mode", 1)).unwrap();
    let output = neap(&place, Path::new("/nowhere"), &arguments);
    let (code, _, stderr) = said(&output);
    assert_eq!(code, Some(1), "{stderr}");
    // It is not gone on with either.
    let refused = place.refused(&["--data", folder, "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, Some(6), "{}", refused.stderr);
    assert!(refused.stderr.contains("NT-UP-0023"), "{}", refused.stderr);
}
