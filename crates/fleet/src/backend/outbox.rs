//! Messages of the outbox: what transactions have done, told to those who watch the provider.
//!
//! A message is in the log of one of the backends at least once, and then removed: the log is what other
//! systems follow. A process that ends between the two tells it again.

use neap_store::Error;
use serde_json::Value;

use super::Backend;
use crate::documents::text;

/// How many messages are read at once.
const PAGE: usize = 100;

impl Backend {
    /// Tells all messages. Returns how many there were.
    pub(super) async fn deliver(&self) -> Result<usize, Error> {
        let mut delivered = 0;
        loop {
            let messages = self.store().outbox(PAGE).await?;
            for (number, topic, body) in &messages {
                tell(topic, body);
                self.store().delivered(*number).await?;
            }
            delivered += messages.len();
            if messages.len() < PAGE {
                return Ok(delivered);
            }
        }
    }
}

fn tell(topic: &str, body: &Value) {
    let of = |pointer: &str| text(body, pointer);
    let (cluster, operation) = (of("/cluster"), of("/operation"));
    // The begin has an action, and the end a status.
    let (action, status) = (of("/action"), of("/status"));
    tracing::info!(topic, cluster, operation, action, status, "announced");
}
