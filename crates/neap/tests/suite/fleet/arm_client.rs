//! A client of a provider, with or without a certificate.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Limited};
use kube::{Client, Config, client::Body, config::AuthInfo};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};

/// A certificate and its key, PEM.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A client of a provider.
pub(crate) struct ArmClient(Client);

/// Status, headers and body of an answer.
pub(crate) struct ArmAnswer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl ArmAnswer {
    /// Status and error code.
    pub(crate) fn refusal(&self) -> (u16, &str) {
        let code = self.body["error"]["code"].as_str();
        (self.status, code.unwrap_or_default())
    }
}

impl ArmClient {
    /// A client of the provider at `url`, whose authority is `authority`.
    pub(crate) fn new(url: &str, authority: &str, identity: Option<&Identity>) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut config = Config::new(url.parse().unwrap());
        let root = CertificateDer::from_pem_slice(authority.as_bytes()).unwrap();
        config.root_cert = Some(vec![root.to_vec()]);
        // A provider that is not there yet is asked again by the test.
        config.default_retry = false;
        if let Some(Identity { certificate, key }) = identity {
            let user = json!({
                "client-certificate-data": STANDARD.encode(certificate),
                "client-key-data": STANDARD.encode(key),
            });
            config.auth_info = serde_json::from_value::<AuthInfo>(user).unwrap();
        }
        Self(Client::try_from(config).unwrap())
    }

    /// Sends a request. Nothing if there was no answer.
    pub(crate) async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Option<ArmAnswer> {
        let mut request = Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(Body::from(text.into_bytes())).unwrap();
        let (parts, body) = self.0.send(request).await.ok()?.into_parts();
        #[expect(clippy::disallowed_methods, reason = "it is limited in the same line")]
        let bytes = Limited::new(body, 1 << 20).collect().await.ok()?.to_bytes();
        Some(ArmAnswer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
        })
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> ArmAnswer {
        let sent = self.try_send(method, path, body).await;
        sent.expect("the provider answers")
    }

    pub(crate) async fn get(&self, path: &str) -> ArmAnswer {
        self.send(Method::GET, path, None).await
    }
}
