use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;

/// Asserts that the value serializes to `text`, and deserializes from it.
fn is_written_as<T>(value: &T, text: &str)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    assert_eq!(serde_json::to_string(value).unwrap(), text);
    assert_eq!(&serde_json::from_str::<T>(text).unwrap(), value);
}

#[test]
fn a_wake_request_and_its_reply_are_those_of_kube_elasti() {
    let asked = IncomingRequest {
        count: 1,
        svc: "cart".into(),
        namespace: "shop".into(),
    };
    is_written_as(&asked, r#"{"count":1,"svc":"cart","namespace":"shop"}"#);
    is_written_as(
        &IncomingRequestReply::default(),
        r#"{"message":"Request received successfully!"}"#,
    );
}

#[test]
fn a_wake_request_may_have_fewer_or_more_fields() {
    let asked: IncomingRequest = serde_json::from_str(r#"{"svc":"cart","more":[1]}"#).unwrap();
    assert_eq!(
        (asked.count, &*asked.svc, &*asked.namespace),
        (0, "cart", "")
    );
    assert!(serde_json::from_str::<IncomingRequest>(r#"{"svc":1}"#).is_err());
}

#[test]
fn internal_answers_are_those_of_the_original() {
    is_written_as(&QueueStatus { queue_status: 1 }, r#"{"queueStatus":1}"#);
    let entry = DirectoryEntry {
        name: "sleepy".into(),
        spec: json!({"service": "cart"}),
        status: json!({"mode": "proxy"}),
    };
    let services = BTreeMap::from([("shop/cart".to_owned(), entry)]);
    let directory = Directory { services };
    is_written_as(
        &directory,
        r#"{"services":{"shop/cart":{"name":"sleepy","spec":{"service":"cart"},"status":{"mode":"proxy"}}}}"#,
    );
    is_written_as(
        &directory.listed(),
        r#"{"count":1,"services":[{"namespacedName":"shop/cart","name":"sleepy","spec":{"service":"cart"},"status":{"mode":"proxy"}}]}"#,
    );
    is_written_as(&Directory::default(), r#"{"services":{}}"#);
    is_written_as(&DirectoryStatus::default(), r#"{"count":0,"services":[]}"#);
}

#[test]
fn proofs_and_counts_are_written_so() {
    let probe = ProbeRequest {
        address: "10.0.0.7".parse().unwrap(),
        port: 80,
        count: 3,
    };
    is_written_as(&probe, r#"{"address":"10.0.0.7","port":80,"count":3}"#);
    let v4: SocketAddr = "10.1.0.1:40000".parse().unwrap();
    let v6: SocketAddr = "[fd00::1]:40001".parse().unwrap();
    let probed = ProbeReport {
        sources: vec![v4, v6],
        failed: 1,
    };
    is_written_as(
        &probed,
        r#"{"sources":["10.1.0.1:40000","[fd00::1]:40001"],"failed":1}"#,
    );
    is_written_as(
        &AcceptedQuery {
            sources: vec![v4],
            ports: vec![20_000],
            lately: 300,
        },
        r#"{"sources":["10.1.0.1:40000"],"ports":[20000],"lately":300}"#,
    );
    is_written_as(
        &AcceptedReport {
            taken: vec![v6],
            strangers: Vec::new(),
        },
        r#"{"taken":["[fd00::1]:40001"]}"#,
    );
    let activity = ServiceActivity {
        last: "2026-01-01T00:00:00Z".parse().unwrap(),
        held: 2,
        requests: 9,
        cold: None,
    };
    is_written_as(
        &ActivityReport {
            services: BTreeMap::from([("shop/cart".to_owned(), activity)]),
        },
        r#"{"services":{"shop/cart":{"last":"2026-01-01T00:00:00Z","held":2,"requests":9}}}"#,
    );
}

fn service(name: &str, made: &str, metadata: &Value) -> ElastiService {
    serde_json::from_value(json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1",
        "kind": "ElastiService",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": made},
        "spec": {
            "service": "cart",
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"},
            "triggers": [{"type": "prometheus", "metadata": metadata}],
        },
    }))
    .unwrap()
}

#[test]
fn credentials_for_prometheus_are_redacted() {
    for (metadata, shown) in [
        (
            json!({"headers": {"Authorization": "Bearer hush"}, "query": "up"}),
            json!({"headers": {"Authorization": "redacted"}, "query": "up"}),
        ),
        (
            json!({"Headers": {"X": "hush"}}),
            json!({"Headers": {"X": "redacted"}}),
        ),
        (json!({"headers": "hush"}), json!({"headers": "redacted"})),
        (
            json!({"serverAddress": "https://me:hush@prom:9090/a@b"}),
            json!({"serverAddress": "https://redacted@prom:9090/a@b"}),
        ),
        (
            json!({"serverAddress": "http://prom:9090/x@y"}),
            json!({"serverAddress": "http://prom:9090/x@y"}),
        ),
    ] {
        let told = DirectoryEntry::of(&service("sleepy", "2026-01-01T00:00:00Z", &metadata));
        assert_eq!(told.spec["triggers"][0]["metadata"], shown);
        assert!(!serde_json::to_string(&told).unwrap().contains("hush"));
    }
}

#[test]
fn of_two_that_name_a_service_the_elder_counts() {
    let elder = service("zoe", "2025-01-01T00:00:00Z", &Value::Null);
    let younger = service("adam", "2026-01-01T00:00:00Z", &Value::Null);
    let directory = Directory::of([&younger, &elder]);
    assert_eq!(directory.services.len(), 1);
    assert_eq!(directory.services["shop/cart"].name, "zoe");
    assert_eq!(directory.services["shop/cart"].status, json!({}));
}
