use super::*;

/// A program that answers as kubectl does when asked for its version.
///
/// Another process writes it: a file that this one holds open for writing, if only through a child
/// that another test just started, cannot be run.
fn program(path: &Path, version: &str) {
    let answer = format!(r#"{{"clientVersion":{{"gitVersion":"{version}"}}}}"#);
    let write = r#"printf '#!/bin/sh\necho '"'%s'"'\n' "$1" > "$0" && chmod 755 "$0""#;
    let mut shell = Command::new("sh");
    process::run(shell.args(["-c", write]).arg(path).arg(answer)).unwrap();
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
