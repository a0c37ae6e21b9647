//! Looks at the first words of a TLS connection without taking them.

use std::time::Duration;

use neap_kit::clock::Clock;

use super::net::Stream;

/// The kind of a TLS record that carries a handshake.
const HANDSHAKE: u8 = 22;
/// The kind of a handshake message that begins a connection.
const CLIENT_HELLO: u8 = 1;
/// The extension in which a client says whom it means.
const SERVER_NAME: u16 = 0;
/// Whether the client begins to speak TLS. Its bytes stay where they are.
pub async fn says_hello(client: &Stream, patience: Duration, clock: Clock) -> bool {
    let mut first = [0; 1024];
    match clock.within(patience, client.peek(&mut first)).await {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A hello as clients send it, with an extension before the name.
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
    fn the_name_is_found_and_no_part_of_a_hello_is_read_past_its_end() {
        let hello = hello("shop.example.com");
        assert_eq!(server_name(&hello), Some("shop.example.com"));
        for length in 0..hello.len() {
            assert_eq!(server_name(&hello[..length]), None);
        }
        assert_eq!(server_name(b"GET / HTTP/1.1\r\n\r\n"), None);
    }
}
