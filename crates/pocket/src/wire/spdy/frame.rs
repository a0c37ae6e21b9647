//! Encoding and decoding of frames.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::{ProtocolError, Replies, headers, inflate::Inflate};

/// Bytes of a frame from a peer, at most.
const MAX_FRAME_BYTES: usize = 4 << 20;
const VERSION: u16 = 0x8003;
/// The flag of a stream's last frame.
const END_FLAG: u8 = 1;
const FRAME_HEADER_BYTES: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::wire) enum SpdyFrame {
    /// Opens a stream.
    Open {
        stream: u32,
        headers: BTreeMap<String, String>,
    },
    /// Data of a stream, perhaps its last.
    Data {
        stream: u32,
        data: Bytes,
        ends: bool,
    },
    /// The peer does not want more of this stream.
    Reset { stream: u32 },
    /// To be sent back.
    Ping { number: u32 },
    /// The peer closes the connection.
    Away,
    /// Ignored.
    Other,
}

/// The reason of a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::wire) enum Why {
    /// The stream was refused.
    Refused = 3,
    /// More data came than was read.
    Overflow = 7,
}

/// Extracts frames from bytes.
#[derive(Debug, Default)]
pub(in crate::wire) struct Framer {
    bytes: BytesMut,
    headers: Inflate,
}

impl Framer {
    pub(in crate::wire) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next frame, if it is complete.
    pub(in crate::wire) fn next(&mut self) -> Result<Option<SpdyFrame>, ProtocolError> {
        if self.bytes.len() < FRAME_HEADER_BYTES {
            return Ok(None);
        }
        let mut head = &self.bytes[..FRAME_HEADER_BYTES];
        let (first, second) = (head.get_u32(), head.get_u32());
        let (flags, length) = ((second >> 24) as u8, (second & 0xff_ffff) as usize);
        if length > MAX_FRAME_BYTES {
            return Err(ProtocolError("a frame that is too large"));
        }
        if self.bytes.len() < FRAME_HEADER_BYTES + length {
            return Ok(None);
        }
        self.bytes.advance(FRAME_HEADER_BYTES);
        let content = self.bytes.split_to(length).freeze();
        if first >> 31 == 0 {
            let ends = flags & END_FLAG != 0;
            return Ok(Some(SpdyFrame::Data {
                stream: first,
                data: content,
                ends,
            }));
        }
        if (first >> 16) as u16 != VERSION {
            return Err(ProtocolError("an unsupported protocol version"));
        }
        self.control(first & 0xffff, content).map(Some)
    }

    fn control(&mut self, kind: u32, mut content: Bytes) -> Result<SpdyFrame, ProtocolError> {
        const SHORT: ProtocolError = ProtocolError("a frame that is too short");
        let mut number = || content.try_get_u32().map_err(|_| SHORT);
        match kind {
            1 => {
                let (stream, _) = (number()? & 0x7fff_ffff, number()?);
                if content.len() < 2 {
                    return Err(SHORT);
                }
                content.advance(2);
                let headers = headers::read(self.headers.next(&content)?)?;
                Ok(SpdyFrame::Open { stream, headers })
            }
            3 => number().map(|stream| SpdyFrame::Reset { stream }),
            6 => number().map(|number| SpdyFrame::Ping { number }),
            7 => Ok(SpdyFrame::Away),
            // They are not needed, but later headers refer to their compressed content.
            2 | 8 => {
                number()?;
                self.headers.next(&content).map(|_| SpdyFrame::Other)
            }
            _ => Ok(SpdyFrame::Other),
        }
    }
}

fn control(kind: u16, content: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(FRAME_HEADER_BYTES + content.len());
    frame.put_u16(VERSION);
    frame.put_u16(kind);
    frame.put_u32(u32::try_from(content.len()).unwrap_or_default());
    frame.put_slice(content);
    frame.freeze()
}

impl SpdyFrame {
    /// Accepts a stream.
    pub(in crate::wire) fn accepted(stream: u32, replies: &mut Replies) -> Bytes {
        let content = [&stream.to_be_bytes()[..], &replies.next()].concat();
        control(2, &content)
    }

    /// Resets a stream.
    pub(in crate::wire) fn reset(stream: u32, why: Why) -> Bytes {
        let content = [stream.to_be_bytes(), (why as u32).to_be_bytes()].concat();
        control(3, &content)
    }

    /// Answers a ping.
    pub(in crate::wire) fn pong(number: u32) -> Bytes {
        control(6, &number.to_be_bytes())
    }

    /// Data of a stream, and its end.
    pub(in crate::wire) fn data(stream: u32, data: &[u8], ends: bool) -> Bytes {
        let mut frame = BytesMut::with_capacity(FRAME_HEADER_BYTES + data.len());
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
            SpdyFrame::data(5, b"some", false),
            SpdyFrame::pong(9),
            SpdyFrame::accepted(5, &mut replies),
            SpdyFrame::data(5, b"", true),
            SpdyFrame::reset(5, Why::Refused),
            control(7, &[0; 8]),
        ];
        let (mut framer, mut seen) = (Framer::default(), Vec::new());
        for byte in sent.concat() {
            framer.add(&[byte]);
            seen.extend(framer.next().unwrap());
        }
        let data = |data: &'static [u8], ends| SpdyFrame::Data {
            stream: 5,
            data: data.into(),
            ends,
        };
        let expected = [
            data(b"some", false),
            SpdyFrame::Ping { number: 9 },
            SpdyFrame::Other,
            data(b"", true),
            SpdyFrame::Reset { stream: 5 },
            SpdyFrame::Away,
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
