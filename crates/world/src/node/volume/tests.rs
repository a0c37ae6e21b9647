use std::{fs, path::Path, time::SystemTime};

use serde_json::{Value, json};

use super::*;
use crate::node::source::Sources;

fn sources() -> Sources {
    let pod = json!({
        "metadata": {"name": "p", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "250m"}}}]},
    });
    let map = json!({"data": {"a": "1", "b": "2"}, "binaryData": {"c": "AAE="}});
    let secret = json!({"data": {"key": "aGlkZGVu"}});
    Sources {
        pod: serde_json::from_value(pod).unwrap(),
        config_maps: [("m".to_owned(), serde_json::from_value(map).unwrap())].into(),
        secrets: [("s".to_owned(), serde_json::from_value(secret).unwrap())].into(),
        claims: [("data".to_owned(), Ok("/volumes/data".into()))].into(),
        tokens: [(String::new(), Ok("signed".to_owned()))].into(),
    }
}

fn of(volume: Value) -> Result<Content, String> {
    let mut volume = volume;
    volume["name"] = "v".into();
    let volume = serde_json::from_value(volume).unwrap();
    content(&volume, &sources()).map_err(|obstacle| obstacle.message)
}

/// Path, content and mode of each file.
fn files(volume: Value) -> Vec<(String, String, u32)> {
    let Ok(Content::Files(files)) = of(volume) else {
        panic!("no files");
    };
    let shown = files.into_iter().map(|(path, text)| {
        let bytes = String::from_utf8_lossy(&text.bytes).into_owned();
        (path.display().to_string(), bytes, text.mode)
    });
    shown.collect()
}

fn file(path: &str, content: &str, mode: u32) -> (String, String, u32) {
    (path.to_owned(), content.to_owned(), mode)
}

#[test]
fn volumes_have_what_their_sources_have() {
    let map = files(json!({"configMap": {"name": "m"}}));
    assert_eq!(
        map,
        [
            file("a", "1", 0o644),
            file("b", "2", 0o644),
            file("c", "\0\u{1}", 0o644)
        ]
    );
    let items = json!([{"key": "b", "path": "deep/er", "mode": 256}]);
    let some = files(json!({"configMap": {"name": "m", "items": items, "defaultMode": 420}}));
    assert_eq!(some, [file("deep/er", "2", 0o400)]);
    let secret = files(json!({"secret": {"secretName": "s", "defaultMode": 384}}));
    assert_eq!(secret, [file("key", "hidden", 0o600)]);
    let all = files(json!({"projected": {"sources": [
        {"serviceAccountToken": {"path": "token"}},
        {"configMap": {"name": "m", "items": [{"key": "a", "path": "a"}]}},
        {"downwardAPI": {"items": [
            {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
            {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "requests.cpu", "divisor": "1m"}},
        ]}},
    ]}}));
    let expected = [
        file("a", "1", 0o644),
        file("cpu", "250", 0o644),
        file("labels", "app=\"web\"", 0o644),
        file("token", "signed", 0o644),
    ];
    assert_eq!(all, expected);
}

#[test]
fn other_volumes_are_folders() {
    assert_eq!(of(json!({"emptyDir": {}})), Ok(Content::Empty));
    let machine = |path: &str, wanted| Ok(Content::Machine(path.into(), wanted));
    let host = json!({"hostPath": {"path": "/srv"}});
    assert_eq!(of(host), machine("/srv", Wanted::Anything));
    let host = json!({"hostPath": {"path": "/srv", "type": "File"}});
    assert_eq!(of(host), machine("/srv", Wanted::File));
    let claim = json!({"persistentVolumeClaim": {"claimName": "data"}});
    assert_eq!(of(claim), machine("/volumes/data", Wanted::FolderOrNew));
}

