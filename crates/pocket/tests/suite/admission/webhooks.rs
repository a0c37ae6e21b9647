//! Webhooks in the test's own process: TLS over pipes, so that a paused clock stays paused.

use std::{io, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use neap_pocket::{
    admission::{Connection, Destination, Dial},
    environment::BoxFuture,
};
use parking_lot::Mutex;
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

/// The reaction of a webhook to a review.
pub(crate) enum Reaction {
    /// Answers with this `response`; the uid is filled in.
    Answer(Value),
    /// Answers with a status and a body of its own.
    Raw(u16, String),
    /// Never responds.
    Hang,
    /// Closes the connection.
    Leave,
}

impl Reaction {
    pub(crate) fn allow() -> Self {
        Self::Answer(json!({"allowed": true}))
    }

    pub(crate) fn refuse(message: &str) -> Self {
        Self::Answer(json!({"allowed": false, "status": {"message": message}}))
    }

    pub(crate) fn patch(operations: &Value) -> Self {
        let patch = BASE64_STANDARD.encode(operations.to_string());
        Self::Answer(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
    }
}

type React = Box<dyn Fn(&str, &Value) -> Reaction + Send + Sync>;

/// All webhooks of a test: their reactions, and the reviews they received.
pub(crate) struct TestWebhooks {
    react: React,
    asked: Mutex<Vec<(String, Value)>>,
    dialled: Mutex<Vec<Destination>>,
    tls: TlsAcceptor,
    authority: String,
}

impl TestWebhooks {
    /// Webhooks that react as `react` says, given the path and the review's request.
    pub(crate) fn new(
        react: impl Fn(&str, &Value) -> Reaction + Send + Sync + 'static,
    ) -> Arc<Self> {
        let key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new([]).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = authority.self_signed(&key).unwrap();
        let issuer = Issuer::new(authority, key);
        let own = KeyPair::generate().unwrap();
        let names = ["hooks.example".to_owned(), "hook.default.svc".to_owned()];
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
        Arc::new(Self {
            react: Box::new(react),
            asked: Mutex::default(),
            dialled: Mutex::default(),
            tls: TlsAcceptor::from(Arc::new(config)),
            authority: certificate.pem(),
        })
    }

    /// `caBundle` for configurations.
    pub(crate) fn ca_bundle(&self) -> String {
        BASE64_STANDARD.encode(&self.authority)
    }

    /// Takes the paths and requests of all reviews so far.
    pub(crate) fn asked(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.asked.lock())
    }

    /// The paths alone.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|(path, _)| path).collect()
    }

    /// The destinations of connections so far.
    pub(crate) fn dialled(&self) -> Vec<Destination> {
        self.dialled.lock().clone()
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, io::Error> {
        let path = request.uri().path().to_owned();
        #[expect(clippy::disallowed_methods, reason = "both ends are this test's")]
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let review: Value = serde_json::from_slice(&body).unwrap();
        let asked = review["request"].clone();
        let reaction = (self.react)(&path, &asked);
        let uid = asked["uid"].clone();
        self.asked.lock().push((path, asked));
        let (status, body) = match reaction {
            Reaction::Answer(mut response) => {
                if response["uid"].is_null() {
                    response["uid"] = uid;
                }
                let answer = json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response});
                (200, answer.to_string())
            }
            Reaction::Raw(status, body) => (status, body),
            Reaction::Hang => std::future::pending().await,
            Reaction::Leave => return Err(io::Error::other("left")),
        };
        Ok(Response::builder()
            .status(status)
            .body(Full::new(body.into()))
            .unwrap())
    }
}

/// Connects to the webhooks: a pipe for each connection. Port 9 is closed.
pub(crate) struct WebhookDialer(pub(crate) Arc<TestWebhooks>);

impl Dial for WebhookDialer {
    fn dial(&self, to: &Destination) -> BoxFuture<io::Result<Box<dyn Connection>>> {
        let webhooks = self.0.clone();
        webhooks.dialled.lock().push(to.clone());
        if to.port == 9 {
            return Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) });
        }
        let (near, far) = tokio::io::duplex(1 << 16);
        #[expect(clippy::disallowed_methods, reason = "the test's runtime ends it")]
        tokio::spawn(async move {
            let Ok(stream) = webhooks.tls.accept(far).await else {
                return;
            };
            let service = service_fn(|request| webhooks.answer(request));
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            // A webhook that leaves in the middle of a review does so on purpose.
            let _ = served.await;
        });
        Box::pin(async move { Ok(Box::new(near) as Box<dyn Connection>) })
    }
}
