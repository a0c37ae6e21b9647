//! Connections that stop being HTTP, such as WebSockets.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::{body::Incoming, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use super::{
    body::{Answered, Until},
    handle::From,
};

/// Passes the agreement of the pod on to the client, and carries bytes from then on.
pub(super) fn switch(
    from: &From,
    client: Option<OnUpgrade>,
    mut response: Response<Incoming>,
    until: Until,
) -> Response<Answered> {
    let pod = hyper::upgrade::on(&mut response);
    if let Some(client) = client {
        from.talk.upgraded.store(true, Ordering::SeqCst);
        from.resolver.tasks.spawn(async move {
            // The connection to the pod is no longer one for requests.
            let _until = until;
            if let (Ok(client), Ok(pod)) = tokio::join!(client, pod) {
                let (mut client, mut pod) = (TokioIo::new(client), TokioIo::new(pod));
                // Either side may break off, which is between the two of them.
                let _ = copy_bidirectional(&mut client, &mut pod).await;
            }
        });
    }
    response.map(|_| Answered::Here(Full::new(Bytes::new())))
}
