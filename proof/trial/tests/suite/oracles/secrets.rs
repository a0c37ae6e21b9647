//! O13: no secret is disclosed.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, ResourceExt};
use neap_kit::{apply::Error, event::EventDraft, key::Key};
use neap_trial::judge::Oracle;
use serde_json::json;

use crate::toy::{MINUTE, Toy, judged, map, texts, typed, workload};

/// The value of the Secret of every run.
async fn password(toy: &Toy) -> String {
    let secrets: Api<Secret> = Api::namespaced(toy.context.client.clone(), "default");
    let secret = secrets.get("canary").await.unwrap();
    String::from_utf8(secret.data.unwrap()["password"].0.clone()).unwrap()
}

/// Reads the Secret without disclosing it.
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

/// Stores it in base64, as part of a longer text.
fn copies(toy: Toy, _: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        if toy.maps.get(&Key::new("default", "copy")).is_some() {
            return Ok(());
        }
        let secret: k8s_openapi::ByteString =
            k8s_openapi::ByteString(format!("admin:{}", password(&toy).await).into_bytes());
        let mut copy = map("copy");
        copy["data"] = json!({"authorization": secret});
        toy.writer.create(&typed(copy)).await.map(drop)
    }
    .boxed()
}

/// Fails with an error that contains the password as an object's name.
fn fails(toy: Toy, _: Arc<ConfigMap>) -> BoxFuture<'static, Result<(), Error>> {
    async move {
        let password = password(&toy).await;
        Err(Error::Conflict(Key::new("default", password.as_str())))
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
        let note = EventDraft::normal("Read", format!("the password is {}", password(&toy).await));
        toy.context
            .event_recorder("toy")
            .record(&*toys, &note)
            .await;
        Ok(())
    }
    .boxed()
}

#[test]
fn a_controller_that_keeps_a_secret_passes() {
    assert_eq!(judged(&workload(discreet, MINUTE), ""), []);
}

#[test]
fn a_controller_that_discloses_a_secret_is_reported() {
    for (reconcile_toy, what) in [
        (logs as crate::toy::ReconcileToy, "a log line shows"),
        (copies, "/configmaps/default/copy shows"),
        (fails, "a log line shows"),
        (panics, "a panic shows"),
        (tells, "/events/default/toy."),
    ] {
        let found = judged(&workload(reconcile_toy, MINUTE), "");
        let texts = texts(&found, Oracle::Secret);
        assert!(
            texts.iter().any(|texts| texts.contains(what)),
            "{what}: {found:#?}"
        );
    }
}
