//! One connection of a client that speaks HTTP.

use std::{
    fmt::Display,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use hyper::{
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncReadExt;

use super::{
    answer::BAD,
    client::Tasks,
    guard::Guarded,
    handle::{Entrance, From, handle},
    strict::HEAD,
};
use crate::{
    api::Protocol,
    resolver::{Resolver, events::TurnedAway, net::Stream},
};

/// The first words of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A client that does not answer for this time is gone.
const ALIVE: Duration = Duration::from_secs(30);
/// What is sent last is on its way within this time.
const QUIET: Duration = Duration::from_secs(2);
/// So many requests are under way at once over one connection.
const STREAMS: u32 = 256;

pub(in crate::resolver) const TOO_SLOW: &str = "TooSlow";

/// Carries all requests of one connection.
pub fn serve(
    resolver: Resolver,
    entrance: Entrance,
    client: Stream,
    source: SocketAddr,
) -> impl Future<Output = ()> + Send {
    let leave = resolver.ending.child_token();
    let from = From {
        resolver,
        entrance,
        source,
        talk: Arc::default(),
        leave,
    };
    carry(Arc::new(from), client)
}

async fn carry(from: Arc<From>, mut client: Stream) {
    let Resolver {
        clock, patience, ..
    } = &from.resolver;
    let (first, multiplexed) = match clock.within(*patience, first(&mut client)).await {
        Some(Ok(first)) => first,
        Some(Err(_)) => return,
        None => return from.resolver.too_slow(None, Protocol::Http),
    };
    from.talk.upgraded.store(multiplexed, Ordering::SeqCst);
    let stream = TokioIo::new(Guarded::new(client, first, from.talk.clone()));
    // A client that breaks off is its own affair, and what it says wrongly hyper has answered.
    if multiplexed {
        // Apart, since there are few of them and they are large.
        Box::pin(many(from, stream)).await;
    } else {
        one_at_a_time(from, stream).await;
    }
}

/// Carries requests over HTTP/2.
async fn many(from: Arc<From>, stream: TokioIo<Guarded>) {
    let mut server = http2::Builder::new(Tasks(from.resolver.tasks.clone()));
    server
        .timer(TokioTimer::new())
        .adaptive_window(true)
        .keep_alive_interval(ALIVE)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD as u32);
    let service = service_fn(|request| handle(from.clone(), request));
    let mut connection = pin!(server.serve_connection(stream, service));
    tokio::select! {
        // First, so that what the client has said already is answered also where both are due.
        biased;
        ended = connection.as_mut() => return from.ended(ended),
        () = from.leave.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    from.last_words(connection).await;
}

/// Carries requests over HTTP/1.
async fn one_at_a_time(from: Arc<From>, stream: TokioIo<Guarded>) {
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(from.resolver.patience)
        .max_buf_size(2 * HEAD);
    let service = service_fn(|request| handle(from.clone(), request));
    let connection = server.serve_connection(stream, service);
    let mut connection = pin!(connection.with_upgrades());
    tokio::select! {
        // First: one that has not looked at its first request yet would end without an answer.
        biased;
        ended = connection.as_mut() => return from.ended(ended),
        () = from.leave.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    from.last_words(connection).await;
}

/// A client is not listened to, for this reason.
fn not_listened_to(resolver: &Resolver, reason: &'static str, why: &dyn Display) {
    resolver.meter.emit(&TurnedAway {
        service: None,
        protocol: Protocol::Http,
        reason,
        why: why.to_string(),
    });
}

impl From {
    /// Tells why a connection has ended, if the client is to blame. Others break off as they please.
    fn ended(&self, ended: hyper::Result<()>) {
        let resolver = &self.resolver;
        match (self.talk.bad.get(), ended) {
            (Some(why), _) => not_listened_to(resolver, BAD, why),
            (None, Err(error)) if error.is_parse() => {
                not_listened_to(resolver, BAD, &error);
            }
            (None, Err(error)) if error.is_timeout() => {
                not_listened_to(resolver, TOO_SLOW, &error);
            }
            (None, _) => {}
        }
    }

    /// Resolves once a connection has ended that should, or once nothing was under way for a while:
    /// some clients have begun to say something and do not go on, others do not hear that it is over.
    async fn last_words(&self, mut connection: Pin<&mut impl Future<Output = hyper::Result<()>>>) {
        let mut quiet = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => return self.ended(ended),
                () = self.resolver.clock.sleep(QUIET) => {}
            }
            let still = self.talk.under_way.load(Ordering::SeqCst) == 0;
            if quiet && still {
                return;
            }
            quiet = still;
        }
    }
}

/// What the client says first, and whether that is HTTP/2.
async fn first(client: &mut Stream) -> io::Result<(Bytes, bool)> {
    let mut first = BytesMut::with_capacity(PREFACE.len());
    loop {
        if client.read_buf(&mut first).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let known = first.len().min(PREFACE.len());
        if first[..known] != PREFACE[..known] {
            return Ok((first.freeze(), false));
        }
        if known == PREFACE.len() {
            return Ok((first.freeze(), true));
        }
    }
}
