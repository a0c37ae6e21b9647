//! Requests of the node and of the run itself, one connection each.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    client::{Answer, Client, Watch},
    stopwatch::Stopwatch,
};

/// Time for a controller to do its work. Some resync only every thirty seconds, and a CronJob fires
/// once a minute.
const CONTROLLER_TIMEOUT: Duration = Duration::from_secs(100);

#[derive(Debug, Clone)]
pub(super) struct Api(pub(super) Client);

impl Api {
    async fn send(&self, method: Method, path: &str, kind: &str, body: String) -> Result<Answer> {
        let mut connection = self.0.connect().await?;
        connection.send_as(method, path, kind, body).await
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value> {
        let answer = self.send(Method::GET, path, "", String::new()).await?;
        answer.success().with_context(|| path.to_owned())
    }

    pub(super) async fn create(&self, path: &str, object: &Value) -> Result<()> {
        let kind = "application/json";
        let answer = self
            .send(Method::POST, path, kind, object.to_string())
            .await?;
        answer.success().with_context(|| path.to_owned())?;
        Ok(())
    }

    /// Like [`Self::create`], but succeeds if the object was deleted or changed meanwhile.
    pub(super) async fn create_unless_gone(&self, path: &str, object: &Value) -> Result<()> {
        let kind = "application/json";
        let answer = self
            .send(Method::POST, path, kind, object.to_string())
            .await?;
        unless_gone(path, &answer)
    }

    /// Writes the status of an object, if it still exists.
    pub(super) async fn status(&self, path: &str, status: Value) -> Result<()> {
        let (kind, body) = ("application/merge-patch+json", json!({"status": status}));
        let path = format!("{path}/status");
        let answer = self
            .send(Method::PATCH, &path, kind, body.to_string())
            .await?;
        unless_gone(&path, &answer)
    }

    pub(super) async fn apply(&self, path: &str, object: &Value) -> Result<()> {
        let kind = "application/apply-patch+yaml";
        let answer = self
            .send(Method::PATCH, path, kind, object.to_string())
            .await?;
        answer.success().with_context(|| path.to_owned())?;
        Ok(())
    }

    /// Deletes an object, if it still exists.
    pub(super) async fn delete(&self, path: &str) -> Result<()> {
        let answer = self.send(Method::DELETE, path, "", String::new()).await?;
        unless_gone(path, &answer)
    }

    pub(super) async fn watch(&self, path: &str) -> Result<Watch> {
        self.0.connect().await?.watch(path).await
    }

    /// Waits until a collection satisfies `holds`; checks it again whenever it changes.
    pub(super) async fn until(
        &self,
        what: &str,
        collection: &str,
        holds: impl Fn(&[Value]) -> bool,
    ) -> Result<Duration> {
        let since = Stopwatch::start();
        loop {
            let list = self.get(collection).await?;
            let items = list["items"].as_array().context("not a list")?;
            if holds(items) {
                return Ok(since.elapsed());
            }
            let revision = list["metadata"]["resourceVersion"].as_str().unwrap_or("0");
            let path = format!("{collection}?watch=true&resourceVersion={revision}");
            let left = CONTROLLER_TIMEOUT.saturating_sub(since.elapsed());
            let mut watch = self.watch(&path).await?;
            if timeout(left, watch.next()).await.is_err() {
                bail!("{what} does not happen; {collection} is {list}");
            }
        }
    }
}

fn unless_gone(path: &str, answer: &Answer) -> Result<()> {
    if !matches!(answer.status, 404 | 409) {
        answer.success().with_context(|| path.to_owned())?;
    }
    Ok(())
}
