//! A resolver as a service of its process.

use neap_kit::manager::Service;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    drain::{Ending, Patience, drain},
    follow::Follow,
    http::Entrance,
    lanes::Lanes,
    listen,
    net::Listener,
};

/// Answers on the ports of the table that `follow` keeps, and on `shared` for all services, until
/// told to stop; then ends as [`drain`] does. It is not ready while it ends.
pub fn service(
    lanes: impl Into<Lanes>,
    follow: Follow,
    shared: TcpListener,
    ending: Ending,
    patience: Patience,
) -> Service {
    let lanes = lanes.into();
    let begun = ending.clone();
    let run = move |stop| run(lanes, follow, shared, ending, patience, stop);
    Service::new("resolver", run)
        .ready_once(move || begun.has_begun().then(|| "it is ending".to_owned()))
}

async fn run(
    lanes: Lanes,
    follow: Follow,
    shared: TcpListener,
    ending: Ending,
    patience: Patience,
    stop: CancellationToken,
) {
    let resolver = &lanes.resolver;
    // What is held is still let go while the listeners are closed, so these end after them.
    let (listeners, rest) = (CancellationToken::new(), CancellationToken::new());
    let end = async {
        stop.cancelled().await;
        let left = drain(resolver, &ending, &listeners, patience).await;
        if left > 0 {
            tracing::warn!(left, "connections were cut off at the end");
        }
        rest.cancel();
    };
    let shared = match Listener::over(shared) {
        Ok(shared) => shared,
        Err(error) => return tracing::error!(%error, "the shared port cannot be listened on"),
    };
    let everyone = listen::accept(lanes.clone(), shared, Entrance::Shared, listeners.clone());
    tokio::join!(
        end,
        everyone,
        follow.run(rest.clone()),
        resolver.holds.clone().run(rest.clone()),
        listen::follow(lanes.clone(), listeners.clone()),
    );
}
