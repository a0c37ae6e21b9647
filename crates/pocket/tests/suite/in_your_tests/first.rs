use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use neap_pocket::{Options, Pocket, environment::Environment};

/// The code under test: copies a ConfigMap.
async fn copy(client: Client, from: &str, to: &str) -> kube::Result<ConfigMap> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let copy = ConfigMap {
        metadata: ObjectMeta {
            name: Some(to.to_owned()),
            ..ObjectMeta::default()
        },
        ..maps.get(from).await?
    };
    maps.create(&PostParams::default(), &copy).await
}

#[tokio::test(start_paused = true)]
async fn a_copy_has_the_same_data() {
    let environment = Environment::simulated(1);
    let pocket = Pocket::open(Options::new(environment)).await.unwrap();
    let client = Client::new(pocket.service(), "default");

    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let original = ConfigMap {
        metadata: ObjectMeta {
            name: Some("original".to_owned()),
            ..ObjectMeta::default()
        },
        data: Some([("color".to_owned(), "blue".to_owned())].into()),
        ..ConfigMap::default()
    };
    let original = maps
        .create(&PostParams::default(), &original)
        .await
        .unwrap();

    let copied = copy(client.clone(), "original", "copy").await.unwrap();
    assert_eq!(copied.data, original.data);
    assert_ne!(copied.metadata.uid, original.metadata.uid);
    // The server refuses what a real one refuses.
    let again = copy(client, "original", "copy").await.unwrap_err();
    assert!(matches!(again, kube::Error::Api(status) if status.reason == "AlreadyExists"));
}
