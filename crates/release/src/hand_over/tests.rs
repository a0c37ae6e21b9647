use super::*;

const CONFIG: &str = r#"{"name":"4.21.0-0.nightly","to":"release"}"#;

fn source(annotations: &Value) -> ImageStream {
    serde_json::from_value(json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {"name": "4.21-art-latest", "namespace": "ocp", "annotations": annotations}, "spec": {},
    }))
    .unwrap()
}

/// The source after these annotations were written.
fn written(before: &ImageStream, changes: &Value) -> ImageStream {
    let mut after = before.clone();
    let all = after.metadata.annotations.get_or_insert_default();
    for (name, value) in changes.as_object().unwrap() {
        match value.as_str() {
            Some(value) => all.insert(name.clone(), value.to_owned()),
            None => all.remove(name),
        };
    }
    after
}

fn owners(source: &ImageStream) -> (bool, bool) {
    (
        annotation(source, annotations::CONFIG).is_some(),
        annotation(source, annotations::CONFIG_REF).is_some(),
    )
}

#[test]
fn a_stream_is_handed_over_and_back_and_never_has_two_owners() {
    let original = source(&json!({annotations::CONFIG: CONFIG}));
    let Step::Release {
        map,
        config,
        annotations,
    } = next(&original, None, Owner::Neaptide).unwrap()
    else {
        panic!("the original owns it");
    };
    assert_eq!(
        (map.as_str(), config.as_deref()),
        ("4.21-art-latest-release-config", Some(CONFIG))
    );
    let nobody = written(&original, &annotations);
    assert_eq!(owners(&nobody), (false, false));
    let Step::Take { annotations } = next(&nobody, Some(CONFIG), Owner::Neaptide).unwrap() else {
        panic!("it has no owner");
    };
    let ours = written(&nobody, &annotations);
    assert_eq!(owners(&ours), (false, true));
    assert_eq!(next(&ours, Some(CONFIG), Owner::Neaptide), Ok(Step::Done));

    let Step::Release { annotations, .. } = next(&ours, Some(CONFIG), Owner::Original).unwrap()
    else {
        panic!("this project owns it");
    };
    let nobody = written(&ours, &annotations);
    assert_eq!(owners(&nobody), (false, false));
    let Step::Take { annotations } = next(&nobody, Some(CONFIG), Owner::Original).unwrap() else {
        panic!("it has no owner");
    };
    assert_eq!(written(&nobody, &annotations), original, "as it was before");
}

#[test]
fn an_interrupted_change_is_finished_or_undone() {
    let nobody = source(&json!({annotations::HAND_OVER: "map"}));
    for owner in [Owner::Original, Owner::Neaptide] {
        assert!(matches!(
            next(&nobody, Some(CONFIG), owner),
            Ok(Step::Take { .. })
        ));
        assert_eq!(
            next(&nobody, None, owner),
            Err(Refusal::NoConfig("map".to_owned()))
        );
    }
}

#[test]
fn what_the_new_owner_could_not_read_stays_where_it_is() {
    let ours = source(&json!({annotations::CONFIG_REF: "map"}));
    let large = CONFIG.replace(
        '}',
        &format!(r#", "message": "{}"}}"#, "x".repeat(ANNOTATION_LIMIT)),
    );
    assert_eq!(
        next(&ours, Some(&large), Owner::Original),
        Err(Refusal::TooLarge(large.len()))
    );
    assert_eq!(
        next(&ours, None, Owner::Original),
        Err(Refusal::NoConfig("map".to_owned()))
    );
    let broken = source(&json!({annotations::CONFIG: "{"}));
    assert!(matches!(
        next(&broken, None, Owner::Neaptide),
        Err(Refusal::Invalid(_))
    ));
    let both = source(&json!({annotations::CONFIG: CONFIG, annotations::CONFIG_REF: "map"}));
    assert_eq!(
        next(&both, Some(CONFIG), Owner::Neaptide),
        Err(Refusal::Both)
    );
    assert_eq!(
        next(&source(&json!({})), None, Owner::Neaptide),
        Err(Refusal::NoStream)
    );
}
