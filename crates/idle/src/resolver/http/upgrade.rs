//! Upgraded connections, such as WebSockets.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::{body::Incoming, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use super::{
    handle::ClientConnection,
    response_body::{RequestGuards, ResponseBody},
};

/// Forwards the pod's 101 response to the client, and copies bytes from then on.
pub(super) fn switch(
    downstream: &ClientConnection,
    client: Option<OnUpgrade>,
    mut response: Response<Incoming>,
    guards: RequestGuards,
) -> Response<ResponseBody> {
    let pod = hyper::upgrade::on(&mut response);
    if let Some(client) = client {
        downstream.state.upgraded.store(true, Ordering::SeqCst);
        downstream.resolver.tasks.spawn(async move {
            // Dropped at the end: the connection to the pod cannot be used for requests again.
            let _until = guards;
            if let (Ok(client), Ok(pod)) = tokio::join!(client, pod) {
                let (mut client, mut pod) = (TokioIo::new(client), TokioIo::new(pod));
                // Client and pod may each close at any time; neither is an error of the resolver.
                let _ = copy_bidirectional(&mut client, &mut pod).await;
            }
        });
    }
    response.map(|_| ResponseBody::Local(Full::new(Bytes::new())))
}
