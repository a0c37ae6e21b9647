use std::{fs, path::Path, time::SystemTime};

use serde_json::{Value, json};

use super::*;
use crate::node::sources::PodSources;

fn sources() -> PodSources {
    let pod = json!({
        "metadata": {"name": "p", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "250m"}}}]},
    });
    let map = json!({"data": {"a": "1", "b": "2"}, "binaryData": {"c": "AAE="}});
    let secret = json!({"data": {"key": "aGlkZGVu"}});
    PodSources {
        pod: serde_json::from_value(pod).unwrap(),
        config_maps: [("m".to_owned(), serde_json::from_value(map).unwrap())].into(),
        secrets: [("s".to_owned(), serde_json::from_value(secret).unwrap())].into(),
        claims: [("data".to_owned(), Ok("/volumes/data".into()))].into(),
        tokens: [(String::new(), Ok("signed".to_owned()))].into(),
    }
}

fn of(volume: Value) -> Result<VolumeContent, String> {
    let mut volume = volume;
    volume["name"] = "v".into();
    let volume = serde_json::from_value(volume).unwrap();
    content(&volume, &sources()).map_err(|wait_reason| wait_reason.message)
}

/// Path, content and mode of each file.
fn files(volume: Value) -> Vec<(String, String, u32)> {
    let Ok(VolumeContent::Files(files)) = of(volume) else {
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
    assert_eq!(of(json!({"emptyDir": {}})), Ok(VolumeContent::Empty));
    let machine = |path: &str, wanted| Ok(VolumeContent::Machine(path.into(), wanted));
    let host = json!({"hostPath": {"path": "/srv"}});
    assert_eq!(of(host), machine("/srv", HostPathType::Anything));
    let host = json!({"hostPath": {"path": "/srv", "type": "File"}});
    assert_eq!(of(host), machine("/srv", HostPathType::File));
    let claim = json!({"persistentVolumeClaim": {"claimName": "data"}});
    assert_eq!(
        of(claim),
        machine("/volumes/data", HostPathType::DirectoryOrCreate)
    );
}

#[test]
fn an_unavailable_volume_is_reported() {
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
            "../a is outside of the volume",
        ),
        (
            json!({"persistentVolumeClaim": {"claimName": "other"}}),
            "persistentvolumeclaim \"other\" not found",
        ),
        (
            json!({"nfs": {"server": "s", "path": "/"}}),
            "volume \"v\" has a type that this node does not support",
        ),
    ] {
        assert_eq!(of(volume), Err(message.to_owned()));
    }
    assert_eq!(
        files(json!({"configMap": {"name": "gone", "optional": true}})),
        []
    );
}

fn texts(files: &[(&str, &str)]) -> VolumeFiles {
    let text = |content: &str| VolumeFile {
        bytes: content.into(),
        mode: 0o644,
    };
    files
        .iter()
        .map(|(path, content)| (path.into(), text(content)))
        .collect()
}

fn content_of(folder: &Path, path: &str) -> Option<String> {
    fs::read_to_string(folder.join(path)).ok()
}

#[test]
fn files_change_all_at_once_and_only_when_they_differ() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(write(folder, &texts(&[("a", "1"), ("deep/b", "2")])).unwrap());
    assert_eq!(content_of(folder, "deep/b").as_deref(), Some("2"));
    assert!(!write(folder, &texts(&[("a", "1"), ("deep/b", "2")])).unwrap());

    // A process that opened the folder through the link keeps the old files.
    let before = folder.join(fs::read_link(folder.join("..data")).unwrap());
    assert!(write(folder, &texts(&[("a", "3"), ("c", "4")])).unwrap());
    assert_eq!(content_of(folder, "a").as_deref(), Some("3"));
    assert_eq!(content_of(folder, "deep/b"), None, "gone with its link");
    assert!(!before.exists(), "no leftovers");
}

#[test]
fn leftovers_of_a_crash_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let files = texts(&[("a", "1")]);
    write(folder, &files).unwrap();
    fs::write(folder.join("..data_next"), "").unwrap();
    fs::create_dir(folder.join("..half")).unwrap();
    assert!(write(folder, &texts(&[("a", "2")])).unwrap());
    assert_eq!(content_of(folder, "a").as_deref(), Some("2"));
    let left = fs::read_dir(folder).unwrap().count();
    assert_eq!(left, 3, "the files, the link to them, and the link to it");
}

#[test]
fn a_path_of_the_machine_must_have_the_required_type() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "kept").unwrap();
    for (name, wanted, fits) in [
        ("file", HostPathType::Anything, true),
        ("file", HostPathType::File, true),
        ("file", HostPathType::FileOrCreate, true),
        ("file", HostPathType::DirectoryOrCreate, false),
        ("file", HostPathType::Socket, false),
        ("a", HostPathType::Directory, false),
        ("b", HostPathType::File, false),
        ("c/d", HostPathType::DirectoryOrCreate, true),
        ("c/d", HostPathType::Directory, true),
        ("e", HostPathType::FileOrCreate, true),
        ("f", HostPathType::Anything, true),
    ] {
        let provided = ensure_host_path(&at(name), wanted);
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
    write_text(&path, "a longer text\n").unwrap();
    let (then, file) = (SystemTime::UNIX_EPOCH, fs::File::open(&path).unwrap());
    file.set_modified(then).unwrap();
    write_text(&path, "a longer text\n").unwrap();
    assert_eq!(file.metadata().unwrap().modified().unwrap(), then);
    write_text(&path, "short\n").unwrap();
    let read = std::io::read_to_string(&file).unwrap();
    assert_eq!(read, "short\n", "an open file shows the new text");
}
