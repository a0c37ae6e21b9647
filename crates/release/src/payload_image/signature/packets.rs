//! The outer form of OpenPGP: armour, packets and numbers.

use base64::{Engine, prelude::BASE64_STANDARD};

/// Why bytes are not OpenPGP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// They end too early.
    #[error("the OpenPGP data end too early")]
    Truncated,
    /// A packet does not begin as one.
    #[error("the data are not OpenPGP")]
    NotOpenPgp,
    /// The armour is damaged.
    #[error("the armour of the OpenPGP data is damaged")]
    Armour,
    /// More packets than a key ring or a signature has.
    #[error("there are more than {MAX_PACKETS} packets")]
    TooMany,
}

/// Packets of one file.
const MAX_PACKETS: usize = 10_000;
const BEGIN: &str = "-----BEGIN PGP";
const END: &str = "-----END PGP";

/// A packet: its kind and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The kind, such as 2 for a signature.
    pub tag: u8,
    /// The content.
    pub body: Vec<u8>,
}

/// Reads bytes from the front.
#[derive(Debug, Clone)]
pub struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// The next bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Error::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next byte.
    pub fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }

    /// The next number of this many bytes, of which four are the most.
    pub fn number(&mut self, bytes: usize) -> Result<u32, Error> {
        let taken = self.take(bytes)?;
        Ok(taken
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    /// The next multi-precision integer, without leading zeros.
    pub fn integer(&mut self) -> Result<&'a [u8], Error> {
        let bits = self.number(2)? as usize;
        let bytes = self.take(bits.div_ceil(8))?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        Ok(&bytes[zeros..])
    }
}

/// The packets of a file, which may be armoured.
pub fn read(content: &[u8]) -> Result<Vec<Packet>, Error> {
    let text = std::str::from_utf8(content).ok();
    let armoured = text.filter(|text| text.trim_start().starts_with(BEGIN));
    match armoured {
        Some(text) => {
            let mut packets = Vec::new();
            for block in blocks(text)? {
                packets.extend(split(&block)?);
            }
            Ok(packets)
        }
        None => split(content),
    }
}

/// The blocks of an armoured text. The checksum at the end is older than the signatures that matter here, and
/// not looked at.
fn blocks(text: &str) -> Result<Vec<Vec<u8>>, Error> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while lines.any(|line| line.starts_with(BEGIN)) {
        let mut encoded = String::new();
        let mut in_headers = true;
        let mut ended = false;
        for line in lines.by_ref() {
            if line.starts_with(END) {
                ended = true;
                break;
            }
            if in_headers {
                in_headers = !line.is_empty();
            } else if !line.starts_with('=') {
                encoded.push_str(line);
            }
        }
        if !ended {
            return Err(Error::Armour);
        }
        let block = BASE64_STANDARD.decode(&encoded);
        blocks.push(block.map_err(|_| Error::Armour)?);
    }
    Ok(blocks)
}

/// The packets of binary data.
pub fn split(content: &[u8]) -> Result<Vec<Packet>, Error> {
    let mut cursor = Cursor(content);
    let mut packets = Vec::new();
    while !cursor.0.is_empty() {
        if packets.len() >= MAX_PACKETS {
            return Err(Error::TooMany);
        }
        packets.push(packet(&mut cursor)?);
    }
    Ok(packets)
}

fn packet(cursor: &mut Cursor<'_>) -> Result<Packet, Error> {
    let head = cursor.byte()?;
    if head & 0x80 == 0 {
        return Err(Error::NotOpenPgp);
    }
    if head & 0x40 == 0 {
        let length = match head & 3 {
            0 => cursor.number(1)? as usize,
            1 => cursor.number(2)? as usize,
            2 => cursor.number(4)? as usize,
            // To the end of the data.
            _ => cursor.0.len(),
        };
        let tag = head >> 2 & 0xf;
        let body = cursor.take(length)?.to_vec();
        return Ok(Packet { tag, body });
    }
    let mut body = Vec::new();
    loop {
        let first = cursor.byte()?;
        let (length, is_last) = match first {
            0..192 => (usize::from(first), true),
            192..224 => {
                let low = usize::from(cursor.byte()?);
                ((usize::from(first) - 192) * 256 + low + 192, true)
            }
            224..255 => (1 << (first & 0x1f), false),
            255 => (cursor.number(4)? as usize, true),
        };
        body.extend_from_slice(cursor.take(length)?);
        if is_last {
            let tag = head & 0x3f;
            return Ok(Packet { tag, body });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_have_five_forms() {
        let bytes = |count: usize| vec![7_u8; count];
        let new = |head: &[u8], count: usize| [head, &bytes(count)].concat();
        for (content, length) in [
            (new(&[0x88, 3], 3), 3),
            (new(&[0x89, 1, 0], 256), 256),
            (new(&[0xa3], 9), 9),
            (new(&[0xc2, 191], 191), 191),
            (new(&[0xc2, 192, 0], 192), 192),
            (new(&[0xc2, 255, 0, 0, 1, 0], 256), 256),
        ] {
            let found = split(&content).unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].body.len(), length);
        }
        let parts = [&[0xcb, 0xe1][..], &[1, 2], &[1, 3]].concat();
        let found = split(&parts).unwrap();
        assert_eq!((found[0].tag, &found[0].body[..]), (11, &[1, 2, 3][..]));
    }

    #[test]
    fn what_is_cut_or_no_openpgp_is_refused() {
        for content in [
            &[0x88, 3, 1][..],
            &[0xc2, 200],
            &[0x12],
            &[0xcb, 0xe1, 1, 2],
        ] {
            assert!(split(content).is_err(), "{content:?}");
        }
        assert_eq!(
            read(b"-----BEGIN PGP MESSAGE-----\n\nAAAA\n"),
            Err(Error::Armour)
        );
        assert!(read(b"-----BEGIN PGP MESSAGE-----\n\n!!\n-----END PGP MESSAGE-----").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(content in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&content);
        }
    }
}
