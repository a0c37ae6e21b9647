//! Writes that a concurrent write overtakes between reading and writing.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota, Secret};
use kube::{
    Api, Client, Error,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use neap_pocket::{
    Options, Pocket,
    environment::Environment,
    status::ApiError,
    store::{Access, Hooks},
};
use serde_json::{Value, json};

/// Once, before the first write to `x`, merges a patch into it; creates it if it is missing.
struct Overtake {
    maps: Api<ConfigMap>,
    done: AtomicBool,
}

impl Hooks for Overtake {
    fn before_write<'a>(
        &'a self,
        access: Access<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<(), ApiError>> + Send + 'a>> {
        Box::pin(async move {
            if access.path != "default/x" || self.done.swap(true, Ordering::Relaxed) {
                return Ok(());
            }
            let params = PatchParams::default();
            let patch = Patch::Merge(json!({"data": {"theirs": "1"}}));
            if self.maps.patch("x", &params, &patch).await.is_err() {
                let map = map(&json!({"theirs": "1"}));
                let created = self.maps.create(&PostParams::default(), &map).await;
                assert!(created.is_ok(), "{created:?}");
            }
            Ok(())
        })
    }
}

fn map(data: &Value) -> ConfigMap {
    let map = json!({"metadata": {"name": "x"}, "data": data});
    serde_json::from_value(map).expect("a config map")
}

/// The maps without interference, and as seen by a client that is overtaken once.
async fn maps() -> (Api<ConfigMap>, Api<ConfigMap>) {
    let options = Options::new(Environment::simulated(3));
    let pocket = Pocket::open(options).await.expect("a server in memory");
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::new(pocket.service(), "default"));
    let hooks = Overtake {
        maps: maps.clone(),
        done: AtomicBool::new(false),
    };
    let view = pocket.view(Some(Arc::new(hooks)));
    let slow = Client::new(pocket.service_over(view), "default");
    (maps, Api::default_namespaced(slow))
}

async fn with_x() -> (Api<ConfigMap>, Api<ConfigMap>, ConfigMap) {
    let (maps, slow) = maps().await;
    let made = maps
        .create(&PostParams::default(), &map(&json!({"a": "1"})))
        .await
        .expect("created");
    (maps, slow, made)
}

fn data(map: &ConfigMap) -> Value {
    json!(map.data)
}

