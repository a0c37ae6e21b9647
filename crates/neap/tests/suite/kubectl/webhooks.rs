//! Admission webhooks on this machine, configured by URL and by Service.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ServerConfig, ServerConnection, StreamOwned, pki_types::PrivatePkcs8KeyDer};
use serde_json::{Value, json};

use super::kubectl_cluster::KubectlCluster;

/// A webhook that denies objects with the label `tide: low` and labels objects without it.
struct Webhook {
    port: u16,
    ca_bundle: String,
}

impl Webhook {
    fn start() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new([]).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = authority.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(authority, key);
        let own = KeyPair::generate().unwrap();
        let names = ["127.0.0.1".to_owned(), "hook.default.svc".to_owned()];
        let leaf = CertificateParams::new(names).unwrap();
        let leaf = leaf.signed_by(&own, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![leaf.der().clone()],
                PrivatePkcs8KeyDer::from(own.serialize_der()).into(),
            )
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let config = config.clone();
                std::thread::spawn(move || serve(config, stream));
            }
        });
        Self {
            port,
            ca_bundle: BASE64_STANDARD.encode(pem),
        }
    }

    /// A webhook configuration for ConfigMaps.
    fn configuration(&self, kind: &str, client: &Value) -> String {
        let mut client = client.clone();
        client["caBundle"] = json!(self.ca_bundle);
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": "tide"},
            "webhooks": [{
                "name": "maps.tide.example",
                "clientConfig": client,
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        })
        .to_string()
    }
}

/// Responds to reviews until the connection closes.
fn serve(config: Arc<ServerConfig>, stream: TcpStream) {
    let connection = ServerConnection::new(config).unwrap();
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    while let Some(review) = review(&mut stream) {
        let response_body = response_body(&review).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            response_body.len()
        );
        let stream = stream.get_mut();
        let sent = stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(response_body.as_bytes()))
            .and_then(|()| stream.flush());
        if sent.is_err() {
            return;
        }
    }
}

fn review(stream: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn response_body(review: &Value) -> Value {
    let request = &review["request"];
    let labels = &request["object"]["metadata"]["labels"];
    let mut response =
        json!({"uid": request["uid"], "allowed": true, "warnings": ["seen by tide"]});
    if labels["tide"] == "low" {
        response["allowed"] = json!(false);
        response["status"] = json!({"message": "not at low tide"});
    } else if labels["tide"].is_null() {
        let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {"tide": "high"}}]);
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(BASE64_STANDARD.encode(patch.to_string()));
    }
    json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response})
}

#[test]
fn a_webhook_by_url_mutates_and_denies() {
    let Some(cluster) = KubectlCluster::start("a_webhook_by_url_mutates_and_denies") else {
        return;
    };
    let webhook = Webhook::start();
    let client = json!({"url": format!("https://127.0.0.1:{}/maps", webhook.port)});
    cluster.file("hook.yaml", &webhook.configuration("Mutating", &client));
    cluster.ok("apply -f hook.yaml");
    let said = cluster.run("create configmap a --from-literal=k=v");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("Warning: seen by tide"), "{said:?}");
    let map = cluster.json("get configmap a");
    assert_eq!(map["metadata"]["labels"], json!({"tide": "high"}));
    let said = cluster.refused("label configmap a --overwrite tide=low");
    assert!(
        said.contains(
            "admission webhook \"maps.tide.example\" denied the request: not at low tide"
        ),
        "{said}"
    );
}

#[test]
fn a_webhook_by_service_is_reached_through_its_endpoints() {
    let Some(cluster) =
        KubectlCluster::start("a_webhook_by_service_is_reached_through_its_endpoints")
    else {
        return;
    };
    let webhook = Webhook::start();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443}]}});
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "hook-local", "labels": {"kubernetes.io/service-name": "hook"}},
        "ports": [{"name": "", "port": webhook.port}],
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": true}}],
    });
    let client = json!({"service": {"namespace": "default", "name": "hook", "path": "/maps"}});
    let hook = webhook.configuration("Mutating", &client);
    cluster.file("hook.yaml", &hook);
    cluster.ok("apply -f hook.yaml");
    let said = cluster.refused("create configmap a");
    assert!(said.contains("service \"hook\" not found"), "{said}");
    cluster.file("service.yaml", &service.to_string());
    cluster.ok("apply -f service.yaml");
    cluster.file("slice.yaml", &slice.to_string());
    cluster.ok("apply -f slice.yaml");
    cluster.ok("create configmap a");
    let map = cluster.json("get configmap a");
    assert_eq!(map["metadata"]["labels"]["tide"], "high");
}
