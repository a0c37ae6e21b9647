//! How fast objects are read by a user whom a role permits it.

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

use super::{CONNECTIONS, Figure, create, prepare, read};
use crate::{
    bulk::send_all,
    client::Connection,
    objects::NAMESPACE,
    subject::{Storage, Subject},
};

const NAME: &str = "reader";

/// Reads of `count` objects by a service account that is bound to a role.
pub async fn bound(subject: &Subject, count: usize) -> Result<Vec<Figure>> {
    let server = subject.start(Storage::Memory).await?;
    let client = server.client();
    let mut connection = client.connect().await?;
    prepare(&mut connection).await?;
    send_all(client, CONNECTIONS, count, create).await?;
    let reader = client.with_token(&reader(&mut connection).await?);
    drop(connection);
    let gets = send_all(&reader, CONNECTIONS, count, read).await?;
    server.stop().await?;
    Ok(vec![("bound gets", gets.rate())])
}

/// Creates a service account that may read ConfigMaps, and returns its token.
async fn reader(connection: &mut Connection) -> Result<String> {
    let metadata = json!({"name": NAME});
    let group = "rbac.authorization.k8s.io";
    let home = format!("/apis/{group}/v1/namespaces/{NAMESPACE}");
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]});
    let subject = json!({"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE});
    let role = json!({"apiGroup": group, "kind": "Role", "name": NAME});
    post(connection, &accounts, &json!({"metadata": metadata})).await?;
    let made = json!({"metadata": metadata, "rules": [rule]});
    post(connection, &format!("{home}/roles"), &made).await?;
    let binding = json!({"metadata": metadata, "subjects": [subject], "roleRef": role});
    post(connection, &format!("{home}/rolebindings"), &binding).await?;
    let request = json!({"spec": {"expirationSeconds": 3600}});
    let answer = post(connection, &format!("{accounts}/{NAME}/token"), &request).await?;
    let token = answer["status"]["token"].as_str();
    Ok(token.context("no token was given")?.to_owned())
}

async fn post(connection: &mut Connection, path: &str, object: &Value) -> Result<Value> {
    let sent = connection.send(Method::POST, path, object.to_string());
    sent.await?.success().with_context(|| path.to_owned())
}
