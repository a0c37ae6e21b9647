//! `pods/exec` and `pods/portforward`: the HTTP connection is upgraded and carries the streams of a
//! command that the embedder's runtime has started, or connections to a pod.
//!
//! Only WebSocket is offered; every kubectl since 1.31 requests it first.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request as HttpRequest, Response, StatusCode,
    header::{
        CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
    },
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sha1::{Digest, Sha1};

use super::{
    Body, Service,
    channels::{self, Protocol},
    forward::{self, Connect},
    tasks::Tasks,
};
use crate::{
    admission::{GroupVersionKind, Operation},
    rest::{Machine, Request, Served, Target, User, admission::ReviewedWrite, registry::missing},
    runtime::{self, ExecOptions, PodRuntime},
    status::{ApiError, Result},
};

/// Fixed by RFC 6455: proves that the server understood the handshake.
const HANDSHAKE: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The subprotocols of `exec`, the best first.
const EXEC: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
/// The subprotocol of `portforward`: SPDY inside of a WebSocket.
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

impl Service {
    /// Whether a request is for `exec`.
    pub(super) fn is_exec(target: &Target) -> bool {
        target.subresource.as_deref() == Some("exec")
    }

    /// Whether a request is for `portforward`.
    pub(super) fn is_forward(target: &Target) -> bool {
        target.subresource.as_deref() == Some("portforward")
    }

    /// Validates the request, answers 101 and forwards connections to the pod.
    pub(super) async fn forward<B>(
        &self,
        target: &Target,
        served: &Served,
        query: &[(String, String)],
        user: User,
        request: HttpRequest<B>,
    ) -> Result<Response<Body>> {
        let (runtime, pod) = self
            .running(target, served, "portforward", request.method())
            .await?;
        let proof = accept(request.headers(), "portforward", &[TUNNEL])?.1;
        admitted_forward(self.machine(), served, target, user, query).await?;
        let session = self.sessions.open()?;
        let upgrade = hyper::upgrade::on(request);
        let connect: Connect = Arc::new(move |port| runtime.connect(pod.clone(), port));
        let clock = self.machine().environment.clock.clone();
        let task = async move {
            let _session = session;
            match upgrade.await {
                Ok(connection) => {
                    forward::forward(TokioIo::new(connection), connect, &*clock).await;
                }
                Err(error) => left(&error),
            }
        };
        Tasks::new(self.machine().environment.spawner.clone()).spawn("port-forward", task);
        Ok(switching(TUNNEL, &proof))
    }

    /// The requested pod, and the runtime that runs it.
    async fn running(
        &self,
        target: &Target,
        served: &Served,
        part: &str,
        method: &Method,
    ) -> Result<(Arc<dyn PodRuntime>, Value)> {
        if !matches!(*method, Method::GET | Method::POST) {
            return Err(ApiError::method_not_allowed());
        }
        let machine = self.machine();
        let runtime = machine.runtime.clone().ok_or_else(missing)?;
        served.subresource(part).ok_or_else(missing)?;
        let bucket = &served.resource.bucket;
        let found = machine.view.get(bucket, &target.path()).await?;
        let pod = found.ok_or_else(|| served.not_found(&target.name))?.value();
        if !runtime::is_scheduled(&pod) {
            let message = format!("pod {} does not have a host assigned", target.name);
            return Err(ApiError::bad_request(message));
        }
        Ok((runtime, pod))
    }

    /// Validates the request, answers 101 and passes the connection to the runtime.
    pub(super) async fn exec<B>(
        &self,
        target: &Target,
        served: &Served,
        query: &[(String, String)],
        user: User,
        request: HttpRequest<B>,
    ) -> Result<Response<Body>> {
        let (runtime, pod) = self
            .running(target, served, "exec", request.method())
            .await?;
        let machine = self.machine();
        let mut options = options(query)?;
        options.container = runtime::container(&pod, &options.container)?;
        let (name, proof) = accept(request.headers(), "exec", &EXEC)?;
        let protocol = Protocol::named(name).ok_or_else(missing)?;
        let options = admitted(machine, served, target, user, options).await?;
        let session = self.sessions.open()?;
        let execution = runtime.exec(pod, options).await?;
        let upgrade = hyper::upgrade::on(request);
        let clock = machine.environment.clock.clone();
        let task = async move {
            let _session = session;
            match upgrade.await {
                Ok(connection) => {
                    channels::carry(TokioIo::new(connection), protocol, execution, &*clock).await;
                }
                Err(error) => left(&error),
            }
        };
        Tasks::new(machine.environment.spawner.clone()).spawn("exec", task);
        Ok(switching(protocol.name(), &proof))
    }
}

fn left(error: &hyper::Error) {
    tracing::debug!(%error, "the client left before the connection was upgraded");
}

/// Runs admission, which may refuse the connection.
async fn admitted_forward(
    machine: &Machine,
    served: &Served,
    target: &Target,
    user: User,
    query: &[(String, String)],
) -> Result<()> {
    const KIND: GroupVersionKind<'static> = GroupVersionKind {
        group: "",
        version: "v1",
        kind: "PodPortForwardOptions",
    };
    let request = Request::connect(target.clone(), user);
    let matter = ReviewedWrite::action(&request, served, Operation::Connect, KIND);
    let ports = query.iter().filter(|(key, _)| key == "ports");
    let ports = ports.flat_map(|(_, value)| value.split(','));
    let ports: Vec<u16> = ports.filter_map(|port| port.parse().ok()).collect();
    let mut shown = json!({"kind": KIND.kind, "apiVersion": "v1", "ports": ports});
    machine
        .admit_action(&matter, &mut shown, &mut Vec::new())
        .await
}

