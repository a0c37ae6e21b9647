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
/// What stands before the content of a record, and the most that is in one.
const HEAD: usize = 5;
const LONGEST: usize = HEAD + (16 << 10);
/// The rest of a message that comes in pieces is looked for after this time, and after twice as long
/// each time.
const PIECES: Duration = Duration::from_millis(5);

/// What a client says first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// It begins to speak TLS.
    Tls,
    /// Something else.
    Other,
    /// Nothing, and it has left.
    Closed,
    /// Nothing within the time that it has.
    Late,
}

/// What the client says first. Its bytes stay where they are.
pub async fn first(client: &Stream, patience: Duration, clock: Clock) -> First {
    let mut first = [0];
    match clock.within(patience, client.peek(&mut first)).await {
        Some(Ok(1)) if first[0] == HANDSHAKE => First::Tls,
        Some(Ok(1)) => First::Other,
        Some(_) => First::Closed,
        None => First::Late,
    }
}

/// Whom a client that has begun means, if it says so before the time is up.
pub async fn name(client: &Stream, patience: Duration, clock: Clock) -> Option<String> {
    let whole = async {
        let mut record = vec![0; LONGEST];
        let mut pause = PIECES;
        loop {
            let read = client.peek(&mut record).await.ok()?;
            let length = record
                .get(3..HEAD)
                .map(|it| u16::from_be_bytes([it[0], it[1]]));
            let whole = length.map_or(0, usize::from) + HEAD;
            if read >= whole.min(LONGEST) {
                return server_name(&record[..read]).map(str::to_owned);
            }
            clock.sleep(pause).await;
            pause *= 2;
        }
    };
    clock.within(patience, whole).await.flatten()
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
