use k8s_openapi::api::core::v1::{Binding, Pod};
use kube::api::PostParams;

use super::*;

fn map(bench: &Bench, data: &Value) -> ConfigMap {
    serde_json::from_value(bench.map("a", data)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_made_twice_is_made_once() {
    let bench = Bench::new().await;
    let made = bench
        .hand
        .create(&map(&bench, &json!({"x": "1"})))
        .await
        .unwrap();
    assert!(made.unwrap().metadata.uid.is_some());
    let again = bench
        .hand
        .create(&map(&bench, &json!({"x": "2"})))
        .await
        .unwrap();
    assert!(again.is_none());
    let kept = bench.api.get("a").await.unwrap();
    assert_eq!(kept.data["data"], json!({"x": "1"}));
    let writers = kept.metadata.managed_fields.unwrap();
    assert_eq!(writers[0].manager.as_deref(), Some("test"));
}

#[tokio::test(start_paused = true)]
async fn an_object_is_replaced_only_as_it_was_read() {
    let bench = Bench::new().await;
    let first = bench
        .hand
        .create(&map(&bench, &json!({})))
        .await
        .unwrap()
        .unwrap();
    let newer = ConfigMap {
        data: Some([("x".to_owned(), "1".to_owned())].into()),
        ..first.clone()
    };
    bench.hand.replace(&newer).await.unwrap();
    let refused = bench.hand.replace(&first).await.unwrap_err();
    assert!(matches!(refused, Error::Replaced(_)), "{refused:?}");
    let kept = bench.api.get("a").await.unwrap();
    assert_eq!(kept.data["data"], json!({"x": "1"}));
}

#[tokio::test(start_paused = true)]
async fn what_has_nowhere_to_be_is_refused_in_the_words_of_the_server() {
    let bench = Bench::new().await;
    let nowhere = bench.server.unshared("nowhere");
    let mut object = bench.map("a", &json!({}));
    object["metadata"]["namespace"] = nowhere.clone().into();
    let map: ConfigMap = serde_json::from_value(object.clone()).unwrap();
    let goal = Goal {
        kind: maps(),
        object,
    };
    let created = bench.hand.create(&map).await.map(drop);
    let applied = bench.hand.carry_out(plan(&[goal], &[])).await.map(drop);
    for refused in [created, applied] {
        let Err(Error::Refused { source, .. }) = refused else {
            panic!("{refused:?}");
        };
        let missing = format!("namespaces \"{nowhere}\" not found");
        assert!(source.to_string().contains(&missing), "{source}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_is_replaced_and_nothing_else_of_its_object() {
    let bench = Bench::new().await;
    let name = bench.server.unshared("n");
    let node = json!({"metadata": {"name": name}, "spec": {"podCIDR": "10.0.0.0/24"}});
    let node: Node = serde_json::from_value(node).unwrap();
    let mut node = bench.hand.create(&node).await.unwrap().unwrap();
    node.spec = None;
    node.status = serde_json::from_value(json!({"capacity": {"pods": "7"}})).unwrap();
    let written = bench.hand.replace_status(&node).await.unwrap();
    assert_eq!(written.status.unwrap().capacity.unwrap()["pods"].0, "7");
    let spec = written.spec.unwrap();
    assert_eq!(spec.pod_cidr.as_deref(), Some("10.0.0.0/24"));
}

#[tokio::test(start_paused = true)]
async fn only_the_object_that_was_looked_at_is_removed() {
    let bench = Bench::new().await;
    let first = bench
        .hand
        .create(&map(&bench, &json!({})))
        .await
        .unwrap()
        .unwrap();
    bench.hand.remove(&first, None).await.unwrap();
    bench.hand.remove(&first, None).await.unwrap();
    assert!(bench.live().await.is_empty(), "gone twice is gone");
    bench
        .hand
        .create(&map(&bench, &json!({})))
        .await
        .unwrap()
        .unwrap();
    let refused = bench.hand.remove(&first, None).await.unwrap_err();
    assert!(matches!(refused, Error::Replaced(_)), "{refused:?}");
    assert_eq!(bench.live().await.len(), 1, "its namesake stays");
}

#[tokio::test(start_paused = true)]
async fn an_object_is_confirmed_while_it_is_the_same_and_stays() {
    let bench = Bench::new().await;
    let mut first = map(&bench, &json!({}));
    first.metadata.finalizers = Some(vec!["test.example/held".to_owned()]);
    let first = bench.hand.create(&first).await.unwrap().unwrap();
    bench.hand.confirm(&first).await.unwrap();
    let no = |asked: Result<_, Error>| matches!(asked, Err(Error::Replaced(_)));
    bench.hand.remove(&first, None).await.unwrap();
    assert!(no(bench.hand.confirm(&first).await), "it is on its way out");
    let maps: Api<ConfigMap> = Api::default_namespaced(bench.api.clone().into_client());
    let mut last = maps.get("a").await.unwrap();
    last.metadata.finalizers = None;
    bench.hand.replace(&last).await.unwrap();
    assert!(no(bench.hand.confirm(&first).await), "it is gone");
    let second = bench
        .hand
        .create(&map(&bench, &json!({})))
        .await
        .unwrap()
        .unwrap();
    assert!(no(bench.hand.confirm(&first).await), "it is another");
    bench.hand.confirm(&second).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_part_of_an_object_is_posted_to() {
    let bench = Bench::new().await;
    let client = bench.api.clone().into_client();
    let name = bench.server.unshared("n");
    let node: Node = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let account = json!({"metadata": {"name": "default"}});
    let account = serde_json::from_value(account).unwrap();
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> =
        Api::default_namespaced(client.clone());
    // A server may have made it already.
    let _ = accounts.create(&PostParams::default(), &account).await;
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let pod =
        json!({"metadata": {"namespace": bench.server.namespace(), "name": "p"}, "spec": spec});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    bench.hand.create(&pod).await.unwrap().unwrap();
    let target = json!({"kind": "Node", "name": name});
    let binding = json!({"metadata": {"name": "p"}, "target": target});
    let binding: Binding = serde_json::from_value(binding).unwrap();
    let key = Key::of(&pod);
    let answer: Value = bench
        .hand
        .post::<Pod, _, _>(&key, "binding", &binding)
        .await
        .unwrap();
    assert_eq!(answer["kind"], "Status");
    let pods: Api<Pod> = Api::default_namespaced(client);
    let bound = pods.get("p").await.unwrap().spec.unwrap();
    assert_eq!(bound.node_name, Some(name));
}
