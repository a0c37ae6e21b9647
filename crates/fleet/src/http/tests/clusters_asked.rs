//! What the provider asks of clusters and of Hive when it answers.

use std::{convert::Infallible, sync::Arc};

use axum::http::{Request, Response};
use futures::{FutureExt, future::BoxFuture};
use kube::{Client, client::Body};
use neap_store::{Commit, Store};
use tower::service_fn;

use super::*;
use crate::{
    cluster_api::{ApiError, ClusterApi, ClusterConnector},
    documents::{set, unique_keys},
    enrichment::{Asker, Enrichment},
    fixtures,
    install::Hive,
};

/// A Kubernetes API that has these objects, by path.
fn api(objects: &'static [(&'static str, &'static str)], clock: Clock) -> ClusterApi {
    let service = service_fn(move |request: Request<Body>| async move {
        let path = request.uri().path().to_owned();
        let found = objects.iter().find(|(at, _)| *at == path);
        let missing = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}"#;
        let (status, text) = found.map_or((404, missing), |(_, text)| (200, *text));
        let response = Response::builder().status(status);
        let body = Body::from(text.as_bytes().to_vec());
        Ok::<_, Infallible>(response.body(body).unwrap())
    });
    ClusterApi::new(Client::new(service, "default"), clock)
}

/// Leads to a cluster whose kubeconfig is the word "blue", and to no other.
#[derive(Debug)]
struct OneCluster;

const CLUSTER: &[(&str, &str)] = &[
    (
        "/apis/config.openshift.io/v1/clusterversions/version",
        r#"{"metadata":{"name":"version"},"status":{"desired":{"version":"4.19.12"}}}"#,
    ),
    (
        "/apis/machine.openshift.io/v1beta1/namespaces/openshift-machine-api/machinesets",
        r#"{"metadata":{},"items":[{"metadata":{"name":"blue-worker-1"},"spec":{"replicas":4,"template":{"spec":{"providerSpec":{"value":{"vmSize":"Standard_D4s_v3","osDisk":{"diskSizeGB":256}}}}}}}]}"#,
    ),
    (
        "/api/v1/namespaces/openshift-ingress/services/router-default",
        r#"{"metadata":{"name":"router-default"},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.7"}]}}}"#,
    ),
];

impl ClusterConnector for OneCluster {
    fn connect<'a>(
        &'a self,
        kubeconfig: &'a str,
        clock: Clock,
    ) -> BoxFuture<'a, Result<ClusterApi, ApiError>> {
        async move {
            if kubeconfig == "blue" {
                Ok(api(CLUSTER, clock))
            } else {
                Err(ApiError::Kubeconfig("it leads nowhere".to_owned()))
            }
        }
        .boxed()
    }
}

/// Ends the creation of a cluster, with these properties.
async fn install(store: &Store, name: &str, properties: &[(&str, &str)]) {
    let key = cluster_key(&id(name));
    let document = store.get(Scope::Everywhere, &key).await.unwrap().unwrap();
    let mut body = document.body.clone();
    body["asyncOperationId"] = "".into();
    for (pointer, value) in [("/provisioningState", "Succeeded")]
        .iter()
        .chain(properties)
    {
        set(
            &mut body["openShiftCluster"]["properties"],
            pointer,
            (*value).into(),
        );
    }
    let write = Write::Put {
        key,
        precondition: Precondition::Etag(document.etag),
        unique: unique_keys(&body),
        body,
        ttl: None,
        queue: QueueChange::Done,
    };
    store.commit(Commit::default().with(write)).await.unwrap();
}

async fn with_clusters(is_on: bool) -> Provider {
    let clock = Clock::system();
    let store = fixtures::store(clock);
    let asker = Asker {
        store: store.clone(),
        connector: Arc::new(OneCluster),
        clock,
    };
    let enrichment = if is_on {
        Enrichment::On(asker)
    } else {
        Enrichment::Off
    };
    let provider = Provider::with(store, enrichment, None, clock).await;
    for name in ["blue", "lost"] {
        let put = path(name, API);
        provider.send("PUT", &put, Some(cluster(name))).await;
        let kubeconfig = [("/aroServiceKubeconfig", name)];
        install(&provider.store, name, &kubeconfig).await;
    }
    provider
}

