use std::io;

use neap_idle::resolver::net::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::RequestError;
use crate::payloads::tcp_message;

pub(super) async fn request(stream: &mut Stream, id: u64) -> Result<(), RequestError> {
    // A client that sees the other side closed sends nothing there.
    if !stream.is_quiet() {
        return Err(RequestError::Unsent);
    }
    let sent = tcp_message(id);
    let mut received = vec![0; sent.len()];
    let exchange = async {
        stream.write_all(&sent).await?;
        stream.read_exact(&mut received).await
    };
    match exchange.await {
        Ok(_) if received == sent => Ok(()),
        Ok(_) => Err(RequestError::Lost("other bytes came back".to_owned())),
        // A reset is all that a resolver can send where the protocol is unknown.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
            Err(RequestError::Refused(error.to_string()))
        }
        Err(error) => Err(RequestError::Lost(error.to_string())),
    }
}
