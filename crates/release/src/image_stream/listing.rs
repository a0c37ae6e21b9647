//! Lists ImageStreams for passes that keep no cache.

use kube::{Api, Client, api::ListParams};

use super::api::ImageStream;

/// Streams in one page of a list.
const PAGE: u32 = 200;

/// All streams of a namespace.
pub async fn list(client: &Client, namespace: &str) -> Result<Vec<ImageStream>, kube::Error> {
    let api: Api<ImageStream> = Api::namespaced(client.clone(), namespace);
    let mut streams = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = api.list(&page).await?;
        streams.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(streams),
        }
    }
}