#[tokio::test]
async fn answers_have_what_only_the_cluster_knows() {
    let provider = with_clusters(true).await;
    let (_, _, blue) = provider.send("GET", &path("blue", API), None).await;
    let properties = &blue["properties"];
    assert_eq!(properties["clusterProfile"]["version"], "4.19.12");
    assert_eq!(properties["workerProfilesStatus"][0]["count"], 4);
    assert_eq!(properties["ingressProfiles"][0]["ip"], "192.0.2.7");
    // A cluster that cannot be asked is answered as it is stored.
    let (status, _, lost) = provider.send("GET", &path("lost", API), None).await;
    assert_eq!(status, 200);
    assert_eq!(lost["properties"]["clusterProfile"]["version"], VERSION);
    let list = path("", API).replace("/?", "?");
    let (_, _, page) = provider.send("GET", &list, None).await;
    assert_eq!(
        page["value"][0]["properties"]["workerProfilesStatus"][0]["diskSizeGB"],
        256
    );
    assert_eq!(page["value"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn without_enrichment_answers_are_what_the_documents_say() {
    let provider = with_clusters(false).await;
    let (_, _, blue) = provider.send("GET", &path("blue", API), None).await;
    assert_eq!(blue["properties"]["clusterProfile"]["version"], VERSION);
    assert!(blue["properties"].get("workerProfilesStatus").is_none());
}

const HIVE: &[(&str, &str)] = &[
    (
        "/apis/hive.openshift.io/v1/namespaces/aro-7/clusterdeployments/cluster",
        r#"{"metadata":{"name":"cluster","managedFields":[{"manager":"hive"}]},"spec":{"installed":true}}"#,
    ),
    (
        "/apis/hiveinternal.openshift.io/v1alpha1/namespaces/aro-7/clustersyncs/cluster",
        r#"{"metadata":{"name":"cluster"},"status":{"conditions":[]}}"#,
    ),
    (
        "/apis/hive.openshift.io/v1/namespaces/aro-7/syncsets",
        r#"{"metadata":{},"items":[{"metadata":{"name":"one","labels":{"team":"red"}}},{"metadata":{"name":"two"}}]}"#,
    ),
    (
        "/apis/hive.openshift.io/v1/selectorsyncsets/all",
        r#"{"metadata":{"name":"all"},"spec":{"resources":[]}}"#,
    ),
];

#[tokio::test]
async fn administrators_read_what_hive_has() {
    let clock = Clock::system();
    let hive = Hive::new(api(HIVE, clock));
    let store = fixtures::store(clock);
    let provider = Provider::with(store, Enrichment::Off, Some(hive), clock).await;
    for name in ["blue", "red"] {
        provider
            .send("PUT", &path(name, API), Some(cluster(name)))
            .await;
    }
    install(
        &provider.store,
        "blue",
        &[("/hiveProfile/namespace", "aro-7")],
    )
    .await;
    let of = |name: &str, what: &str| {
        let path = path(name, API);
        format!("/admin{}/{what}", path.split('?').next().unwrap())
    };
    let (status, _, found) = provider
        .send("GET", &of("blue", "clusterdeployment"), None)
        .await;
    assert_eq!((status, &found["spec"]["installed"]), (200, &json!(true)));
    assert!(found["metadata"].get("managedFields").is_none());
    let (status, _, found) = provider.send("GET", &of("blue", "clustersync"), None).await;
    assert_eq!((status, &found["status"]["conditions"]), (200, &json!([])));
    let (status, _, body) = provider.send("GET", &of("red", "clustersync"), None).await;
    assert_eq!((status, code(&body)), (404, "NotManagedByHive"));
    let sets = "/admin/hivesyncset";
    let (_, _, all) = provider
        .send("GET", &format!("{sets}?cdNamespace=aro-7"), None)
        .await;
    assert_eq!(all["value"].as_array().unwrap().len(), 2);
    let red = format!("{sets}?cdNamespace=aro-7&label=team%3Dred");
    let (_, _, red) = provider.send("GET", &red, None).await;
    assert_eq!(red["value"][0]["metadata"]["name"], "one");
    assert_eq!(red["value"].as_array().unwrap().len(), 1);
    let one = format!("{sets}/syncsetname/all?isSyncSet=false");
    let (status, _, one) = provider.send("GET", &one, None).await;
    assert_eq!((status, &one["metadata"]["name"]), (200, &json!("all")));
    let (status, _, body) = provider.send("GET", sets, None).await;
    assert_eq!(
        (status, &body["error"]["target"]),
        (400, &json!("cdnamespace"))
    );
}

#[tokio::test]
async fn a_frontend_without_hive_says_so() {
    let provider = provider().await;
    let sets = "/admin/hivesyncset?isSyncSet=false";
    let (status, _, body) = provider.send("GET", sets, None).await;
    assert_eq!((status, code(&body)), (503, "HiveNotConfigured"));
}
