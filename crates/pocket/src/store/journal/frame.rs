//! The byte layout of a file: a file header, then frames, each holding records. Pure.
//!
//! All numbers are little-endian. A [frame](Frame) is the unit of atomicity: its checksums decide
//! whether all of its records exist or none. They also cover the position of the frame (file and
//! offset), so that a frame that was stored *inside* an object, or copied elsewhere, is never
//! mistaken for one.
//!
//! ```text
//! file    magic 8, version 4, step 4, base revision 8, zero 4, checksum 4
//! frame   mark 4, payload length 4, kind 4, payload checksum 4, after 8, last 8, checksum 4, payload
//! record  revision 8, key length 4, value length 4 (all ones: deleted), key, value
//! ```
//!
//! The header's own checksum makes the payload length trustworthy even if the payload is torn.

use super::{
    Record,
    header::{u32_at, u64_at},
    record,
};

/// Size of the header of every frame.
pub(super) const FRAME_HEADER: usize = 36;
/// The largest payload of a frame.
pub(super) const PAYLOAD_LIMIT: usize = 1 << 30;

const MARK: [u8; 4] = *b"\xf7NPF";

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// Records that were committed together.
    Batch = 1,
    /// The log ends here and continues in the one whose base is this frame's `last`.
    Seal = 2,
    /// The journal was closed in order.
    Close = 3,
    /// Some of the objects of a snapshot.
    Objects = 4,
    /// The end of a snapshot; `after` counts its objects.
    End = 5,
}

impl FrameKind {
    fn decode(number: u32) -> Option<Self> {
        [
            Self::Batch,
            Self::Seal,
            Self::Close,
            Self::Objects,
            Self::End,
        ]
        .into_iter()
        .find(|kind| *kind as u32 == number)
    }
}

/// A valid frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) kind: FrameKind,
    /// The revision before this frame.
    pub(super) after: u64,
    /// The revision once it is applied.
    pub(super) last: u64,
    pub(super) payload: &'a [u8],
}

impl Frame<'_> {
    /// Size of the whole frame.
    pub(super) fn len(&self) -> usize {
        FRAME_HEADER + self.payload.len()
    }
}

/// The content at an offset of a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum FrameState<'a> {
    Frame(Frame<'a>),
    /// Nothing was written here.
    Blank,
    /// No frame header.
    NoHeader,
    /// A frame begins here, and must end at this offset, but its payload is invalid.
    NoPayload(usize),
    /// A frame begins here, and the file ends before it does.
    CutOff,
}

impl<'a> FrameState<'a> {
    /// Reads the content at `offset` of the file whose base is `base`.
    pub(super) fn at(file: &'a [u8], base: u64, offset: usize) -> Self {
        let rest = file.get(offset..).unwrap_or_default();
        let Some(header) = rest.get(..FRAME_HEADER) else {
            return if is_blank(rest) {
                Self::Blank
            } else {
                Self::NoHeader
            };
        };
        if is_blank(header) {
            return Self::Blank;
        }
        let Some((frame, len, checksum)) = header_at(header, base, offset) else {
            return Self::NoHeader;
        };
        let Some(payload) = rest.get(FRAME_HEADER..FRAME_HEADER + len) else {
            return Self::CutOff;
        };
        if crc32c::crc32c(payload) != checksum {
            return Self::NoPayload(offset + FRAME_HEADER + len);
        }
        Self::Frame(Frame { payload, ..frame })
    }
}

fn header_at(header: &[u8], base: u64, offset: usize) -> Option<(Frame<'_>, usize, u32)> {
    let sound = header.starts_with(&MARK)
        && u32_at(header, 32)? == header_checksum(header, base, offset as u64);
    if !sound {
        return None;
    }
    let frame = Frame {
        kind: FrameKind::decode(u32_at(header, 8)?)?,
        after: u64_at(header, 16)?,
        last: u64_at(header, 24)?,
        payload: &[],
    };
    Some((frame, u32_at(header, 4)? as usize, u32_at(header, 12)?))
}

fn header_checksum(header: &[u8], base: u64, offset: u64) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&base.to_le_bytes());
    place[8..].copy_from_slice(&offset.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&place), &header[..32])
}

/// Whether a valid frame header lies anywhere after `offset`.
pub(super) fn any_header_after(file: &[u8], base: u64, offset: usize) -> bool {
    let rest = file.get(offset + 1..).unwrap_or_default();
    rest.windows(FRAME_HEADER).enumerate().any(|(at, header)| {
        header[0] == MARK[0] && header_at(header, base, offset + 1 + at).is_some()
    })
}

/// Whether all bytes are zero.
pub(super) fn is_blank(bytes: &[u8]) -> bool {
    static ZEROES: [u8; 4096] = [0; 4096];
    bytes
        .chunks(ZEROES.len())
        .all(|chunk| chunk == &ZEROES[..chunk.len()])
}

/// A frame under construction: records are pushed, then [`FrameBuffer::finish`] completes it.
#[derive(Debug, Default)]
pub(super) struct FrameBuffer(Vec<u8>);

impl FrameBuffer {
    /// Starts again, keeping the memory unless an unusually large frame made it grow.
    pub(super) fn clear(&mut self) {
        const MAX_RETAINED_BYTES: usize = 1 << 20;
        self.0.clear();
        self.0.shrink_to(MAX_RETAINED_BYTES);
        self.0.resize(FRAME_HEADER, 0);
    }

    pub(super) fn push(&mut self, record: &Record) {
        record::encode(record, &mut self.0);
    }

    pub(super) fn payload_len(&self) -> usize {
        self.0.len().saturating_sub(FRAME_HEADER)
    }

    /// The bytes of the frame, to be written at `offset` of the file whose base is `base`.
    pub(super) fn finish(
        &mut self,
        base: u64,
        offset: u64,
        kind: FrameKind,
        after: u64,
        last: u64,
    ) -> &[u8] {
        let len = self.payload_len() as u32;
        let checksum = crc32c::crc32c(&self.0[FRAME_HEADER..]);
        let header = &mut self.0[..FRAME_HEADER];
        header[..4].copy_from_slice(&MARK);
        header[4..8].copy_from_slice(&len.to_le_bytes());
        header[8..12].copy_from_slice(&(kind as u32).to_le_bytes());
        header[12..16].copy_from_slice(&checksum.to_le_bytes());
        header[16..24].copy_from_slice(&after.to_le_bytes());
        header[24..32].copy_from_slice(&last.to_le_bytes());
        let checksum = header_checksum(header, base, offset);
        header[32..].copy_from_slice(&checksum.to_le_bytes());
        &self.0
    }
}
