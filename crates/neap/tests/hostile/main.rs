//! What hostile clients and a hostile disk must not be able to do, over real sockets and files.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what a test needs and lacks fails it"
)]

mod clients;
mod folder;
mod input;

use std::path::Path;

use neap_load::{client::Client, objects, server::Server};

fn neap() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_neap"))
}

/// A server, in memory unless there is a folder, with the namespace of all load.
async fn up(data: Option<&Path>) -> (Server, Client) {
    let server = Server::start(neap(), data).unwrap();
    let client = server.client().unwrap();
    objects::prepare(&mut client.connect().await.unwrap())
        .await
        .unwrap();
    (server, client)
}
