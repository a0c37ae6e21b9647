//! O13: nobody tells what is secret.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, ResourceExt};
use neap_kit::{apply::Error, event::Note, key::Key};
use neap_trial::judge::Oracle;
use serde_json::json;

use crate::toy::{MINUTE, Toy, judged, map, said, typed, workload};

/// What every run has in a Secret.
async fn password(toy: &Toy) -> String {
    let secrets: Api<Secret> = Api::namespaced(toy.site.client.clone(), "default");
    let secret = secrets.get("canary").await.unwrap();
    String::from_utf8(secret.data.unwrap()["password"].0.clone()).unwrap()
}

/// Reads it, and keeps it to itself.
fn discreet(toy: Toy, _: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        let length = password(&toy).await.len();
        tracing::info!(length, "read the password");
        Ok(())
    }
    .boxed()
}

fn logs(toy: Toy, _: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        let answer = json!({"password": password(&toy).await});
        tracing::trace!(%answer, "read");
        Ok(())
    }
    .boxed()
}

/// Writes it down in base64, as part of something longer.
fn copies(toy: Toy, _: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        if toy.maps.get(&Key::new("default", "copy")).is_some() {
            return Ok(());
        }
        let secret: k8s_openapi::ByteString =
            k8s_openapi::ByteString(format!("admin:{}", password(&toy).await).into_bytes());
        let mut copy = map("copy");
        copy["data"] = json!({"authorization": secret});
        toy.hand.create(&typed(copy)).await.map(drop)
    }
    .boxed()
}

/// Asks for something with the password in its name, and fails with words about it.
fn fails(toy: Toy, _: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        let password = password(&toy).await;
        Err(Error::Replaced(Key::new("default", password.as_str())))
    }
    .boxed()
}

fn panics(toy: Toy, toys: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        let password = password(&toy).await;
        assert_eq!(password, toys.name_any());
        Ok(())
    }
    .boxed()
}

fn tells(toy: Toy, toys: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        let note = Note::normal("Read", format!("the password is {}", password(&toy).await));
        toy.site.recorder("toy").tell(&*toys, &note).await;
        Ok(())
    }
    .boxed()
}

#[test]
fn whoever_keeps_a_secret_is_not_spoken_of() {
    assert_eq!(judged(&workload(discreet, MINUTE), ""), []);
}

#[test]
fn whoever_tells_one_is_found_out() {
    for (look, what) in [
        (logs as crate::toy::Look, "a log line shows"),
        (copies, "/configmaps/default/copy shows"),
        (fails, "a log line shows"),
        (panics, "a panic shows"),
        (tells, "/events/default/toy."),
    ] {
        let found = judged(&workload(look, MINUTE), "");
        let said = said(&found, Oracle::Secret);
        assert!(
            said.iter().any(|said| said.contains(what)),
            "{what}: {found:#?}"
        );
    }
}
