use serde_json::{Value, json};

use super::*;

fn table(text: &str) -> Images {
    let builtin = Images::builtin(Path::new("/bin/neap"));
    builtin.preceded_by(text).unwrap()
}

const TABLE: &str = r#"
[[image]]
name = "web:2"
command = ["/two"]

[[image]]
name = "web"
command = ["/one", "--listen"]
args = ["$(POD_IP):80"]

[[image]]
name = "registry.example:5000/team/app"
command = ["/app"]
"#;

#[test]
fn an_image_is_found_by_its_most_specific_name() {
    let images = table(TABLE);
    for (reference, program) in [
        ("web:2", Some("/two")),
        ("web:3", Some("/one")),
        ("web", Some("/one")),
        ("docker.io/library/web:9@sha256:abc", Some("/one")),
        ("registry.example:5000/team/app:v1", Some("/app")),
        ("registry.example:5000/team/app", Some("/app")),
        ("busybox:1.36", Some("/bin/sh")),
        ("neaptide/neap:1", Some("/bin/neap")),
        ("other.example/web", None),
    ] {
        let found = images
            .find(reference)
            .and_then(|image| image.command.iter().chain(&image.args).next())
            .map(String::as_str);
        assert_eq!(found, program, "{reference}");
    }
}

#[test]
fn a_container_may_override_the_command() {
    let images = table(TABLE);
    let values = BTreeMap::from([("POD_IP".to_owned(), "127.1.1.2".to_owned())]);
    let run = |container: Value| {
        let mut container = container;
        container["name"] = "main".into();
        images.command(&serde_json::from_value(container).unwrap(), &values)
    };
    for (container, expected) in [
        (
            json!({"image": "web"}),
            vec!["/one", "--listen", "127.1.1.2:80"],
        ),
        (
            json!({"image": "web", "args": ["x"]}),
            vec!["/one", "--listen", "x"],
        ),
        (json!({"image": "web", "command": ["/c"]}), vec!["/c"]),
        (
            json!({"image": "web", "command": ["/c"], "args": ["$(POD_IP)"]}),
            vec!["/c", "127.1.1.2"],
        ),
    ] {
        assert_eq!(run(container.clone()).unwrap(), expected, "{container}");
    }
    let unknown = run(json!({"image": "registry.example/shop:1"})).unwrap_err();
    assert_eq!(unknown.reason, "ErrImageNeverPull");
    assert!(
        unknown.message.contains("name = \"registry.example/shop\""),
        "{}",
        unknown.message
    );
}

#[test]
fn an_invalid_table_is_refused_with_the_line() {
    let text = "[[image]]\nname = \"a\"\ncomand = []\n";
    let cause = Images::default().preceded_by(text).unwrap_err().to_string();
    assert!(
        cause.contains("line 3") && cause.contains("comand"),
        "{cause}"
    );
}

#[test]
fn a_missing_folder_or_program_is_named_before_the_container_starts() {
    let folder = tempfile::tempdir().unwrap();
    let (here, gone) = (folder.path().to_owned(), folder.path().join("gone"));
    let refused = |image: &Image, command: &str, mounts: &[Mount]| {
        let command = [command.to_owned()];
        let refused = image.must_exist("shop/cart:1", &command, mounts);
        refused.err().map(|reason| reason.message)
    };
    let image = |folder: &Path, program: &Path| Image {
        command: vec![program.display().to_string()],
        folder: Some(folder.to_owned()),
        ..Image::default()
    };
    let shell = Path::new("/bin/sh");
    assert_eq!(refused(&image(&here, shell), "/bin/sh", &[]), None);
    let message = refused(&image(&gone, shell), "/bin/sh", &[]).unwrap();
    let expected = format!(
        "the folder {} of image \"shop/cart:1\" does not",
        gone.display()
    );
    assert!(message.starts_with(&expected), "{message}");
    let missing = image(&here, &gone);
    let message = refused(&missing, &gone.display().to_string(), &[]).unwrap();
    assert!(message.starts_with("the program "), "{message}");
    assert_eq!(
        refused(&missing, "/bin/sh", &[]),
        None,
        "the container has its own"
    );
    let volume = Mount::new(here.clone(), here.clone());
    assert_eq!(refused(&image(&gone, shell), "/bin/sh", &[volume]), None);
}

#[test]
fn the_table_in_the_documentation_is_valid() {
    let page = include_str!("../../../../../docs/platform/node.md");
    let (_, from_table) = page.split_once("```toml\n").unwrap();
    let (table, _) = from_table.split_once("```").unwrap();
    let images = self::table(table);
    let cart = images.find("shop/cart:7").unwrap();
    assert_eq!(cart.command, ["/opt/shop/cart"]);
    let postgres = images.find("docker.io/library/postgres:17").unwrap();
    assert_eq!(postgres.user, Some(999));
}
