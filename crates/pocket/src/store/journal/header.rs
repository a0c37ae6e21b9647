//! The header of every file; see [`super::frame`] for the whole layout. Pure.

/// Size of the header of every file.
pub(super) const FILE_HEADER: usize = 32;

const VERSION: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Log,
    Snapshot,
}

impl FileKind {
    fn magic(self) -> [u8; 8] {
        match self {
            Self::Log => *b"NEAPLOG\n",
            Self::Snapshot => *b"NEAPSNP\n",
        }
    }
}

/// The beginning of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) kind: FileKind,
    /// The length of a log is always a multiple of this; zero in a snapshot.
    pub(super) step: u32,
    /// The revision before the first record of a log; the revision of a snapshot.
    pub(super) base: u64,
}

impl FileHeader {
    pub(super) fn encode(self) -> [u8; FILE_HEADER] {
        let mut bytes = [0; FILE_HEADER];
        bytes[..8].copy_from_slice(&self.kind.magic());
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.step.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.base.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header of `file`, if it begins with a valid one of this kind.
    pub(super) fn decode(kind: FileKind, file: &[u8]) -> Option<Self> {
        let bytes = file.get(..FILE_HEADER)?;
        let header = Self {
            kind,
            step: u32_at(bytes, 12)?,
            base: u64_at(bytes, 16)?,
        };
        (header.encode() == *bytes).then_some(header)
    }
}

/// The number at `offset`, if the bytes reach that far.
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..offset + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// The number at `offset`, if the bytes reach that far.
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..offset + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
