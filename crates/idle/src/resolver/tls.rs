//! Reads the ClientHello of a TLS connection without consuming it.

use std::time::Duration;

use neap_kit::clock::Clock;

use super::net::Stream;

/// The content type of a TLS record with a handshake message.
const HANDSHAKE: u8 = 22;
/// The handshake type of the message that opens a connection.
const CLIENT_HELLO: u8 = 1;
/// The extension with the server name.
const SERVER_NAME: u16 = 0;
/// The size of a record's header.
const RECORD_HEADER_LEN: usize = 5;
/// The size of the largest record, with its header.
const MAX_RECORD_LEN: usize = RECORD_HEADER_LEN + (16 << 10);
/// Delay before an incomplete record is read again; it doubles each time.
const PEEK_RETRY_DELAY: Duration = Duration::from_millis(5);

/// The kind of the first byte that a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstByte {
    /// The beginning of a TLS handshake.
    TlsHandshake,
    /// The beginning of another protocol.
    Other,
    /// None: the client closed the connection.
    Closed,
    /// None within the timeout.
    TimedOut,
}

/// The kind of the client's first byte, which is not consumed.
pub async fn peek_first_byte(client: &Stream, patience: Duration, clock: Clock) -> FirstByte {
    let mut first = [0];
    match clock.within(patience, client.peek(&mut first)).await {
        Some(Ok(1)) if first[0] == HANDSHAKE => FirstByte::TlsHandshake,
        Some(Ok(1)) => FirstByte::Other,
        Some(_) => FirstByte::Closed,
        None => FirstByte::TimedOut,
    }
}

/// The server name in the ClientHello, if it arrives in time. Consumes nothing.
pub async fn peek_server_name(client: &Stream, patience: Duration, clock: Clock) -> Option<String> {
    let whole = async {
        let mut record = vec![0; MAX_RECORD_LEN];
        let mut pause = PEEK_RETRY_DELAY;
        loop {
            let read = client.peek(&mut record).await.ok()?;
            let length = record
                .get(3..RECORD_HEADER_LEN)
                .map(|it| u16::from_be_bytes([it[0], it[1]]));
            let whole = length.map_or(0, usize::from) + RECORD_HEADER_LEN;
            if read >= whole.min(MAX_RECORD_LEN) {
                return server_name(&record[..read]).map(str::to_owned);
            }
            clock.sleep(pause).await;
            pause *= 2;
        }
    };
    clock.within(patience, whole).await.flatten()
}

/// The server name in a ClientHello, which may be incomplete.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A ClientHello with an extension before the server name.
    fn hello(name: &str) -> Vec<u8> {
        let mut extensions = vec![0, 23, 0, 0, 0, 0];
        let length = name.len() as u8;
        extensions.extend([0, length + 5, 0, length + 3, 0, 0, length]);
        extensions.extend(name.bytes());
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([2, 1, 1]);
        body.extend([0, 4, 19, 1, 19, 2]);
        body.extend([1, 0]);
        body.extend([0, extensions.len() as u8]);
        body.extend(extensions);
        let mut message = vec![CLIENT_HELLO, 0, 0, body.len() as u8];
        message.extend(body);
        let mut record = vec![HANDSHAKE, 3, 1, 0, message.len() as u8];
        record.extend(message);
        record
    }

    #[test]
    fn the_server_name_is_found_and_nothing_is_read_past_the_end() {
        let hello = hello("shop.example.com");
        assert_eq!(server_name(&hello), Some("shop.example.com"));
        for length in 0..hello.len() {
            assert_eq!(server_name(&hello[..length]), None);
        }
        assert_eq!(server_name(b"GET / HTTP/1.1\r\n\r\n"), None);
    }
}
