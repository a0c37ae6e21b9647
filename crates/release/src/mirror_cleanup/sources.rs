//! What a pass reads from the cluster: the streams, and the credentials of the mirrors.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::{
    image_stream::{api::ImageStream, listing, pull_secrets},
    oci::credentials::{self, Credentials},
};

/// The key of a Secret that is no pull secret.
const CONFIG_KEY: &str = "config.json";

/// Where streams and credentials are.
#[derive(Debug, Clone)]
pub struct CleanupSources {
    /// The namespaces of the streams.
    pub namespaces: Vec<String>,
    /// The namespace of the Secret with the credentials of the mirrors.
    pub credentials_namespace: String,
    /// The name of the Secret.
    pub credentials_secret: String,
}

/// Why there are no streams or no credentials.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The streams.
    #[error("the image streams of namespace {namespace} cannot be read")]
    Streams {
        /// The namespace.
        namespace: String,
        /// Why.
        source: kube::Error,
    },
    /// The Secret.
    #[error("secret {name} cannot be read")]
    Secret {
        /// Namespace and name.
        name: String,
        /// Why.
        source: kube::Error,
    },
    /// Its content.
    #[error("secret {name} is not usable")]
    Content {
        /// Namespace and name.
        name: String,
        /// Why.
        source: credentials::Error,
    },
    /// No credentials in it.
    #[error("secret {0} has neither {CONFIG_KEY} nor .dockerconfigjson")]
    NoContent(String),
}

/// The streams of these namespaces.
pub async fn streams(client: &Client, namespaces: &[String]) -> Result<Vec<ImageStream>, Error> {
    let mut streams = Vec::new();
    for namespace in namespaces {
        let found = listing::list(client, namespace).await;
        streams.extend(found.map_err(|source| Error::Streams {
            namespace: namespace.clone(),
            source,
        })?);
    }
    Ok(streams)
}

/// The credentials in a Secret: one of type dockerconfigjson, or with the key `config.json`.
pub async fn credentials(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Credentials, Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let full = || format!("{namespace}/{name}");
    let secret = api.get(name).await.map_err(|source| Error::Secret {
        name: full(),
        source,
    })?;
    let data = secret.data.as_ref();
    let plain = data.and_then(|data| data.get(CONFIG_KEY));
    let parsed = match plain {
        Some(text) => Some(Credentials::parse(&String::from_utf8_lossy(&text.0))),
        None => pull_secrets::parse(&secret),
    };
    let parsed = parsed.ok_or_else(|| Error::NoContent(full()))?;
    parsed.map_err(|source| Error::Content {
        name: full(),
        source,
    })
}
