//! The examples of `docs/platform/in-your-tests.md`, which are these files.

mod first;
mod socket;

#[test]
fn the_page_shows_the_examples() {
    let page = include_str!("../../../../docs/platform/in-your-tests.md");
    for (name, example) in [
        ("first", include_str!("in_your_tests/first.rs")),
        ("socket", include_str!("in_your_tests/socket.rs")),
    ] {
        let block = format!("```rust\n{example}```\n");
        assert!(page.contains(&block), "the page does not show {name}.rs");
    }
}

#[test]
fn the_page_names_the_versions_of_the_workspace() {
    let page = include_str!("../../../../docs/platform/in-your-tests.md");
    let workspace = include_str!("../../../../Cargo.toml");
    for package in ["kube", "k8s-openapi", "rcgen", "rustls"] {
        let version = |text: &str| {
            let line = text.lines().find(|line| {
                let name = line.split(['=', ' ']).next();
                name == Some(package)
            });
            let line = line.unwrap_or_else(|| panic!("{package} is not named"));
            line.split('"').nth(1).unwrap().to_owned()
        };
        assert_eq!(version(page), version(workspace), "{package}");
    }
}
