//! The server a scenario talks to: one of our own in this process, or any other by its kubeconfig.

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
use neap_oracle::{Observer, Watched};
use neap_pocket::{Options, Pocket, environment::Environment};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Failure, chronicle::chronicle, variables::Variables};

/// More than any answer of a scenario.
const LARGEST: usize = 64 << 20;

/// Where scenarios run.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    InProcess,
    Kubeconfig {
        path: PathBuf,
        run: String,
        count: Arc<AtomicU64>,
    },
}

impl Place {
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
    /// What to delete afterwards on a server that outlives us.
    made: Option<Mutex<Vec<String>>>,
    /// Our own server, whose history can be asked for, and what it told its clients.
    judged: Option<(Pocket, Observer)>,
}

impl Server {
    pub(crate) async fn start(place: &Place, name: &str) -> Result<Self, Failure> {
        let server = match place {
            Place::InProcess => in_process(name).await?,
            Place::Kubeconfig { path, run, count } => Self {
                client: remote(path).await?,
                id: format!("{run}-{}", count.fetch_add(1, Ordering::Relaxed)),
                made: Some(Mutex::default()),
                judged: None,
            },
        };
        server.furnish().await?;
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

    /// Makes the namespace and waits until pods could be created in it.
    async fn furnish(&self) -> Result<(), Failure> {
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

    /// Remembers an object outside the scenario's namespace.
    pub(crate) fn remember(&self, collection: &str, object: &Value) {
        let Some(made) = &self.made else { return };
        let collection = collection.split('?').next().unwrap_or_default();
        if let Some(name) = object["metadata"]["name"].as_str()
            && object["metadata"]["namespace"].is_null()
        {
            made.lock().push(format!("{collection}/{name}"));
        }
    }

    /// Holds every answer, list and stream of the scenario against what really happened.
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

    /// Leaves a server that outlives us as it was found.
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

/// A whole body.
#[expect(clippy::disallowed_methods, reason = "the body is limited first")]
pub(crate) async fn read(body: Body) -> Result<Bytes, Failure> {
    let collected = Limited::new(body, LARGEST).collect().await;
    Ok(collected.map_err(wrong)?.to_bytes())
}

async fn in_process(name: &str) -> Result<Server, Failure> {
    let seed = name.bytes().fold(7_u64, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(byte.into())
    });
    let pocket = Pocket::open(Options::new(Environment::rehearsal(seed))).await;
    let pocket = pocket.map_err(wrong)?;
    let observer = Observer::new();
    let service = Watched::new(pocket.service(), &observer, name);
    Ok(Server {
        client: Client::new(service, "default"),
        // Found nowhere else, so that recordings can be told from what was asked.
        id: "z9z".into(),
        made: None,
        judged: Some((pocket, observer)),
    })
}

async fn remote(path: &PathBuf) -> Result<Client, Failure> {
    let kubeconfig = Kubeconfig::read_from(path).map_err(wrong)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(wrong)?;
    // A scenario sees the first answer, whatever it is.
    config.default_retry = false;
    Client::try_from(config).map_err(wrong)
}

pub(crate) fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}
