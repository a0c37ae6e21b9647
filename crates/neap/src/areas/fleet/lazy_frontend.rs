//! The frontend of `neap up` before its first request: it accepts connections, and opens the rest when one of
//! them asks for something.

use std::time::Duration;

use axum::{
    Router,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use neap_fleet::{cloud_error::CloudError, http::Failure};
use neap_kit::{clock::Clock, lazy::FirstUse};
use tokio::sync::watch;
use tower::ServiceExt;

/// How long the first request waits for the provider.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How far the provider is.
#[derive(Debug, Clone, Default)]
pub(super) enum Opened {
    /// It was not used, or is starting.
    #[default]
    NotYet,
    /// It could not start, and is tried again.
    Failed(String),
    /// It answers.
    Ready(Router),
}

/// What the routes need. Cheap to clone.
#[derive(Debug, Clone)]
struct LazyFrontend {
    first_use: FirstUse,
    opened: watch::Receiver<Opened>,
    clock: Clock,
}

/// Routes that mark the first use, and lead to those of the provider once it has started.
pub(super) fn router(first_use: FirstUse, opened: watch::Receiver<Opened>, clock: Clock) -> Router {
    let lazy = LazyFrontend {
        first_use,
        opened,
        clock,
    };
    Router::new().fallback(answer).with_state(lazy)
}

async fn answer(State(mut lazy): State<LazyFrontend>, request: Request) -> Response {
    lazy.first_use.mark();
    let decided = lazy
        .opened
        .wait_for(|opened| !matches!(opened, Opened::NotYet));
    let opened = match lazy.clock.within(START_TIMEOUT, decided).await {
        Some(Ok(opened)) => opened.clone(),
        // The provider is stopped.
        Some(Err(_)) | None => Opened::NotYet,
    };
    let why = match opened {
        Opened::Ready(router) => {
            return match router.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
        }
        Opened::Failed(why) => why,
        Opened::NotYet => "it is starting or stopping".to_owned(),
    };
    let message = format!("The provider cannot answer: {why}. Send the request again later.");
    Failure(CloudError::new(503, "ProviderUnavailable", "", message)).into_response()
}
