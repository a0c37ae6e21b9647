//! The server of a scenario: one of our own in this process, or any other by its kubeconfig.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use neap_oracles::{ObservedService, Observer};
use neap_pocket::{Options, Pocket, environment::Environment};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Failure, chronicle::chronicle, variables::Variables};

/// Bytes of a response, at most: more than any scenario has.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// The server that scenarios run against.
#[derive(Clone, Debug)]
pub(crate) enum TargetServer {
    InProcess,
    Kubeconfig {
        path: PathBuf,
        run: String,
        count: Arc<AtomicU64>,
    },
}

impl TargetServer {
    pub(crate) fn from_environment(kubeconfig: Option<PathBuf>) -> Self {
        match kubeconfig {
            None => Self::InProcess,
            Some(path) => Self::Kubeconfig {
                path,
                run: format!("{:x}", std::process::id()),
                count: Arc::default(),
            },
        }
    }
}

/// The server, and the namespace one scenario has on it.
pub(crate) struct Server {
    client: Client,
    id: String,
    /// The objects to delete afterwards on an external server.
    made: Option<Mutex<Vec<String>>>,
    /// Our own server, whose history can be read, and what its clients observed.
    judged: Option<(Pocket, Observer)>,
}

impl Server {
    pub(crate) async fn start(place: &TargetServer, name: &str) -> Result<Self, Failure> {
        let server = match place {
            TargetServer::InProcess => in_process(name).await?,
            TargetServer::Kubeconfig { path, run, count } => Self {
                client: remote(path).await?,
                id: format!("{run}-{}", count.fetch_add(1, Ordering::Relaxed)),
                made: Some(Mutex::default()),
                judged: None,
            },
        };
        server.prepare().await?;
        Ok(server)
    }

    pub(crate) fn variables(&self) -> Variables {
        let mut variables = Variables::default();
        variables.set("ns", self.namespace());
        variables.set("id", &self.id);
        variables
    }

    fn namespace(&self) -> String {
        format!("scenario-{}", self.id)
    }

    /// Creates the namespace and waits until pods can be created in it.
    async fn prepare(&self) -> Result<(), Failure> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace()}});
        let body = Body::from(namespace.to_string().into_bytes());
        let request =
            Request::post("/api/v1/namespaces").header("content-type", "application/json");
        let (status, answer) = self.whole(request.body(body).map_err(wrong)?).await?;
        if status != StatusCode::CREATED {
            let text = String::from_utf8_lossy(&answer);
            return Err(Failure::new(format!("the namespace was refused: {text}")));
        }
        let path = format!(
            "/api/v1/namespaces/{}/serviceaccounts/default",
            self.namespace()
        );
        for _ in 0..600 {
            let request = Request::get(&path).body(Body::empty()).map_err(wrong)?;
            if self.whole(request).await?.0 == StatusCode::OK {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err(Failure::new("the namespace never got its service account"))
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        self.client.send(request).await.map_err(wrong)
    }

    async fn whole(&self, request: Request<Body>) -> Result<(StatusCode, Bytes), Failure> {
        let response = self.send(request).await?;
        let status = response.status();
        Ok((status, read(response.into_body()).await?))
    }

    /// Records an object outside the scenario's namespace.
    pub(crate) fn remember(&self, collection: &str, object: &Value) {
        let Some(made) = &self.made else { return };
        let collection = collection.split('?').next().unwrap_or_default();
        if let Some(name) = object["metadata"]["name"].as_str()
            && object["metadata"]["namespace"].is_null()
        {
            made.lock().push(format!("{collection}/{name}"));
        }
    }

    /// Checks every response, list and stream of the scenario against the history.
    pub(crate) fn judge(&self) -> Result<(), Failure> {
        let Some((pocket, observer)) = &self.judged else {
            return Ok(());
        };
        let verdict = observer.judge(&chronicle(pocket));
        if verdict.violations.is_empty() {
            return Ok(());
        }
        Err(Failure::new(verdict.to_string()))
    }

    /// Cleans up an external server.
    pub(crate) async fn tidy(&self) {
        let Some(made) = &self.made else { return };
        let mut paths = std::mem::take(&mut *made.lock());
        paths.push(format!("/api/v1/namespaces/{}", self.namespace()));
        for path in paths {
            if let Ok(request) = Request::delete(path).body(Body::empty()) {
                let _ = self.send(request).await;
            }
        }
    }
}

/// Reads a whole body.
#[expect(clippy::disallowed_methods, reason = "the body is limited first")]
pub(crate) async fn read(body: Body) -> Result<Bytes, Failure> {
    let collected = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
    Ok(collected.map_err(wrong)?.to_bytes())
}

async fn in_process(name: &str) -> Result<Server, Failure> {
    let seed = name.bytes().fold(7_u64, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(byte.into())
    });
    let pocket = Pocket::open(Options::new(Environment::simulated(seed))).await;
    let pocket = pocket.map_err(wrong)?;
    let observer = Observer::new();
    let service = ObservedService::new(pocket.service(), &observer, name);
    Ok(Server {
        client: Client::new(service, "default"),
        // Occurs nowhere else, so that recordings can tell it from other text.
        id: "z9z".into(),
        made: None,
        judged: Some((pocket, observer)),
    })
}

async fn remote(path: &PathBuf) -> Result<Client, Failure> {
    let kubeconfig = Kubeconfig::read_from(path).map_err(wrong)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(wrong)?;
    // A scenario sees the first response, whatever it is.
    config.default_retry = false;
    Client::try_from(config).map_err(wrong)
}

pub(crate) fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}
