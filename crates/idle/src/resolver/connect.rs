//! A connection to a pod.

use std::{io, net::SocketAddr, time::Duration};

use neap_kit::clock::Clock;
use tokio::net::TcpStream;

/// A pod that is there answers sooner; one that does not is put aside and another is tried.
const PATIENCE: Duration = Duration::from_secs(2);

/// One try.
pub async fn connect(pod: SocketAddr, clock: Clock) -> io::Result<TcpStream> {
    let stream = clock.within(PATIENCE, TcpStream::connect(pod)).await;
    let stream = stream.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
