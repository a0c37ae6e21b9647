//! Calls the provider.

use std::{fs, path::Path, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{Method, Request};
use http_body_util::{BodyExt, Limited};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, Config, client::Body};
use neap_kit::{clock::Clock, http::RequestId};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::Value;

use super::ProviderArgs;
use crate::{
    areas::fleet::up::PUBLISHED,
    exit::{Exit, Failure},
    inspect::cluster::Cluster,
};

/// The version that commands speak.
pub(super) const API: &str = "2025-07-25";
/// The resource group of clusters if none is named.
const GROUP: &str = "fleet";
/// The largest answer that is read.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// The time in which a `neap up` that is ready publishes the address of its provider.
const PUBLISH_TIME: Duration = Duration::from_secs(2);
/// How often the address is looked for until then.
const PUBLISH_POLL: Duration = Duration::from_millis(50);
/// How often the status of an operation is read.
const POLL: Duration = Duration::from_millis(500);

/// The provider, as commands call it.
pub(crate) struct Provider {
    client: Client,
    url: String,
    pub(crate) subscription: String,
    pub(crate) location: String,
    pub(crate) group: String,
    pub(crate) clock: Clock,
}

/// An answer of the provider.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) operation: Option<String>,
    pub(crate) body: Value,
}

fn unreachable(why: &str) -> Failure {
    let what = "cannot reach the provider of clusters";
    Failure::new("NT-FLEET-0011", Exit::Unreachable, what, why)
        .remedy("start neap up and pass its kubeconfig, or name a provider with --server and --ca")
}

impl Provider {
    /// The provider that the flags name, or that of the cluster of the kubeconfig.
    pub(crate) async fn connect(args: &ProviderArgs) -> Result<Self, Failure> {
        if let (Some(server), Some(ca)) = (&args.server, &args.ca) {
            let named = Address {
                url: server.clone(),
                authority: read(ca)?,
                subscription: None,
                location: "local".to_owned(),
            };
            return Self::at(named, args);
        }
        let cluster = Cluster::connect(&args.cluster, None).await?;
        let clock = Clock::system();
        let started = clock.uptime();
        loop {
            if let Some(provider) = Self::of_cluster(args, &cluster).await? {
                return Ok(provider);
            }
            // A `neap up` that is ready publishes the address a moment later.
            if clock.uptime().saturating_sub(started) > PUBLISH_TIME {
                return Err(unreachable("the cluster of the kubeconfig runs none"));
            }
            clock.sleep(PUBLISH_POLL).await;
        }
    }

