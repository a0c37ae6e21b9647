#![expect(clippy::needless_pass_by_value, reason = "literals are passed")]

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{
    image_stream::{api::ImageStream, registries::Allowance},
    oci::digest::sha256,
};

fn facts(tags: Value, status: Value) -> Facts {
    let stream: ImageStream = serde_json::from_value(json!({
        "metadata": {"name": "4.99", "namespace": "ocp", "generation": 3},
        "spec": {"tags": tags},
        "status": {"dockerImageRepository": "", "tags": status},
    }))
    .unwrap();
    let plenty = Allowance {
        imports: 100,
        wait: Duration::ZERO,
    };
    Facts {
        stream: Arc::new(stream),
        now: "2026-01-01T12:00:00Z".parse().unwrap(),
        settings: Settings::default(),
        allowances: BTreeMap::from([("reg.example".to_owned(), plenty)]),
        followed: BTreeMap::new(),
        closed: BTreeMap::new(),
    }
}

fn tag(name: &str, more: Value) -> Value {
    let mut tag = json!({"name": name, "from": {"kind": "DockerImage", "name": format!("reg.example/ocp/{name}:v1")}});
    for (key, value) in more.as_object().unwrap() {
        tag[key] = value.clone();
    }
    tag
}

fn imported(name: &str, more: Value) -> Value {
    let mut import = json!({"source": format!("reg.example/ocp/{name}:v1"), "attemptedAt": "2026-01-01T11:50:00Z"});
    for (key, value) in more.as_object().unwrap() {
        import[key] = value.clone();
    }
    let image = sha256(name.as_bytes()).to_string();
    json!({
        "tag": name, "import": import,
        "items": [{"created": "2026-01-01T10:00:00Z", "dockerImageReference": format!("reg.example/ocp/{name}@{image}"), "image": image, "generation": 3}],
    })
}

fn names(decision: &Decision) -> Vec<&str> {
    decision.imports.iter().map(|it| it.tag.as_str()).collect()
}

#[test]
fn new_and_changed_tags_are_imported_and_others_are_not() {
    let scheduled = json!({"importPolicy": {"scheduled": true}});
    let decision = decide(&facts(
        json!([
            tag("new", json!({})),
            tag("done", json!({})),
            tag("moved", json!({"from": {"kind": "DockerImage", "name": "reg.example/ocp/moved:v2"}})),
            tag("mode", json!({"importPolicy": {"importMode": "PreserveOriginal"}})),
            tag("insecure", json!({"importPolicy": {"insecure": true}})),
            tag("still", json!({"importPolicy": {"insecure": true}})),
            tag("secure", json!({})),
            tag("later", scheduled.clone()),
            tag("reference", json!({"reference": true})),
            {"name": "pushed"},
        ]),
        json!([
            imported("done", json!({})),
            imported("moved", json!({})),
            imported("mode", json!({})),
            imported("insecure", json!({})),
            imported(
                "still",
                json!({"source": "reg.example/ocp/still:v1 insecure"})
            ),
            imported(
                "secure",
                json!({"source": "reg.example/ocp/secure:v1 insecure"})
            ),
            imported("later", json!({})),
        ]),
    ));
    assert_eq!(
        names(&decision),
        ["new", "moved", "mode", "insecure", "secure"]
    );
    assert_eq!(decision.imports[0].generation, 3, "that of the stream");
    assert_eq!(decision.imports[1].known, None, "another source");
    let again = decision.requeue_after.unwrap();
    assert!(
        (Duration::from_mins(3)..=Duration::from_mins(5)).contains(&again),
        "{again:?}"
    );
}

#[test]
fn a_scheduled_tag_is_due_after_the_interval_and_keeps_its_digest_in_mind() {
    let mut facts = facts(
        json!([tag("cli", json!({"importPolicy": {"scheduled": true}}))]),
        json!([imported("cli", json!({}))]),
    );
    facts.now = "2026-01-01T12:05:01Z".parse().unwrap();
    let decision = decide(&facts);
    assert_eq!(names(&decision), ["cli"]);
    assert_eq!(
        decision.imports[0].known.as_deref(),
        Some(sha256(b"cli").as_ref())
    );
}

