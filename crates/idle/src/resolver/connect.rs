//! A connection to a pod.

use std::{io, net::SocketAddr, time::Duration};

use neap_kit::clock::Clock;

use super::net::{Net, Stream};

/// A pod that is there answers sooner; one that does not is put aside and another is tried.
const PATIENCE: Duration = Duration::from_secs(2);

/// One try.
pub async fn connect(net: &Net, pod: SocketAddr, clock: Clock) -> io::Result<Stream> {
    let stream = clock.within(PATIENCE, net.connect(pod)).await;
    stream.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
}