    /// The provider of a cluster, if it runs one.
    pub(crate) async fn of_cluster(
        args: &ProviderArgs,
        cluster: &Cluster,
    ) -> Result<Option<Self>, Failure> {
        let (namespace, name) = PUBLISHED;
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), namespace);
        let map = maps.get_opt(name).await;
        let map = map.map_err(|error| cluster.failed("the address of the provider", &error))?;
        let Some(mut data) = map.and_then(|map| map.data) else {
            return Ok(None);
        };
        let mut take = |name: &str| data.remove(name).unwrap_or_default();
        let published = Address {
            url: take("url"),
            authority: take("ca.crt"),
            subscription: Some(take("subscription")),
            location: take("location"),
        };
        Self::at(published, args).map(Some)
    }

    fn at(address: Address, args: &ProviderArgs) -> Result<Self, Failure> {
        let Address {
            url,
            authority,
            subscription,
            location,
        } = address;
        let uri = url.parse().map_err(|_| unreachable("its URL is invalid"))?;
        let mut config = Config::new(uri);
        let roots: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(authority.as_bytes()).collect();
        let roots = roots.map_err(|_| unreachable("its certificate authority is invalid"))?;
        config.root_cert = Some(roots.into_iter().map(|it| it.to_vec()).collect());
        if let (Some(certificate), Some(key)) = (&args.client_cert, &args.client_key) {
            config.auth_info.client_certificate_data = Some(STANDARD.encode(read(certificate)?));
            config.auth_info.client_key_data = Some(STANDARD.encode(read(key)?).into());
        }
        let client = Client::try_from(config).map_err(|error| unreachable(&error.to_string()))?;
        let chosen = args.subscription.clone().or(subscription);
        Ok(Self {
            client,
            url: url.trim_end_matches('/').to_owned(),
            subscription: chosen.unwrap_or_default(),
            location,
            group: args.resource_group.as_deref().unwrap_or(GROUP).to_owned(),
            clock: Clock::system(),
        })
    }

    /// The path of a cluster, or of all.
    pub(crate) fn path(&self, rest: &str) -> String {
        let Self {
            subscription,
            group,
            ..
        } = self;
        format!(
            "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.RedHatOpenShift/openShiftClusters{rest}?api-version={API}"
        )
    }

    /// Sends a request. Every answer that is no error of the provider is returned.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        self.call_if_none(method, path, body, None).await
    }

    /// Sends a request that is refused if the resource has a version that `if_none_match` excludes.
    pub(crate) async fn call_if_none(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        if_none_match: Option<&str>,
    ) -> Result<Answer, Failure> {
        let path = path.strip_prefix(&self.url).unwrap_or(path);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            // A request that is sent again is the same operation.
            .header("x-ms-client-request-id", RequestId::random().0)
            .header("referer", format!("{}{path}", self.url));
        if let Some(versions) = if_none_match {
            request = request.header("if-none-match", versions);
        }
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(Body::from(text.into_bytes()));
        let request = request.map_err(|error| unreachable(&error.to_string()))?;
        let response = self.client.send(request).await;
        let response = response.map_err(|error| unreachable(&neap_kit::why::chain(&error)))?;
        let status = response.status().as_u16();
        let header = response.headers().get("azure-asyncoperation");
        let operation = header.and_then(|it| it.to_str().ok()).map(str::to_owned);
        #[expect(clippy::disallowed_methods, reason = "it is limited in the same line")]
        let bytes = Limited::new(response.into_body(), MAX_ANSWER)
            .collect()
            .await;
        let bytes = bytes
            .map_err(|error| unreachable(&error.to_string()))?
            .to_bytes();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if status >= 400 {
            return Err(refused(status, &body));
        }
        Ok(Answer {
            status,
            operation,
            body,
        })
    }

    /// Waits for the end of an operation. Calls `progress` with every status.
    pub(crate) async fn wait(
        &self,
        operation: &str,
        timeout: Duration,
        mut progress: impl FnMut(&Value) -> Result<(), Failure>,
    ) -> Result<Value, Failure> {
        let started = self.clock.uptime();
        loop {
            let status = self.call(Method::GET, operation, None).await?.body;
            progress(&status)?;
            match status["status"].as_str().unwrap_or_default() {
                "Succeeded" => return Ok(status),
                "Failed" | "Canceled" => return Err(ended(&status)),
                _ => {}
            }
            if self.clock.uptime().saturating_sub(started) > timeout {
                let why = "the operation continues";
                let what = "the operation did not end in time";
                return Err(Failure::new("NT-FLEET-0010", Exit::TimedOut, what, why)
                    .remedy("follow it: neap operations watch; or wait longer with --timeout"));
            }
            self.clock.sleep(POLL).await;
        }
    }
}

/// Where a provider is.
struct Address {
    url: String,
    authority: String,
    subscription: Option<String>,
    location: String,
}

fn read(file: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(file);
    text.map_err(|error| unreachable(&format!("{}: {error}", file.display())))
}

fn refused(status: u16, body: &Value) -> Failure {
    let error = &body["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    let exit = match status {
        403 => Exit::NotAllowed,
        404 => Exit::NotFound,
        400..=499 => Exit::Refused,
        _ => Exit::Failed,
    };
    let target = text("target");
    let target = if target.is_empty() {
        String::new()
    } else {
        format!(" ({target})")
    };
    let details = error["details"].as_array().into_iter().flatten();
    let details: Vec<_> = details.filter_map(|it| it["message"].as_str()).collect();
    let what = format!("the provider answered {status} {}", text("code"));
    let why = format!("{}{target}", text("message"));
    let remedy = match status {
        _ if !details.is_empty() => details.join(" "),
        403 => "use the certificate of a caller that the provider accepts".to_owned(),
        404 => "check the name; neap fleet list shows the clusters".to_owned(),
        400..=499 if error["code"] == "RequestNotAllowed" => {
            "see what runs and what has ended: neap operations list".to_owned()
        }
        400..=499 => "change the request as the message says, and send it again".to_owned(),
        _ => "send the request again; the log of the provider says more".to_owned(),
    };
    Failure::new("NT-FLEET-0010", exit, &what, &why).remedy(remedy)
}

fn ended(status: &Value) -> Failure {
    let error = &status["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default();
    let id = status["name"].as_str().unwrap_or_default();
    let what = format!(
        "the operation ended {}",
        status["status"].as_str().unwrap_or_default()
    );
    let why = format!("{}: {}", text("code"), text("message"));
    Failure::new("NT-FLEET-0010", Exit::Failed, &what, &why)
        .remedy(format!("see its steps: neap operations show {id}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_refusal_says_what_to_do() {
        for status in [400, 403, 404, 409, 412, 500, 503] {
            let body = json!({"error": {"code": "C", "message": "m", "target": "t"}});
            assert!(!refused(status, &body).advice().is_empty(), "{status}");
        }
        let ended = json!({"error": {"code": "RequestNotAllowed", "message": "m"}});
        assert!(refused(400, &ended).advice().contains("operations list"));
        let details = json!({"error": {"details": [{"message": "wait for it"}]}});
        assert_eq!(refused(409, &details).advice(), "wait for it");
    }
}
