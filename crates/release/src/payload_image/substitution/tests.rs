use super::*;

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn table() -> Substitution {
    let images = [
        ("quay.io/ex/cli", "reg/cli@sha256:c1"),
        ("quay.io/ex/cli-artifacts", "reg/artifacts@sha256:a1"),
        ("quay.io/ex/exact:v1", "reg/exact@sha256:e1"),
    ];
    let versions = [("kubernetes", "1.35.2"), ("kubectl", "1.35.1")];
    let owned = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    };
    Substitution {
        images: owned(&images),
        release: Some("4.99.0-ci.7".to_owned()),
        versions: Some(owned(&versions)),
    }
}

fn apply(text: &str) -> String {
    let found = table().apply(text.as_bytes()).unwrap();
    assert_eq!(found.remaining, Vec::<String>::new(), "{text}");
    String::from_utf8(found.content).unwrap()
}

#[test]
fn names_with_and_without_tags_and_digests_are_replaced() {
    for text in [
        "quay.io/ex/cli",
        "quay.io/ex/cli:latest",
        "quay.io/ex/cli:v4.1_x-2",
        &format!("quay.io/ex/cli@{DIGEST}"),
    ] {
        for (before, after) in [
            ("", ""),
            ("image: ", "\n"),
            ("\"", "\""),
            ("'", "'"),
            ("--image=", " "),
            ("docker://", "\n"),
        ] {
            assert_eq!(
                apply(&format!("{before}{text}{after}")),
                format!("{before}reg/cli@sha256:c1{after}"),
                "{text}"
            );
        }
    }
}

#[test]
fn references_one_character_apart_and_before_separators_are_all_replaced() {
    assert_eq!(
        apply("quay.io/ex/cli,quay.io/ex/cli:x quay.io/ex/cli"),
        "reg/cli@sha256:c1,reg/cli@sha256:c1 reg/cli@sha256:c1"
    );
    assert_eq!(apply("f(quay.io/ex/cli)"), "f(reg/cli@sha256:c1)");
}

#[test]
fn longer_names_are_other_images() {
    assert_eq!(
        apply("quay.io/ex/cli-artifacts:v1"),
        "reg/artifacts@sha256:a1"
    );
    for text in [
        "quay.io/ex/cli-other",
        "quay.io/ex/cli/sub",
        "quay.io/ex/client",
        "my.quay.io/ex/cli",
        "xquay.io/ex/cli",
        "quay.io/ex/cli:8443/path",
    ] {
        assert_eq!(apply(text), text);
    }
    assert_eq!(
        apply("quay.io/ex/exact:v1 quay.io/ex/exact:v2"),
        "reg/exact@sha256:e1 quay.io/ex/exact:v2"
    );
}

#[test]
fn what_is_put_in_is_not_searched_again() {
    let mut table = table();
    table.images.insert(
        "quay.io/ex/cli".to_owned(),
        "quay.io/ex/exact:v1".to_owned(),
    );
    let found = table.apply(b"quay.io/ex/cli").unwrap();
    assert_eq!(found.content, b"quay.io/ex/exact:v1");
}

#[test]
fn a_reference_that_is_not_understood_is_reported() {
    let found = table().apply(b"<quay.io/ex/cli:v1>").unwrap();
    assert_eq!(found.remaining, ["quay.io/ex/cli"]);
    assert_eq!(found.content, b"<quay.io/ex/cli:v1>");
}

#[test]
fn placeholders_become_versions() {
    assert_eq!(apply("value: \"0.0.1-snapshot\""), "value: \"4.99.0-ci.7\"");
    assert_eq!(apply("0.0.1-snapshot-kubernetes"), "1.35.2");
    assert_eq!(
        apply("v0.0.1-snapshot 10.0.1-snapshot 0.0.1-snapshotx"),
        "v0.0.1-snapshot 10.0.1-snapshot 0.0.1-snapshotx"
    );
    assert_eq!(apply("0.0.1-snapshot.yaml"), "4.99.0-ci.7.yaml");
    let nameless = Substitution {
        release: None,
        ..table()
    };
    assert_eq!(
        nameless.apply(b"0.0.1-snapshot").unwrap().content,
        b"0.0.1-snapshot"
    );
}

#[test]
fn versions_that_are_not_known_are_refused() {
    let error = table()
        .apply(b"0.0.1-snapshot-crio")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("crio") && error.contains("kubectl, kubernetes"),
        "{error}"
    );
    assert!(matches!(
        table().apply(b"0.0.1-snapshot-"),
        Err(Error::EmptyVersion(_))
    ));
    let alone = Substitution {
        versions: None,
        ..table()
    };
    assert!(matches!(
        alone.apply(b"0.0.1-snapshot-kubernetes"),
        Err(Error::NoReferences(_))
    ));
    assert!(alone.apply(b"0.0.1-snapshot").is_ok());
}

#[test]
fn bytes_that_are_no_text_are_kept() {
    let content = [0xff, 0, b'q', 0xfe];
    assert_eq!(table().apply(&content).unwrap().content, content);
}
