//! Looks at the first words of a TLS connection without taking them.

use std::time::Duration;

use neap_kit::clock::Clock;
use tokio::net::TcpStream;

/// The kind of a TLS record that carries a handshake.
const HANDSHAKE: u8 = 22;
/// The kind of a handshake message that begins a connection.
const CLIENT_HELLO: u8 = 1;
/// The extension in which a client says whom it means.
const SERVER_NAME: u16 = 0;
/// Whoever connects and says nothing is let go after this time.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether the client begins to speak TLS. Its bytes stay where they are.
pub async fn says_hello(client: &TcpStream, clock: Clock) -> bool {
    let mut first = [0; 1024];
    match clock.within(PATIENCE, client.peek(&mut first)).await {
        Some(Ok(read)) if read > 0 && first[0] == HANDSHAKE => {
            tracing::debug!(name = server_name(&first[..read]), "a TLS connection");
            true
        }
        _ => false,
    }
}

/// Whom a ClientHello means, as far as it is there.
pub fn server_name(record: &[u8]) -> Option<&str> {
    let mut rest = Reader(record);
    if rest.byte()? != HANDSHAKE {
        return None;
    }
    rest.skip(4)?;
    if rest.byte()? != CLIENT_HELLO {
        return None;
    }
    // Its length, version and random number.
    rest.skip(3 + 2 + 32)?;
    let session = rest.byte()?;
    rest.skip(session.into())?;
    let ciphers = rest.number()?;
    rest.skip(ciphers.into())?;
    let compressions = rest.byte()?;
    rest.skip(compressions.into())?;
    let _all = rest.number()?;
    loop {
        let (kind, length) = (rest.number()?, rest.number()?);
        let mut extension = Reader(rest.skip(length.into())?);
        if kind == SERVER_NAME {
            let _list = extension.number()?;
            let _host = extension.byte()?;
            let length = extension.number()?;
            return std::str::from_utf8(extension.skip(length.into())?).ok();
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn skip(&mut self, length: usize) -> Option<&'a [u8]> {
        let (skipped, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(skipped)
    }

    fn byte(&mut self) -> Option<u8> {
        self.skip(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Option<u16> {
        self.skip(2)
            .map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }
}
