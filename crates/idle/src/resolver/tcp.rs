//! Forwards bytes between a client and a pod.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use neap_kit::clock::Clock;
use tokio::io::{AsyncWriteExt, copy_bidirectional_with_sizes};

use super::{
    Resolver,
    accepted_connections::PROBE_LIFETIME,
    connect::connect,
    hold::{HeldRequest, HoldError},
    net::{Net, Stream},
    routes::Route,
    tls::{self, FirstByte},
};
use crate::api::Protocol;

/// The buffer for each direction of a connection.
const COPY_BUFFER: usize = 16 << 10;
/// Bytes that are read from a client before a pod is ready; the rest stays in the kernel.
const MAX_EARLY_BYTES: usize = 16 << 10;
/// A port check closes its connection within this time. A client that stays longer waits for the server
/// to speak first.
const PORT_CHECK_WINDOW: Duration = Duration::from_secs(5);

/// Serves one connection.
pub async fn serve(resolver: Resolver, route: Arc<Route>, mut client: Stream, source: SocketAddr) {
    if !wants_service(&resolver, &route, &client, source).await {
        return;
    }
    let _open = resolver.start_request(&route);
    let mut held = HeldRequest::new(&resolver.held_requests, route, 0);
    match hold(&resolver.net, &mut held, &client, resolver.clock).await {
        Ok((mut pod, early)) => {
            held.finish();
            resolver.record_served(&held);
            drop(held);
            // Client and pod may each close at any time; neither is an error of the resolver.
            let _ = copy(&mut client, &mut pod, early).await;
        }
        Err(NotForwarded::ClientLeft) => {}
        Err(NotForwarded::Hold(refused)) => {
            resolver.record_refused(&held, &refused);
            // A reset shows the client that it was not served; a plain close could pass for an answer.
            client.reset_at_end();
        }
    }
}

/// Whether the connection is a request for the service, and not a port check or a probe.
async fn wants_service(
    resolver: &Resolver,
    route: &Route,
    client: &Stream,
    source: SocketAddr,
) -> bool {
    let probe = resolver.accepted.may_be_probe(source);
    match route.port.protocol {
        Protocol::Tls => {
            let first = tls::peek_first_byte(client, resolver.client_timeout, resolver.clock).await;
            if first == FirstByte::TimedOut {
                resolver.record_client_timeout(Some(&route.service.key), Protocol::Tls);
            }
            first == FirstByte::TlsHandshake
        }
        _ if route.port.ignore_empty => stays(resolver, client, PORT_CHECK_WINDOW).await,
        _ if probe => stays(resolver, client, PROBE_LIFETIME).await,
        _ => true,
    }
}

/// Whether the client sends a byte within `window`, or is still connected after it.
async fn stays(resolver: &Resolver, client: &Stream, window: Duration) -> bool {
    let speaks = resolver.clock.within(window, speaks(client)).await;
    speaks.unwrap_or(true)
}

/// Whether the client sends a byte before it closes.
async fn speaks(client: &Stream) -> bool {
    let mut byte = [0];
    matches!(client.peek(&mut byte).await, Ok(1))
}

/// Why a connection was not forwarded.
enum NotForwarded {
    /// The client closed it.
    ClientLeft,
    Hold(HoldError),
}

/// A connection to a pod, and the bytes that the client has sent meanwhile.
async fn hold(
    net: &Net,
    held: &mut HeldRequest,
    client: &Stream,
    clock: Clock,
) -> Result<(Stream, Bytes), NotForwarded> {
    let mut early = BytesMut::new();
    loop {
        let pod = wait(held, client, &mut early).await?;
        match connect(net, pod, clock).await {
            Ok(pod) => {
                held.record_connected();
                return Ok((pod, early.freeze()));
            }
            // Nothing was sent, so another pod may be tried.
            Err(_) => held.record_refused(),
        }
    }
}

/// The assigned pod. Reads from the client meanwhile, to notice when it leaves.
async fn wait(
    held: &mut HeldRequest,
    client: &Stream,
    early: &mut BytesMut,
) -> Result<SocketAddr, NotForwarded> {
    let mut listening = early.len() < MAX_EARLY_BYTES;
    loop {
        tokio::select! {
            biased;
            pod = held.assigned_pod() => return pod.map_err(NotForwarded::Hold),
            ready = client.readable(), if listening => ready.map_err(|_| NotForwarded::ClientLeft)?,
        }
        let mut buffer = [0; 4096];
        let room = MAX_EARLY_BYTES
            .saturating_sub(early.len())
            .min(buffer.len());
        match client.try_read(&mut buffer[..room]) {
            // A TLS client has to send more before it can be answered.
            Ok(0) if held.route().port.protocol == Protocol::Tls => {
                return Err(NotForwarded::ClientLeft);
            }
            // The client sends nothing more, but may wait for an answer.
            Ok(0) => listening = false,
            Ok(read) => {
                early.extend_from_slice(&buffer[..read]);
                // These bytes are kept in any case; beyond the limit no more are read.
                listening = held.grow(read) && early.len() < MAX_EARLY_BYTES;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(NotForwarded::ClientLeft),
        }
    }
}

/// Copies in both directions until both have ended; a half-close is passed on.
async fn copy(client: &mut Stream, pod: &mut Stream, mut early: Bytes) -> io::Result<()> {
    while early.has_remaining() {
        pod.write_all_buf(&mut early).await?;
    }
    copy_bidirectional_with_sizes(client, pod, COPY_BUFFER, COPY_BUFFER).await?;
    Ok(())
}
