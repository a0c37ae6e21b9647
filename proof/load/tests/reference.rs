//! The reference control plane itself: it starts, accepts its users, and restarts with its objects.

use std::env;

use http::Method;
use neap_load::reference::{ReferenceOptions, Token};

#[tokio::test]
async fn a_folder_that_was_used_has_its_objects_when_it_is_started_again() {
    let program = env::var_os("NEAP_REFERENCE").expect("NEAP_REFERENCE names the program");
    let folder = tempfile::tempdir().unwrap();
    let mut plan = ReferenceOptions::new(program);
    plan.folder = Some(folder.path().to_owned());
    plan.durable = true;
    plan.tokens.push(Token::new("alice", &["devs"]));

    let path = "/api/v1/namespaces/default/configmaps";
    let first = plan.start().await.unwrap();
    assert!(first.resident_bytes().unwrap() > 1 << 20);
    let ids: Vec<u32> = first.processes().map(|(_, id)| id).collect();
    assert_eq!(ids.len(), 2);
    let mut connection = first.client().unwrap().connect().await.unwrap();
    let body = r#"{"metadata":{"name":"kept"}}"#;
    let made = connection.send(Method::POST, path, body).await.unwrap();
    made.success().unwrap();
    drop(first);

    let second = plan.start().await.unwrap();
    let mut connection = second.client().unwrap().connect().await.unwrap();
    let path = format!("{path}/kept");
    let found = connection.send(Method::GET, &path, "").await.unwrap();
    found.success().unwrap();
}
