//! What is wrong is named with the image and the reason, by a code, and nothing is left under the tag.

use std::path::Path;

use http::{Method, StatusCode};
use neap_emulators::{
    fault_book::CallMatcher,
    registry::{Access, User},
};
use neap_kit::client::{Fault, Refusal};

use super::{assemble, components, neap, registries::TestRegistry, succeed};

/// Runs a command that must fail; its exit code and what it says.
fn refused(home: &Path, args: &[&str]) -> (i32, String) {
    let output = neap(home, args);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{args:?} succeeded");
    (output.status.code().unwrap(), stderr)
}

/// Asserts that a message has all these parts.
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_a_registry_have_codes_that_say_what_to_do() {
    let users = vec![User::new("reader", "word").pulls("open/*")];
    let closed = TestRegistry::ours(Access::Basic(users)).await;
    let open = TestRegistry::ours(Access::Open).await;
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let image = format!("{}/ocp/release:v1", closed.address);
    let (_, text) = refused(home, &["info", &image]);
    assert_says(&text, &["NT-RELEASE-0102", &image, "--registry-config"]);
    let auths =
        serde_json::json!({"auths": {&closed.address: {"username": "reader", "password": "word"}}});
    let file = home.join("auth.json");
    std::fs::write(&file, auths.to_string()).unwrap();
    let file = file.display().to_string();
    let (_, text) = refused(home, &["info", "-a", &file, &image]);
    assert_says(&text, &["NT-RELEASE-0102", &image, "do not allow"]);
    let image = format!("{}/ocp/release:v1", open.address);
    let (_, text) = refused(home, &["info", &image]);
    assert_says(&text, &["NT-RELEASE-0103", &image, "does not exist"]);
    let image = format!("{}/sample/cli:v1", open.address);
    let (_, text) = refused(home, &["info", &image]);
    assert_says(&text, &["NT-RELEASE-0105", &image, "not a payload"]);
    let (_, text) = refused(home, &["info", "UPPER:case:twice"]);
    assert_says(&text, &["NT-RELEASE-0101", "UPPER:case:twice"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_limits_or_fails_for_a_moment_is_asked_again() {
    let registry = TestRegistry::ours(Access::Open).await;
    let home = tempfile::tempdir().unwrap();
    let faults = registry.ours.as_ref().unwrap().faults();
    let limited = Refusal {
        status: StatusCode::TOO_MANY_REQUESTS,
        retry_after: Some(1),
    };
    let manifests = || CallMatcher::path("/v2/sample/*/manifests/*").method(Method::GET);
    faults.inject(manifests().times(1), Fault::Refused(limited));
    let failing = Refusal::of(StatusCode::SERVICE_UNAVAILABLE);
    faults.inject(manifests().times(1), Fault::Refused(failing));
    faults.inject(manifests().times(1), Fault::AnswerLost);
    assemble(home.path(), &registry.address, "v1");
    assert_eq!(faults.unused(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_under_the_tag_after_a_push_that_failed() {
    let registry = TestRegistry::ours(Access::Open).await;
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let before = assemble(home, &registry.address, "v1");
    let faults = registry.ours.as_ref().unwrap().faults();
    let manifests = CallMatcher::path("/v2/made/release/manifests/*").method(Method::PUT);
    faults.inject(
        manifests.times(1),
        Fault::Refused(Refusal::of(StatusCode::FORBIDDEN)),
    );
    let images = components(&registry.address);
    let target = format!("{}/made/release:v1", registry.address);
    let mut args = vec!["assemble", "--name", "4.99.1", "--to-image", &target];
    args.extend(images.iter().map(String::as_str));
    let (_, text) = refused(home, &args);
    assert_says(&text, &["NT-RELEASE-0102", &target]);
    let digests = succeed(home, &["info", &target]);
    let digest = before.split(' ').next().unwrap();
    assert!(digests.contains(digest), "the tag stands for what it did");
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_of_a_payload_are_refused_by_name_and_nothing_is_pushed() {
    let registry = TestRegistry::ours(Access::Open).await;
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let images = components(&registry.address);
    let target = format!("{}/made/release:v1", registry.address);
    let attempt = |more: &[&str], without: &str| {
        let mut args = vec!["assemble", "--name", "4.99.0", "--to-image", &target];
        let kept = images
            .iter()
            .filter(|it| !it.starts_with(without) || without.is_empty());
        args.extend(kept.map(String::as_str));
        args.extend_from_slice(more);
        refused(home, &args).1
    };
    let twice = format!("cli={}/sample/web-operator:v1", registry.address);
    assert_says(&attempt(&[&twice], ""), &["component cli is mapped twice"]);
    let missing = format!("extra={}/sample/nothing:v1", registry.address);
    assert_says(
        &attempt(&[&missing], ""),
        &["component extra", "sample/nothing:v1"],
    );
    assert_says(&attempt(&[], "cli="), &["web-operator", "\"cli\""]);
    assert_says(
        &attempt(&[], "cluster-version"),
        &["cluster-version-operator", "--to-image-base"],
    );
    assert_says(&attempt(&["x"], ""), &["COMPONENT=PULLSPEC"]);
    assert_says(&attempt(&["--metadata", "[1]"], ""), &["--metadata"]);
    assert_says(
        &attempt(&["--previous", "four"], ""),
        &["--previous", "four"],
    );
    let (_, text) = refused(home, &["info", &target]);
    assert_says(&text, &["NT-RELEASE-0103"]);
}