#[test]
fn what_cannot_be_mounted_is_named() {
    for (volume, message) in [
        (
            json!({"configMap": {"name": "gone"}}),
            "configmap \"gone\" not found",
        ),
        (
            json!({"configMap": {"name": "m", "items": [{"key": "z", "path": "z"}]}}),
            "references non-existent config key: z",
        ),
        (
            json!({"configMap": {"name": "m", "items": [{"key": "a", "path": "../a"}]}}),
            "../a does not lie in the volume",
        ),
        (
            json!({"persistentVolumeClaim": {"claimName": "other"}}),
            "persistentvolumeclaim \"other\" not found",
        ),
        (
            json!({"nfs": {"server": "s", "path": "/"}}),
            "volume \"v\" is of a kind that this node does not have",
        ),
    ] {
        assert_eq!(of(volume), Err(message.to_owned()));
    }
    assert_eq!(
        files(json!({"configMap": {"name": "gone", "optional": true}})),
        []
    );
}

fn texts(files: &[(&str, &str)]) -> Files {
    let text = |content: &str| Text {
        bytes: content.into(),
        mode: 0o644,
    };
    files
        .iter()
        .map(|(path, content)| (path.into(), text(content)))
        .collect()
}

fn seen(folder: &Path, path: &str) -> Option<String> {
    fs::read_to_string(folder.join(path)).ok()
}

#[test]
fn files_change_all_at_once_and_only_when_they_differ() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(write(folder, &texts(&[("a", "1"), ("deep/b", "2")])).unwrap());
    assert_eq!(seen(folder, "deep/b").as_deref(), Some("2"));
    assert!(!write(folder, &texts(&[("a", "1"), ("deep/b", "2")])).unwrap());

    // A process that opened the folder through the link goes on with the old files.
    let before = folder.join(fs::read_link(folder.join("..data")).unwrap());
    assert!(write(folder, &texts(&[("a", "3"), ("c", "4")])).unwrap());
    assert_eq!(seen(folder, "a").as_deref(), Some("3"));
    assert_eq!(seen(folder, "deep/b"), None, "gone with its link");
    assert!(!before.exists(), "nothing is left lying about");
}

#[test]
fn what_a_crash_left_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let files = texts(&[("a", "1")]);
    write(folder, &files).unwrap();
    fs::write(folder.join("..data_next"), "").unwrap();
    fs::create_dir(folder.join("..half")).unwrap();
    assert!(write(folder, &texts(&[("a", "2")])).unwrap());
    assert_eq!(seen(folder, "a").as_deref(), Some("2"));
    let left = fs::read_dir(folder).unwrap().count();
    assert_eq!(left, 3, "the files, the link to them, and the link to it");
}

#[test]
fn what_the_machine_has_must_be_of_the_kind_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "kept").unwrap();
    for (name, wanted, fits) in [
        ("file", Wanted::Anything, true),
        ("file", Wanted::File, true),
        ("file", Wanted::FileOrNew, true),
        ("file", Wanted::FolderOrNew, false),
        ("file", Wanted::Socket, false),
        ("a", Wanted::Folder, false),
        ("b", Wanted::File, false),
        ("c/d", Wanted::FolderOrNew, true),
        ("c/d", Wanted::Folder, true),
        ("e", Wanted::FileOrNew, true),
        ("f", Wanted::Anything, true),
    ] {
        let provided = provide(&at(name), wanted);
        assert_eq!(provided.is_ok(), fits, "{name} {wanted:?} {provided:?}");
    }
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "kept");
    assert!(at("c/d").is_dir() && at("e").is_file() && at("f").is_dir());
    assert!(!at("a").exists() && !at("b").exists());
}

#[test]
fn a_text_is_changed_in_place_and_only_if_it_differs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts");
    put_text(&path, "a longer text\n").unwrap();
    let (then, file) = (SystemTime::UNIX_EPOCH, fs::File::open(&path).unwrap());
    file.set_modified(then).unwrap();
    put_text(&path, "a longer text\n").unwrap();
    assert_eq!(file.metadata().unwrap().modified().unwrap(), then);
    put_text(&path, "short\n").unwrap();
    let held = std::io::read_to_string(&file).unwrap();
    assert_eq!(held, "short\n", "whoever holds the file sees it");
}
