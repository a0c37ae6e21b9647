//! Connects to a pod.

use std::{io, net::SocketAddr, time::Duration};

use neap_kit::clock::Clock;

use super::net::{Net, Stream};

/// The longest that a connection to a pod may take: a running pod accepts sooner, and after it another
/// pod is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes one attempt.
pub async fn connect(net: &Net, pod: SocketAddr, clock: Clock) -> io::Result<Stream> {
    let stream = clock.within(CONNECT_TIMEOUT, net.connect(pod)).await;
    stream.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
}
