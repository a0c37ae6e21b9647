use serde_json::{Value, json};

use super::*;

fn who(own: &Value, all: &Value, default: Option<u32>) -> Result<(u32, u32), String> {
    let container = json!({"name": "main", "securityContext": own});
    let pod = json!({"spec": {"containers": [], "securityContext": all}});
    let (container, pod) = (
        serde_json::from_value(container),
        serde_json::from_value(pod),
    );
    let found = identity(&container.unwrap(), default, &pod.unwrap());
    found.map_err(|wait_reason| wait_reason.message)
}

#[test]
fn a_container_has_the_user_of_its_own_context_or_pod_or_image() {
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
fn an_invalid_user_is_refused() {
    for (own, expected) in [
        (
            json!({"runAsUser": 4_294_967_295_u32}),
            "runAsUser 4294967295 is invalid: it must be between 0 and 4294967294",
        ),
        (json!({"runAsUser": -1}), "runAsUser -1 is invalid"),
        (
            json!({"runAsGroup": 5_000_000_000_i64}),
            "runAsGroup 5000000000 is invalid",
        ),
        (
            json!({"runAsNonRoot": true}),
            "would run as root: give it a runAsUser",
        ),
    ] {
        let refused = who(&own, &json!({}), None).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
}

fn at(mount: Value) -> Result<(PathBuf, Option<PathBuf>), String> {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there");
    std::fs::create_dir(&there).unwrap();
    let volumes = [
        (
            "free".to_owned(),
            VolumePath::free(folder.path().to_owned()),
        ),
        (
            "files".to_owned(),
            VolumePath::written(folder.path().to_owned()),
        ),
    ];
    let (images, given) = (Images::default(), BTreeMap::new());
    let inputs = ContainerInputs {
        images: &images,
        namespaces: true,
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
    let placed = volume_mount(
        &serde_json::from_value(mount).unwrap(),
        &environment,
        &inputs,
    );
    let within = |path: PathBuf| path.strip_prefix(folder.path()).unwrap().to_owned();
    let placed = placed.map_err(|wait_reason| wait_reason.message);
    placed.map(|(mount, new)| (within(mount.from), new.map(within)))
}

#[test]
fn a_sub_path_is_inside_its_volume_and_created_where_possible() {
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
    for (mount, expected) in [
        (
            json!({"name": "files", "subPath": "new"}),
            "volume \"files\" has no new",
        ),
        (
            json!({"name": "free", "subPath": "/etc"}),
            "is outside of volume",
        ),
        (
            json!({"name": "free", "subPathExpr": "a/$(UP)/$(UP)"}),
            "is outside of volume",
        ),
        (json!({"name": "none"}), "the pod has no volume \"none\""),
    ] {
        let refused = at(mount).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn a_program_in_tmp_is_mounted() {
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
