//! Misbehaving clients, invalid input and damaged data folders, with real sockets and files.

mod bad_input;
mod clients;
mod data_folder;

use std::path::Path;

use neap_load::{client::Client, objects, server::Server};

fn neap() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_neap"))
}

/// Starts a server, in memory unless `data` is given, with the namespace of `neap_load`.
async fn start_server(data: Option<&Path>) -> (Server, Client) {
    let server = Server::start(neap(), data).unwrap();
    let client = server.client().unwrap();
    objects::prepare(&mut client.connect().await.unwrap())
        .await
        .unwrap();
    (server, client)
}
