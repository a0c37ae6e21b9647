//! Carries bytes between a client and a pod.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use neap_kit::clock::Clock;
use tokio::io::{AsyncWriteExt, copy_bidirectional_with_sizes};

use super::{
    Resolver,
    connect::connect,
    hold::{Holding, Refused},
    net::{Net, Stream},
    routes::Route,
    taken::PROOF_LASTS,
    tls::{self, First},
};
use crate::api::Protocol;

/// What is in memory for each direction of a connection.
const BUFFER: usize = 16 << 10;
/// So much a client may say before a pod is there; the rest waits in the system.
const EARLY: usize = 16 << 10;
/// Whoever only looks whether a port is open is gone within this time. Who stays for longer waits for
/// the server to speak.
const LOOKS: Duration = Duration::from_secs(5);

/// Carries one connection from beginning to end.
pub async fn serve(resolver: Resolver, route: Arc<Route>, mut client: Stream, source: SocketAddr) {
    if !is_meant(&resolver, &route, &client, source).await {
        return;
    }
    let _open = resolver.came(&route);
    let mut holding = Holding::new(&resolver.holds, route, 0);
    match hold(&resolver.net, &mut holding, &client, resolver.clock).await {
        Ok((mut pod, early)) => {
            holding.settle();
            resolver.served(&holding);
            drop(holding);
            // Either side may break off at any time, which is between the two of them.
            let _ = carry(&mut client, &mut pod, early).await;
        }
        Err(Unserved::Left) => {}
        Err(Unserved::Refused(refused)) => {
            resolver.refused(&holding, &refused);
            // The client is to know that it was not served, instead of taking silence for an answer.
            client.reset_at_end();
        }
    }
}

/// Whether the client wants something of the service. Some only look whether a port is open.
async fn is_meant(resolver: &Resolver, route: &Route, client: &Stream, source: SocketAddr) -> bool {
    let proof = resolver.taken.may_be_proof(source);
    match route.port.protocol {
        Protocol::Tls => {
            let first = tls::first(client, resolver.patience, resolver.clock).await;
            if first == First::Late {
                resolver.too_slow(Some(&route.service.key), Protocol::Tls);
            }
            first == First::Tls
        }
        _ if route.port.ignore_empty => stays(resolver, client, LOOKS).await,
        _ if proof => stays(resolver, client, PROOF_LASTS).await,
        _ => true,
    }
}

/// Whether the client sends a byte or is there after this time.
async fn stays(resolver: &Resolver, client: &Stream, looks: Duration) -> bool {
    let speaks = resolver.clock.within(looks, speaks(client)).await;
    speaks.unwrap_or(true)
}

/// Whether the client sends a byte before it closes.
async fn speaks(client: &Stream) -> bool {
    let mut byte = [0];
    matches!(client.peek(&mut byte).await, Ok(1))
}

enum Unserved {
    /// The client is gone.
    Left,
    Refused(Refused),
}

/// A pod that took the connection, and what the client has said until then.
async fn hold(
    net: &Net,
    holding: &mut Holding,
    client: &Stream,
    clock: Clock,
) -> Result<(Stream, Bytes), Unserved> {
    let mut early = BytesMut::new();
    loop {
        let pod = wait(holding, client, &mut early).await?;
        match connect(net, pod, clock).await {
            Ok(pod) => {
                holding.connected();
                return Ok((pod, early.freeze()));
            }
            // Nothing was sent, so another pod may have it.
            Err(_) => holding.refused(),
        }
    }
}

/// The pod to go to. Whoever waits is listened to, so that it is known when it leaves.
async fn wait(
    holding: &mut Holding,
    client: &Stream,
    early: &mut BytesMut,
) -> Result<SocketAddr, Unserved> {
    let mut listening = early.len() < EARLY;
    loop {
        tokio::select! {
            biased;
            pod = holding.place() => return pod.map_err(Unserved::Refused),
            ready = client.readable(), if listening => ready.map_err(|_| Unserved::Left)?,
        }
        let mut buffer = [0; 4096];
        let room = EARLY.saturating_sub(early.len()).min(buffer.len());
        match client.try_read(&mut buffer[..room]) {
            // Who speaks TLS has more to say before it can be answered.
            Ok(0) if holding.route().port.protocol == Protocol::Tls => return Err(Unserved::Left),
            // Nothing more will come, but an answer may be waited for.
            Ok(0) => listening = false,
            Ok(read) => {
                early.extend_from_slice(&buffer[..read]);
                // What was read is kept in any case; nothing more is if it is too much.
                listening = holding.grow(read) && early.len() < EARLY;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(Unserved::Left),
        }
    }
}

/// Both ways until both have ended; the end of one direction is passed on as such.
async fn carry(client: &mut Stream, pod: &mut Stream, mut early: Bytes) -> io::Result<()> {
    while early.has_remaining() {
        pod.write_all_buf(&mut early).await?;
    }
    copy_bidirectional_with_sizes(client, pod, BUFFER, BUFFER).await?;
    Ok(())
}
