//! Header blocks.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::ProtocolError;

/// Headers of a block, at most; no known client sends more.
const MAX_HEADERS: u32 = 64;

/// Names and values of a block.
pub(super) fn read(block: Vec<u8>) -> Result<BTreeMap<String, String>, ProtocolError> {
    const SHORT: ProtocolError = ProtocolError("truncated headers");
    let mut block = Bytes::from(block);
    let count = block.try_get_u32().map_err(|_| SHORT)?;
    if count > MAX_HEADERS {
        return Err(ProtocolError("too many headers"));
    }
    let mut text = || {
        let length = block.try_get_u32().map_err(|_| SHORT)? as usize;
        if length > block.len() {
            return Err(SHORT);
        }
        Ok(String::from_utf8_lossy(&block.split_to(length)).into_owned())
    };
    (0..count).map(|_| Ok((text()?, text()?))).collect()
}

/// Encodes the headers of replies, of which there are none: a compressed stream of empty blocks.
#[derive(Debug, Default)]
pub(in crate::wire) struct Replies {
    has_begun: bool,
}

impl Replies {
    pub(super) fn next(&mut self) -> BytesMut {
        let mut block = BytesMut::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            block.put_slice(&[0x78, 0x01]);
        }
        // A stored block of four bytes, the number of headers; then an empty block that flushes.
        block.put_slice(&[0, 4, 0, 0xfb, 0xff]);
        block.put_u32(0);
        block.put_slice(&[0, 0, 0, 0xff, 0xff]);
        block
    }
}

#[cfg(test)]
mod tests {
    use super::{super::inflate::Inflate, *};

    #[test]
    fn replies_have_no_headers() {
        let (mut replies, mut stream) = (Replies::default(), Inflate::default());
        for _ in 0..3 {
            let block = stream.next(&replies.next()).unwrap();
            assert!(read(block).unwrap().is_empty());
        }
    }

    #[test]
    fn a_block_that_is_cut_off_is_refused() {
        let whole = b"\0\0\0\x01\0\0\0\x04port\0\0\0\x0280";
        let read_whole = read(whole.to_vec()).unwrap();
        assert_eq!(read_whole["port"], "80");
        for length in 0..whole.len() {
            assert!(read(whole[..length].to_vec()).is_err(), "{length}");
        }
    }
}