/// Runs admission, which may change the options or refuse the connection.
async fn admitted(
    machine: &Machine,
    served: &Served,
    target: &Target,
    user: User,
    options: ExecOptions,
) -> Result<ExecOptions> {
    const KIND: GroupVersionKind<'static> = GroupVersionKind {
        group: "",
        version: "v1",
        kind: "PodExecOptions",
    };
    let request = Request::connect(target.clone(), user);
    let matter = ReviewedWrite::action(&request, served, Operation::Connect, KIND);
    let mut shown = json!({
        "kind": KIND.kind, "apiVersion": "v1", "command": options.command,
        "stdin": options.stdin, "stdout": options.stdout, "stderr": options.stderr,
        "tty": options.tty, "container": options.container,
    });
    // An upgraded connection has no headers for warnings.
    machine
        .admit_action(&matter, &mut shown, &mut Vec::new())
        .await?;
    let flag = |key: &str| shown[key] == true;
    let command = shown["command"].as_array().into_iter().flatten();
    Ok(ExecOptions {
        container: shown["container"].as_str().unwrap_or_default().into(),
        command: command
            .filter_map(|word| word.as_str().map(Into::into))
            .collect(),
        stdin: flag("stdin"),
        stdout: flag("stdout"),
        stderr: flag("stderr"),
        tty: flag("tty"),
    })
}

fn options(query: &[(String, String)]) -> Result<ExecOptions> {
    let all = |name: &'static str| {
        query
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.clone())
    };
    let flag = |name: &'static str| all(name).any(|value| value != "false" && value != "0");
    let tty = flag("tty");
    let options = ExecOptions {
        container: all("container").next_back().unwrap_or_default(),
        command: all("command").collect(),
        stdin: flag("stdin"),
        stdout: flag("stdout"),
        // A terminal has one output; kube-apiserver drops this flag too.
        stderr: flag("stderr") && !tty,
        tty,
    };
    if options.command.is_empty() {
        return Err(ApiError::bad_request("you must specify at least 1 command"));
    }
    Ok(options)
}

/// The chosen subprotocol among `spoken`, and the WebSocket accept key; or why there is none.
fn accept(
    headers: &HeaderMap,
    what: &str,
    spoken: &[&'static str],
) -> Result<(&'static str, String)> {
    let all = |name| {
        let values = headers
            .get_all(name)
            .iter()
            .filter_map(|value: &HeaderValue| value.to_str().ok());
        values.flat_map(|value| value.split(',')).map(str::trim)
    };
    if !all(UPGRADE).any(|value| value.eq_ignore_ascii_case("websocket")) {
        return Err(ApiError::bad_request(format!(
            "{what} needs a WebSocket upgrade (Upgrade: websocket); SPDY is not offered: use kubectl 1.31 or later",
        )));
    }
    let known = |name: &str| spoken.iter().find(|one| **one == name).copied();
    let protocol = all(SEC_WEBSOCKET_PROTOCOL).find_map(known);
    let protocol = protocol.ok_or_else(|| {
        let spoken = spoken.join(" and ");
        ApiError::bad_request(format!(
            "{what} speaks only the WebSocket subprotocols {spoken}"
        ))
    })?;
    let key = headers
        .get(SEC_WEBSOCKET_KEY)
        .ok_or_else(|| ApiError::bad_request("Sec-WebSocket-Key is missing"))?;
    let digest = Sha1::new()
        .chain_update(key.as_bytes())
        .chain_update(HANDSHAKE)
        .finalize();
    Ok((protocol, BASE64_STANDARD.encode(digest)))
}

fn switching(protocol: &'static str, accept: &str) -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    if let Ok(value) = HeaderValue::from_str(accept) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(k, v)| (k.parse().unwrap(), HeaderValue::from_static(v)))
            .collect()
    }

    #[test]
    fn the_handshake_is_proved_as_the_rfc_says() {
        let headers = headers(&[
            ("upgrade", "websocket"),
            (
                "sec-websocket-protocol",
                "channel.k8s.io, v5.channel.k8s.io",
            ),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ]);
        let proof = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_owned();
        let accepted = accept(&headers, "exec", &EXEC).unwrap();
        assert_eq!(accepted, ("v5.channel.k8s.io", proof));
        let refused = accept(&headers, "portforward", &[TUNNEL]).unwrap_err();
        assert!(refused.message.contains(TUNNEL), "{refused}");
    }

    #[test]
    fn a_plain_request_is_told_what_is_missing() {
        let error = accept(&headers(&[]), "exec", &EXEC).unwrap_err();
        assert!(error.message.contains("WebSocket"), "{error}");
    }

    #[test]
    fn a_terminal_has_no_standard_error_of_its_own() {
        let query = [
            ("command", "sh"),
            ("tty", "true"),
            ("stderr", "true"),
            ("stdout", "true"),
        ];
        let query: Vec<(String, String)> = query.map(|(k, v)| (k.into(), v.into())).to_vec();
        let options = options(&query).unwrap();
        assert!(options.tty && options.stdout && !options.stderr);
    }
}
