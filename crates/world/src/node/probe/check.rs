//! Runs a probe once.

use std::{net::IpAddr, pin::pin};

use futures::{FutureExt, future::FusedFuture};
use http_body_util::Empty;
use hyper::{Request, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use k8s_openapi::{
    api::core::v1::{Container, HTTPGetAction, Probe},
    apimachinery::pkg::util::intstr::IntOrString,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

use super::{grpc, tls};

/// The result of a probe, or the command that it needs.
#[derive(Debug)]
pub(in crate::node) enum ProbeCheck<'a> {
    /// A probe over the network, with its result.
    Answered(Result<(), String>),
    /// A command in the container, which the caller runs.
    Command(&'a [String]),
}

/// Probes the container at `address`; the error is a message.
pub(in crate::node) async fn check<'a>(
    probe: &'a Probe,
    container: &Container,
    address: IpAddr,
) -> ProbeCheck<'a> {
    if let Some(exec) = &probe.exec {
        return ProbeCheck::Command(exec.command.as_deref().unwrap_or_default());
    }
    let port = |port: &IntOrString| named(port, container);
    let answer = if let Some(get) = &probe.http_get {
        match port(&get.port) {
            Some(port) => http(get, address, port).await,
            None => Err(no_port(&get.port)),
        }
    } else if let Some(socket) = &probe.tcp_socket {
        let host = socket.host.clone().unwrap_or_else(|| address.to_string());
        match port(&socket.port) {
            Some(port) => connect(&host, port).await.map(drop),
            None => Err(no_port(&socket.port)),
        }
    } else if let Some(health) = &probe.grpc {
        let port = u16::try_from(health.port).unwrap_or(0);
        let service = health.service.as_deref().unwrap_or_default();
        grpc::check(&address.to_string(), port, service).await
    } else {
        Ok(())
    };
    ProbeCheck::Answered(answer)
}

fn named(port: &IntOrString, container: &Container) -> Option<u16> {
    match port {
        IntOrString::Int(number) => u16::try_from(*number).ok(),
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let found = ports.find(|port| port.name.as_ref() == Some(name))?;
            found.container_port.try_into().ok()
        }
    }
}

fn no_port(port: &IntOrString) -> String {
    let name = match port {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(name) => format!("\"{name}\""),
    };
    format!("the container has no port {name}")
}

pub(super) async fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let connected = TcpStream::connect((host, port)).await;
    connected.map_err(|error| format!("dial tcp {host}:{port}: {error}"))
}

/// Any status from 200 to 399 is a success.
async fn http(get: &HTTPGetAction, address: IpAddr, port: u16) -> Result<(), String> {
    let host = get.host.clone().unwrap_or_else(|| address.to_string());
    let path = get.path.as_deref().unwrap_or_default();
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    let encrypted = get.scheme.as_deref() == Some("HTTPS");
    let scheme = if encrypted { "https" } else { "http" };
    let message =
        |error: &dyn std::error::Error| format!("Get \"{scheme}://{host}:{port}{path}\": {error}");
    let request =
        probe_request(get, &path, &format!("{host}:{port}")).map_err(|error| message(&error))?;
    let stream = connect(&host, port).await?;
    let code = if encrypted {
        let stream = tls::over(stream, address).await;
        send(stream.map_err(|error| message(&error))?, request).await
    } else {
        send(stream, request).await
    };
    let code = code.map_err(|error| message(&error))?;
    if (200..400).contains(&code) {
        return Ok(());
    }
    Err(format!("HTTP probe failed with statuscode: {code}"))
}

/// The request. A header of the pod replaces a default one.
fn probe_request(
    get: &HTTPGetAction,
    path: &str,
    authority: &str,
) -> Result<Request<Empty<Bytes>>, hyper::http::Error> {
    let own = |name: &str| {
        let mut named = get.http_headers.iter().flatten();
        !named.any(|header| header.name.eq_ignore_ascii_case(name))
    };
    let mut request = Request::get(path);
    for (name, value) in [
        ("host", authority),
        ("user-agent", "kube-probe/neap"),
        ("accept", "*/*"),
    ] {
        if own(name) {
            request = request.header(name, value);
        }
    }
    for header in get.http_headers.iter().flatten() {
        request = request.header(&header.name, &header.value);
    }
    request.body(Empty::new())
}

/// Returns the status code of the response.
async fn send<S>(stream: S, request: Request<Empty<Bytes>>) -> Result<u16, hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut connection = pin!(connection.fuse());
    let mut sent = pin!(sender.send_request(request));
    // The connection may end together with the response, which then counts.
    loop {
        tokio::select! {
            biased;
            answer = &mut sent => return Ok(answer?.status().as_u16()),
            _ = &mut connection, if !connection.is_terminated() => {}
        }
    }
}
