use super::*;

/// A program that answers as kubectl does when asked for its version.
fn program(path: &Path, version: &str) {
    let answer = format!(r#"{{"clientVersion":{{"gitVersion":"{version}"}}}}"#);
    fs::write(path, format!("#!/bin/sh\necho '{answer}'\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("xtask-tools-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn recent_kubectl_will_do_and_an_old_one_will_not() {
    let folder = folder("plain");
    let path = folder.join("kubectl");
    assert_eq!(usable(&path), None);
    program(&path, "v1.30.9");
    assert_eq!(usable(&path), None);
    program(&path, "v1.31.0");
    assert_eq!(usable(&path).unwrap().version, "v1.31.0");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn newest_program_beside_a_dispatcher_is_called_directly() {
    let folder = folder("dispatcher");
    program(&folder.join("real-kubectl"), "v1.32.4-dispatcher");
    let link = folder.join("kubectl");
    std::os::unix::fs::symlink(folder.join("real-kubectl"), &link).unwrap();
    program(&folder.join("kubectl.1.30"), "v1.30.1");
    assert_eq!(usable(&link), None);
    for minor in [9, 31, 33, 32] {
        let path = folder.join(format!("kubectl.1.{minor}"));
        program(&path, &format!("v1.{minor}.1"));
    }
    assert_eq!(usable(&link).unwrap().version, "v1.33.1");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn module_version_becomes_the_release_it_belongs_to() {
    let module = "module x\n\nrequire k8s.io/kubectl v0.36.3\n";
    assert_eq!(module_version(module).as_deref(), Some("v1.36.3"));
    assert_eq!(module_version("module x"), None);
}
