use std::io;

use neap_idle::resolver::net::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Trouble;
use crate::words::said;

pub(super) async fn ask(stream: &mut Stream, id: u64) -> Result<(), Trouble> {
    // Whoever sees that the other side has ended sends nothing there.
    if !stream.is_quiet() {
        return Err(Trouble::Unsent);
    }
    let said = said(id);
    let mut heard = vec![0; said.len()];
    let exchange = async {
        stream.write_all(&said).await?;
        stream.read_exact(&mut heard).await
    };
    match exchange.await {
        Ok(_) if heard == said => Ok(()),
        Ok(_) => Err(Trouble::Lost("other bytes came back".to_owned())),
        // All that a resolver can say where nothing is known of what is spoken.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
            Err(Trouble::Refused(error.to_string()))
        }
        Err(error) => Err(Trouble::Lost(error.to_string())),
    }
}