#[test]
fn a_failed_import_waits_until_its_next_attempt() {
    let status = json!([imported(
        "cli",
        json!({"failures": 2, "nextAttempt": "2026-01-01T12:02:00Z"})
    )]);
    let mut facts = facts(json!([tag("cli", json!({"generation": 9}))]), status);
    let decision = decide(&facts);
    assert_eq!(names(&decision), [""; 0]);
    assert_eq!(decision.requeue_after, Some(Duration::from_mins(2)));
    facts.now = "2026-01-01T12:02:00Z".parse().unwrap();
    assert_eq!(names(&decide(&facts)), ["cli"]);
}

#[test]
fn an_import_that_was_asked_for_happens_once() {
    let mut facts = facts(
        json!([tag("cli", json!({})), tag("other", json!({}))]),
        json!([imported("cli", json!({})), imported("other", json!({}))]),
    );
    let ask = |facts: &mut Facts, text: &str| {
        let stream = Arc::make_mut(&mut facts.stream);
        stream.metadata.annotations = Some([(IMPORT_REQUESTED.to_owned(), text.to_owned())].into());
    };
    ask(&mut facts, r#"{"cli": "2026-01-01T11:59:00Z"}"#);
    assert_eq!(names(&decide(&facts)), ["cli"]);
    ask(&mut facts, r#"{"*": "2026-01-01T11:59:00Z"}"#);
    assert_eq!(names(&decide(&facts)), ["cli", "other"]);
    for done in [r#"{"cli": "2026-01-01T11:49:00Z"}"#, "nonsense"] {
        ask(&mut facts, done);
        assert_eq!(names(&decide(&facts)), [""; 0], "{done}");
    }
}

#[test]
fn a_registry_that_is_left_alone_holds_back_only_its_own_tags() {
    let mut facts = facts(
        json!([
            tag("a", json!({})),
            tag("b", json!({})),
            tag(
                "c",
                json!({"from": {"kind": "DockerImage", "name": "other.example/c:v1"}})
            )
        ]),
        json!([]),
    );
    let one = Allowance {
        imports: 1,
        wait: Duration::from_secs(40),
    };
    let none = Allowance {
        imports: 0,
        wait: Duration::from_secs(70),
    };
    facts.allowances = BTreeMap::from([
        ("reg.example".to_owned(), one),
        ("other.example".to_owned(), none),
    ]);
    let decision = decide(&facts);
    assert_eq!(names(&decision), ["a"]);
    assert_eq!(decision.requeue_after, Some(Duration::from_secs(40)));
}

#[test]
fn where_not_all_may_be_imported_each_tag_has_its_turn() {
    let scheduled = json!({"importPolicy": {"scheduled": true}});
    let all = ["first", "second", "third", "new"];
    let tags: Vec<_> = all.iter().map(|it| tag(it, scheduled.clone())).collect();
    let at = |minute: u32| json!({"attemptedAt": format!("2026-01-01T11:{minute}:00Z")});
    let mut facts = facts(
        json!(tags),
        json!([
            imported("first", at(30)),
            imported("second", at(20)),
            imported("third", at(10)),
        ]),
    );
    let two = Allowance {
        imports: 2,
        wait: Duration::from_secs(40),
    };
    facts.allowances = BTreeMap::from([("reg.example".to_owned(), two)]);
    assert_eq!(names(&decide(&facts)), ["new", "third"]);
}

#[test]
fn a_pass_is_bounded_and_goes_on_at_once() {
    let tags: Vec<_> = (0..80)
        .map(|number| tag(&format!("t{number}"), json!({})))
        .collect();
    let decision = decide(&facts(json!(tags), json!([])));
    assert_eq!(decision.imports.len(), 50);
    assert_eq!(decision.requeue_after, Some(Duration::ZERO));
    let summary = decision.status.summary.unwrap();
    assert_eq!((summary.tags, summary.imports_failing), (80, 0));
}

#[test]
fn deleted_tags_are_forgotten_and_pushed_ones_stay() {
    let mut pushed = imported("pushed", json!({}));
    pushed.as_object_mut().unwrap().remove("import");
    let condition =
        |status: &str| json!([{"type": "ImportSuccess", "status": status, "generation": 1}]);
    let refused = json!({"tag": "refused", "items": [], "conditions": condition("False")});
    let mut followed = pushed.clone();
    followed["tag"] = "followed".into();
    followed["conditions"] = condition("True");
    let decision = decide(&facts(
        json!([]),
        json!([imported("gone", json!({})), pushed, refused, followed]),
    ));
    let left: Vec<_> = decision
        .status
        .tags
        .iter()
        .map(|tag| tag.tag.as_str())
        .collect();
    assert_eq!(left, ["pushed"]);
}

#[test]
fn a_source_that_is_none_is_reported_and_not_asked_for() {
    let decision = decide(&facts(
        json!([tag("bad", json!({"from": {"kind": "DockerImage", "name": "UPPER CASE"}})), {"name": "lost", "from": {"kind": "ImageStreamTag", "name": "x:y"}}]),
        json!([]),
    ));
    assert_eq!(names(&decision), [""; 0]);
    for tag in &decision.status.tags {
        assert!(tag.import_failed(), "{tag:?}");
        assert_eq!(tag.import_condition().unwrap().reason, "InvalidSource");
    }
    assert_eq!(decision.status.summary.unwrap().imports_failing, 2);
}

#[test]
fn a_tag_that_follows_a_name_without_an_image_is_not_failing() {
    let follows =
        |name: &str| json!({"name": "newest", "from": {"kind": "ImageStreamTag", "name": name}});
    for (name, failing) in [("4.21.0", 0), ("gone", 1), ("other:4.21.0", 1)] {
        let decision = decide(&facts(
            json!([{"name": "4.21.0"}, follows(name)]),
            json!([]),
        ));
        let summary = decision.status.summary.unwrap();
        assert_eq!(summary.imports_failing, failing, "{name}");
    }
}

#[test]
fn a_tag_follows_another_stream() {
    let mut facts = facts(
        json!([{"name": "cli", "from": {"kind": "ImageStreamTag", "name": "other:cli"}}]),
        json!([]),
    );
    let image = sha256(b"x").to_string();
    let found = serde_json::from_value(
        json!({"created": "2026-01-01T00:00:00Z", "dockerImageReference": format!("r.example/x@{image}"), "image": image, "generation": 1}),
    );
    facts
        .followed
        .insert("cli".to_owned(), Some(found.unwrap()));
    let decision = decide(&facts);
    let item = &decision.status.tag("cli").unwrap().items[0];
    assert_eq!((item.image.as_str(), item.generation), (image.as_str(), 3));
    let mut again = facts.clone();
    Arc::make_mut(&mut again.stream).status = Some(decision.status.clone());
    again.now = "2026-01-01T13:00:00Z".parse().unwrap();
    assert_eq!(
        decide(&again).status,
        decision.status,
        "nothing changed, nothing is written"
    );
}

#[test]
fn a_stream_of_another_namespace_is_followed_only_if_it_allows_it() {
    let from = json!({"kind": "ImageStreamTag", "name": "secret:cli", "namespace": "other"});
    let mut facts = facts(json!([{"name": "cli", "from": from}]), json!([]));
    let key = neap_kit::key::Key::new("other", "secret");
    facts.closed.insert("cli".to_owned(), key);
    let decision = decide(&facts);
    let tag = decision.status.tag("cli").unwrap();
    let condition = tag.import_condition().unwrap();
    assert_eq!(condition.reason, "ReferenceNotAllowed");
    assert!(condition.message.contains(REFERENCED_BY), "{condition:?}");
    assert!(tag.items.is_empty());
}

#[test]
fn a_tag_whose_name_no_registry_takes_is_refused() {
    let tags = json!([
        tag("d/../..", json!({})),
        tag("\u{1b}[31m", json!({})),
        tag("ok", json!({}))
    ]);
    let mut facts = facts(tags, json!([]));
    for tag in &mut Arc::make_mut(&mut facts.stream).spec.tags {
        let from = tag.from.as_mut().unwrap();
        from.name = "reg.example/ocp/x:v1".to_owned();
    }
    let decision = decide(&facts);
    assert_eq!(names(&decision), ["ok"]);
    for name in ["d/../..", "\u{1b}[31m"] {
        let condition = decision
            .status
            .tag(name)
            .unwrap()
            .import_condition()
            .unwrap();
        assert_eq!(condition.reason, "InvalidTagName");
        assert!(!condition.message.contains('\u{1b}'), "{condition:?}");
    }
}
