use serde_json::{Value, json};

use super::*;

fn who(own: &Value, all: &Value, usual: Option<u32>) -> Result<(u32, u32), String> {
    let container = json!({"name": "main", "securityContext": own});
    let pod = json!({"spec": {"containers": [], "securityContext": all}});
    let (container, pod) = (
        serde_json::from_value(container),
        serde_json::from_value(pod),
    );
    let found = identity(&container.unwrap(), usual, &pod.unwrap());
    found.map_err(|obstacle| obstacle.message)
}

#[test]
fn a_container_runs_as_whom_it_says_or_its_pod_or_its_image() {
    let none = &json!({});
    assert_eq!(who(none, none, None), Ok((0, 0)));
    assert_eq!(who(none, none, Some(70)), Ok((70, 70)));
    let all = json!({"runAsUser": 1000, "runAsGroup": 2000});
    assert_eq!(who(none, &all, Some(70)), Ok((1000, 2000)));
    assert_eq!(who(&json!({"runAsUser": 5}), &all, None), Ok((5, 2000)));
    assert_eq!(
        who(&json!({"runAsNonRoot": true}), none, Some(70)),
        Ok((70, 70))
    );
}

#[test]
fn an_impossible_user_is_refused_in_words() {
    for (own, words) in [
        (
            json!({"runAsUser": 4_294_967_295_u32}),
            "runAsUser 4294967295 cannot be: it must lie between 0 and 4294967294",
        ),
        (json!({"runAsUser": -1}), "runAsUser -1 cannot be"),
        (
            json!({"runAsGroup": 5_000_000_000_i64}),
            "runAsGroup 5000000000 cannot be",
        ),
        (
            json!({"runAsNonRoot": true}),
            "would run as root: give it a runAsUser",
        ),
    ] {
        let refused = who(&own, &json!({}), None).unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
}

fn at(mount: Value) -> Result<(PathBuf, Option<PathBuf>), String> {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there");
    std::fs::create_dir(&there).unwrap();
    let volumes = [
        ("free".to_owned(), Place::free(folder.path().to_owned())),
        ("files".to_owned(), Place::written(folder.path().to_owned())),
    ];
    let (images, given) = (Images::default(), BTreeMap::new());
    let kitchen = Kitchen {
        images: &images,
        rooms: true,
        own_proc: true,
        as_root: true,
        given: &given,
        volumes: &volumes.into(),
        hosts: Path::new("/hosts"),
        host_name: Path::new("/hostname"),
        folder: Path::new("/container"),
    };
    let environment = BTreeMap::from([
        ("NAME".to_owned(), "there".to_owned()),
        ("UP".to_owned(), "..".to_owned()),
    ]);
    let mut mount = mount;
    mount["mountPath"] = "/at".into();
    let placed = placed(
        &serde_json::from_value(mount).unwrap(),
        &environment,
        &kitchen,
    );
    let within = |path: PathBuf| path.strip_prefix(folder.path()).unwrap().to_owned();
    let placed = placed.map_err(|obstacle| obstacle.message);
    placed.map(|(mount, new)| (within(mount.from), new.map(within)))
}

#[test]
fn a_part_of_a_volume_lies_in_it_and_is_made_where_that_may_be() {
    let path = PathBuf::from;
    assert_eq!(at(json!({"name": "free"})), Ok((path(""), None)));
    assert_eq!(
        at(json!({"name": "free", "subPath": "there"})),
        Ok((path("there"), None))
    );
    assert_eq!(
        at(json!({"name": "free", "subPathExpr": "$(NAME)"})),
        Ok((path("there"), None))
    );
    let new = at(json!({"name": "free", "subPath": "new"}));
    assert_eq!(new, Ok((path("new"), Some(path("new")))));
    for (mount, words) in [
        (
            json!({"name": "files", "subPath": "new"}),
            "volume \"files\" has no new",
        ),
        (
            json!({"name": "free", "subPath": "/etc"}),
            "does not lie in volume",
        ),
        (
            json!({"name": "free", "subPathExpr": "a/$(UP)/$(UP)"}),
            "does not lie in volume",
        ),
        (json!({"name": "none"}), "the pod has no volume \"none\""),
    ] {
        let refused = at(mount).unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn a_program_among_temporary_files_is_brought_along() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let own = folder.path().join("server");
    let command = |path: &Path| vec![path.display().to_string(), "--port=1".to_owned()];
    assert_eq!(program(&command(&own)), None);
    std::fs::write(&own, "").unwrap();
    let brought = program(&command(&own)).unwrap();
    assert_eq!((brought.from, brought.to), (own.clone(), own));
    assert_eq!(program(&command(Path::new("/bin/sh"))), None);
    assert_eq!(program(&["sh".to_owned()]), None);
    assert_eq!(program(&[]), None);
}
