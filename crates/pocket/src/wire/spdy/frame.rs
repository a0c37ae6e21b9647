//! Frames, as they come out of a row of bytes and go into it.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::{Broken, Replies, headers, inflate::Inflate};

/// The longest frame that a peer may send.
const LONGEST: usize = 4 << 20;
const VERSION: u16 = 0x8003;
/// The stream ends with this frame.
const END: u8 = 1;
const HEAD: usize = 8;

/// What a peer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::wire) enum Frame {
    /// Opens a stream.
    Open {
        stream: u32,
        headers: BTreeMap<String, String>,
    },
    /// Bytes of a stream, maybe its last.
    Data {
        stream: u32,
        data: Bytes,
        ends: bool,
    },
    /// Nothing more of this stream is wanted.
    Reset { stream: u32 },
    /// Wants to have this back.
    Ping { number: u32 },
    /// Leaves.
    Away,
    /// Of no interest.
    Other,
}

/// Takes frames out of bytes.
#[derive(Debug, Default)]
pub(in crate::wire) struct Framer {
    bytes: BytesMut,
    headers: Inflate,
}

impl Framer {
    pub(in crate::wire) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next frame, if all of it is there.
    pub(in crate::wire) fn next(&mut self) -> Result<Option<Frame>, Broken> {
        if self.bytes.len() < HEAD {
            return Ok(None);
        }
        let mut head = &self.bytes[..HEAD];
        let (first, second) = (head.get_u32(), head.get_u32());
        let (flags, length) = ((second >> 24) as u8, (second & 0xff_ffff) as usize);
        if length > LONGEST {
            return Err(Broken("a frame that is too long"));
        }
        if self.bytes.len() < HEAD + length {
            return Ok(None);
        }
        self.bytes.advance(HEAD);
        let content = self.bytes.split_to(length).freeze();
        if first >> 31 == 0 {
            let ends = flags & END != 0;
            return Ok(Some(Frame::Data {
                stream: first,
                data: content,
                ends,
            }));
        }
        if (first >> 16) as u16 != VERSION {
            return Err(Broken("another version of the protocol"));
        }
        self.control(first & 0xffff, content).map(Some)
    }

    fn control(&mut self, kind: u32, mut content: Bytes) -> Result<Frame, Broken> {
        const SHORT: Broken = Broken("a frame that is too short");
        let mut number = || content.try_get_u32().map_err(|_| SHORT);
        match kind {
            1 => {
                let (stream, _) = (number()? & 0x7fff_ffff, number()?);
                if content.len() < 2 {
                    return Err(SHORT);
                }
                content.advance(2);
                let headers = headers::read(self.headers.next(&content)?)?;
                Ok(Frame::Open { stream, headers })
            }
            3 => number().map(|stream| Frame::Reset { stream }),
            6 => number().map(|number| Frame::Ping { number }),
            7 => Ok(Frame::Away),
            // They are not needed, but what comes after refers to them.
            2 | 8 => {
                number()?;
                self.headers.next(&content).map(|_| Frame::Other)
            }
            _ => Ok(Frame::Other),
        }
    }
}

fn control(kind: u16, content: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEAD + content.len());
    frame.put_u16(VERSION);
    frame.put_u16(kind);
    frame.put_u32(u32::try_from(content.len()).unwrap_or_default());
    frame.put_slice(content);
    frame.freeze()
}

impl Frame {
    /// Accepts a stream.
    pub(in crate::wire) fn accepted(stream: u32, replies: &mut Replies) -> Bytes {
        let content = [&stream.to_be_bytes()[..], &replies.next()].concat();
        control(2, &content)
    }

    /// Gives a ping back.
    pub(in crate::wire) fn pong(number: u32) -> Bytes {
        control(6, &number.to_be_bytes())
    }

    /// Bytes of a stream, and its end if there are no more.
    pub(in crate::wire) fn data(stream: u32, data: &[u8], ends: bool) -> Bytes {
        let mut frame = BytesMut::with_capacity(HEAD + data.len());
        frame.put_u32(stream);
        let length = u32::try_from(data.len()).unwrap_or_default();
        frame.put_u32(u32::from(ends) << 24 | length);
        frame.put_slice(data);
        frame.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let mut replies = Replies::default();
        let sent = [
            Frame::data(5, b"some", false),
            Frame::pong(9),
            Frame::accepted(5, &mut replies),
            Frame::data(5, b"", true),
            control(3, &[0, 0, 0, 5, 0, 0, 0, 1]),
            control(7, &[0; 8]),
        ];
        let (mut framer, mut seen) = (Framer::default(), Vec::new());
        for byte in sent.concat() {
            framer.add(&[byte]);
            seen.extend(framer.next().unwrap());
        }
        let data = |data: &'static [u8], ends| Frame::Data {
            stream: 5,
            data: data.into(),
            ends,
        };
        let expected = [
            data(b"some", false),
            Frame::Ping { number: 9 },
            Frame::Other,
            data(b"", true),
            Frame::Reset { stream: 5 },
            Frame::Away,
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for bytes in [
            &[0x80, 2, 0, 1, 0, 0, 0, 0][..],
            &[0, 0, 0, 1, 0, 0xff, 0xff, 0xff],
            &[0x80, 3, 0, 1, 0, 0, 0, 2, 0, 0],
        ] {
            let mut framer = Framer::default();
            framer.add(bytes);
            assert!(framer.next().is_err(), "{bytes:?}");
        }
    }
}