#[expect(
    clippy::panic,
    reason = "what the tests share fails the test that asked"
)]
fn code<T>(result: Result<T, Error>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(Error::Api(status)) => status.code,
        Err(other) => panic!("no answer of the server: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_is_applied_again_to_the_newer_state() {
    for patch in [
        Patch::Merge(json!({"data": {"mine": "2"}})),
        Patch::Strategic(json!({"data": {"mine": "2"}})),
        Patch::Json::<Value>(
            serde_json::from_value(json!([{"op": "add", "path": "/data/mine", "value": "2"}]))
                .expect("a patch"),
        ),
    ] {
        let (_, slow, _) = with_x().await;
        let patched = slow.patch("x", &PatchParams::default(), &patch).await;
        assert_eq!(
            data(&patched.expect("patched")),
            json!({"a": "1", "mine": "2", "theirs": "1"}),
            "{patch:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_names_its_state_is_refused() {
    let (_, slow, made) = with_x().await;
    let revision = made.metadata.resource_version;
    let patch =
        Patch::Merge(json!({"metadata": {"resourceVersion": revision}, "data": {"mine": "2"}}));
    assert_eq!(
        code(slow.patch("x", &PatchParams::default(), &patch).await),
        409
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_that_names_no_state_wins_and_one_that_does_is_refused() {
    let (_, slow, _) = with_x().await;
    let wanted = map(&json!({"mine": "2"}));
    let written = slow.replace("x", &PostParams::default(), &wanted).await;
    assert_eq!(data(&written.expect("replaced")), json!({"mine": "2"}));

    let (_, slow, made) = with_x().await;
    let written = slow.replace("x", &PostParams::default(), &made).await;
    // It changes nothing of the state it names, so there is nothing to overtake.
    assert_eq!(code(written), 200);
    let mut changed = made;
    changed.data.get_or_insert_default().clear();
    let written = slow.replace("x", &PostParams::default(), &changed).await;
    assert_eq!(code(written), 409);
}

#[tokio::test(start_paused = true)]
async fn an_apply_goes_on_over_what_was_created_meanwhile() {
    let (maps, slow) = maps().await;
    let params = PatchParams::apply("me");
    let config = |value: &str| {
        Patch::Apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"},
            "data": {"mine": "2", "theirs": value},
        }))
    };
    let applied = slow.patch("x", &params, &config("1")).await;
    assert_eq!(
        data(&applied.expect("applied")),
        json!({"mine": "2", "theirs": "1"})
    );
    let conflict = maps
        .patch("x", &PatchParams::apply("you"), &config("3"))
        .await;
    assert_eq!(code(conflict), 409);
}

#[tokio::test(start_paused = true)]
async fn a_delete_holds_for_the_newer_state_unless_it_names_one() {
    let (maps, slow, made) = with_x().await;
    let named = DeleteParams {
        preconditions: Some(Preconditions {
            resource_version: made.metadata.resource_version.clone(),
            uid: None,
        }),
        ..DeleteParams::default()
    };
    assert_eq!(code(slow.delete("x", &named).await), 409);
    assert!(maps.get_opt("x").await.expect("read").is_some());

    let (maps, slow, _) = with_x().await;
    assert_eq!(code(slow.delete("x", &DeleteParams::default()).await), 200);
    assert!(maps.get_opt("x").await.expect("read").is_none());
}

/// Before the first write to the quota `q`, changes its status. Counts the writes.
struct Note {
    quotas: Api<ResourceQuota>,
    writes: AtomicUsize,
}

impl Hooks for Note {
    fn before_write<'a>(
        &'a self,
        access: Access<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<(), ApiError>> + Send + 'a>> {
        Box::pin(async move {
            if access.path == "default/q" && self.writes.fetch_add(1, Ordering::Relaxed) == 0 {
                let other = Patch::Merge(json!({"status": {"used": {"pods": "7"}}}));
                let params = PatchParams::default();
                let changed = self.quotas.patch_status("q", &params, &other).await;
                assert!(changed.is_ok(), "{changed:?}");
            }
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_is_charged_again_to_a_quota_that_was_changed() {
    let options = Options::new(Environment::simulated(3));
    let pocket = Pocket::open(options).await.expect("a server in memory");
    let quotas: Api<ResourceQuota> =
        Api::default_namespaced(Client::new(pocket.service(), "default"));
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "5"}}});
    let quota = serde_json::from_value(quota).expect("a quota");
    let made = quotas.create(&PostParams::default(), &quota).await;
    assert!(made.is_ok(), "{made:?}");
    let hooks = Arc::new(Note {
        quotas,
        writes: AtomicUsize::new(0),
    });
    let view = pocket.view(Some(hooks.clone()));
    let slow = Client::new(pocket.service_over(view), "default");
    let secrets: Api<Secret> = Api::default_namespaced(slow);
    let secret = json!({"metadata": {"name": "s"}});
    let secret = serde_json::from_value(secret).expect("a secret");
    let made = secrets.create(&PostParams::default(), &secret).await;
    assert_eq!(code(made), 200);
    assert_eq!(hooks.writes.load(Ordering::Relaxed), 2);
}

/// Removes a pod as soon as it is terminating, as a kubelet does.
struct Sweep(Api<Pod>);

impl Hooks for Sweep {
    fn after_write<'a>(
        &'a self,
        access: Access<'a>,
        _revision: u64,
    ) -> Pin<Box<dyn Future<Output = Result<(), ApiError>> + Send + 'a>> {
        Box::pin(async move {
            if access.path == "default/done" {
                let at_once = DeleteParams::default().grace_period(0);
                let swept = self.0.delete("done", &at_once).await;
                assert!(swept.is_ok(), "{swept:?}");
            }
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_a_concurrent_delete_completes_succeeds() {
    let options = Options::new(Environment::simulated(3));
    let pocket = Pocket::open(options).await.expect("a server in memory");
    let pods: Api<Pod> = Api::default_namespaced(Client::new(pocket.service(), "default"));
    let pod = json!({
        "metadata": {"name": "done"},
        "spec": {"containers": [{"name": "main", "image": "app"}]},
    });
    let pod = serde_json::from_value(pod).expect("a pod");
    let made = pods.create(&PostParams::default(), &pod).await;
    let uid = made.expect("created").metadata.uid;
    let view = pocket.view(Some(Arc::new(Sweep(pods.clone()))));
    let slow: Api<Pod> = Api::default_namespaced(Client::new(pocket.service_over(view), "default"));
    // A pod without a node is marked and removed at once: two writes.
    let deleted = slow.delete("done", &DeleteParams::default()).await;
    let last = deleted.expect("deleted").left().expect("its last state");
    assert_eq!(last.metadata.uid, uid);
    assert_eq!(code(pods.get("done").await), 404);
}
