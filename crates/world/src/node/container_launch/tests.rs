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
    std::os::unix::fs::symlink("/etc", folder.path().join("link")).unwrap();
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
        restricted: false,
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
    let part = |mount: Mount| mount.from.join(mount.part.unwrap_or_default());
    placed.map(|(mount, new)| (within(part(mount)), new.map(|new| new.part)))
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
        (
            json!({"name": "free", "subPath": "link"}),
            "subPath link of volume \"free\": a symbolic link leads out of it",
        ),
        (
            json!({"name": "free", "subPath": "link/new"}),
            "a symbolic link leads out of it",
        ),
        (json!({"name": "none"}), "the pod has no volume \"none\""),
    ] {
        let refused = at(mount).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn what_an_image_names_in_tmp_is_mounted() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let path = |name: &str| folder.path().join(name);
    let named = |name: &str| path(name).display().to_string();
    std::fs::create_dir(path("work")).unwrap();
    for file in ["server", "settings", "work/inside"] {
        std::fs::write(path(file), "").unwrap();
    }
    let image = Image {
        command: vec!["/bin/sh".into(), named("server"), "--port=1".into()],
        args: vec![named("settings"), named("work/inside"), named("none")],
        folder: Some(path("work")),
        ..Image::default()
    };
    let mounted = |image: &Image| -> Vec<(PathBuf, PathBuf, bool)> {
        let all = hidden_files(image).into_iter();
        all.map(|mount| (mount.from, mount.to, mount.read_only))
            .collect()
    };
    let at = |name: &str, read_only| (path(name), path(name), read_only);
    let expected = [at("work", false), at("server", true), at("settings", true)];
    assert_eq!(mounted(&image), expected);
    let elsewhere = Image {
        command: vec!["sh".into(), "/tmp".into(), format!("{}/..", named("work"))],
        folder: Some("/usr".into()),
        ..Image::default()
    };
    assert_eq!(mounted(&elsewhere), []);
}
