use std::path::{Path, PathBuf};

use super::*;

fn basic(username: &str, password: &str) -> Secret {
    Secret::Basic {
        username: username.to_owned(),
        password: password.to_owned(),
    }
}

fn entry(key: &str, user: &str) -> Credentials {
    Credentials::none().with(key, basic(user, "p"))
}

#[test]
fn the_entry_that_names_most_of_the_repository_is_used() {
    let text = r#"{"auths": {
        "reg.example": {"auth": "aG9zdDpwOnc="},
        "reg.example/ocp": {"username": "space", "password": "p"},
        "https://index.docker.io/v1/": {"identitytoken": "t"},
        "empty.example": {}
    }}"#;
    let found = Credentials::parse(text).unwrap();
    assert_eq!(
        found.find("reg.example", "other/cli"),
        Some(&basic("host", "p:w"))
    );
    assert_eq!(
        found.find("reg.example", "ocp/cli"),
        Some(&basic("space", "p"))
    );
    assert_eq!(
        found.find("reg.example", "ocpx/cli"),
        Some(&basic("host", "p:w"))
    );
    let token = Secret::IdentityToken("t".to_owned());
    assert_eq!(found.find("docker.io", "library/x"), Some(&token));
    assert_eq!(
        found.find("registry-1.docker.io", "library/x"),
        Some(&token)
    );
    for nothing in ["empty.example", "reg.example.evil", "example"] {
        assert_eq!(found.find(nothing, "ocp/cli"), None, "{nothing}");
    }
}

#[test]
fn an_earlier_file_hides_a_later_one() {
    let both = entry("reg.example", "first").then(entry("reg.example/ocp", "second"));
    assert_eq!(
        both.find("reg.example", "ocp/cli"),
        Some(&basic("first", "p"))
    );
}

#[test]
fn the_usual_files_are_read_in_their_order() {
    let environment = Environment {
        runtime_dir: Some("/run/user/7".into()),
        home: Some("/home/u".into()),
        docker_config: Some("/etc/d".into()),
        uid: Some(7),
        ..Environment::default()
    };
    let expected = [
        "/run/user/7/containers/auth.json",
        "/run/containers/7/auth.json",
        "/home/u/.config/containers/auth.json",
        "/etc/d/config.json",
        "/home/u/.dockercfg",
    ];
    assert_eq!(candidates(&environment, None), expected.map(PathBuf::from));
    let named = candidates(&environment, Some(Path::new("/x")));
    assert_eq!(named, [PathBuf::from("/x")]);
}

#[test]
fn a_named_file_must_exist_and_others_need_not() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment {
        home: Some(folder.path().to_owned()),
        ..Environment::default()
    };
    assert!(load(&environment, None).unwrap().is_empty());
    let missing = folder.path().join("missing");
    assert!(matches!(
        load(&environment, Some(&missing)),
        Err(FileError::Io { .. })
    ));
    std::fs::write(
        folder.path().join(".dockercfg"),
        r#"{"r.example": {"auth": "dTpw"}}"#,
    )
    .unwrap();
    let found = load(&environment, None).unwrap();
    assert_eq!(found.find("r.example", "x"), Some(&basic("u", "p")));
}

#[test]
fn wrong_content_is_an_error_that_quotes_no_secret() {
    for text in [
        r#"{"auths": {"r": {"auth": "!!!secret"}}}"#,
        r#"{"auths": {"r": {"auth": "c2VjcmV0"}}}"#,
        r#"{"auths": {"r": "secret"}}"#,
        "secret",
    ] {
        let error = Credentials::parse(text).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let shown = format!("{:?}", entry("r.example", "visible"));
    assert!(!shown.contains("visible"), "{shown}");
}
