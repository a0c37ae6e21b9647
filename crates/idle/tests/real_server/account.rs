//! A ServiceAccount of an install, and the requests that the server refuses it.

use std::{path::PathBuf, sync::Arc};

use http::{Request, Response};
use k8s_openapi::api::{authentication::v1::TokenRequest, core::v1::ServiceAccount};
use kube::{Api, Client, Config, api::PostParams, client::Body, config::AuthInfo};
use parking_lot::Mutex;
use serde_json::json;
use tempfile::NamedTempFile;

use crate::test_namespace::{self, TestNamespace};

pub(crate) struct Account {
    token: String,
    /// The token, where a pod would have it.
    file: NamedTempFile,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Account {
    pub(crate) async fn of(cluster: &TestNamespace, namespace: &str, name: &str) -> Self {
        let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), namespace);
        let request = json!({"spec": {"audiences": [], "expirationSeconds": 3600}});
        let request: TokenRequest = serde_json::from_value(request).unwrap();
        let create = PostParams::default();
        let made = accounts.create_token_request(name, &create, &request).await;
        let token = made.unwrap().status.unwrap().token.unwrap();
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &token).unwrap();
        Self {
            token,
            file,
            refused: Arc::default(),
        }
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.file.path().to_owned()
    }

    /// A client that authenticates with this token alone.
    pub(crate) async fn client(&self) -> Client {
        let admin = test_namespace::config().await;
        let mut config = Config::new(admin.cluster_url.clone());
        config.root_cert = admin.root_cert;
        config.auth_info = AuthInfo {
            token: Some(self.token.clone().into()),
            ..AuthInfo::default()
        };
        let (client, refused) = (Client::try_from(config).unwrap(), self.refused.clone());
        let noting = tower::service_fn(move |request: Request<Body>| {
            let (client, refused) = (client.clone(), refused.clone());
            async move {
                let what = format!("{} {}", request.method(), request.uri());
                let answer: kube::Result<Response<Body>> = client.send(request).await;
                let status = answer.as_ref().map(|answer| answer.status().as_u16());
                if let Ok(status @ (401 | 403)) = status {
                    refused.lock().push(format!("{status} {what}"));
                }
                answer
            }
        });
        Client::new(noting, "default")
    }

    /// The refused requests.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.refused.lock().clone()
    }
}
