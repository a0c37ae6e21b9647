//! The encoding of a record in a frame; see [`super::frame`] for the whole layout. Pure.

use bytes::Bytes;

use super::{
    Record,
    header::{u32_at, u64_at},
};

const RECORD_HEADER: usize = 16;
const DELETED: u32 = u32::MAX;

/// Appends a record to a payload.
pub(super) fn encode(record: &Record, out: &mut Vec<u8>) {
    let value = record.value.as_deref();
    let value_len = value.map_or(DELETED, |value| value.len() as u32);
    out.extend_from_slice(&record.revision.to_le_bytes());
    out.extend_from_slice(&(record.key.len() as u32).to_le_bytes());
    out.extend_from_slice(&value_len.to_le_bytes());
    out.extend_from_slice(&record.key);
    out.extend_from_slice(value.unwrap_or_default());
}

/// The size of a record in a payload.
pub(super) fn record_len(record: &Record) -> usize {
    RECORD_HEADER + record.key.len() + record.value.as_ref().map_or(0, Bytes::len)
}

/// A record borrowed from a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawRecord<'a> {
    pub(super) revision: u64,
    pub(super) key: &'a [u8],
    pub(super) value: Option<&'a [u8]>,
}

impl<'a> RawRecord<'a> {
    /// Splits the first record off `payload`; `None` if it is incomplete.
    pub(super) fn take(payload: &mut &'a [u8]) -> Option<Self> {
        let revision = u64_at(payload, 0)?;
        let key_len = u32_at(payload, 8)? as usize;
        let value_len = u32_at(payload, 12)?;
        let (key, rest) = payload[RECORD_HEADER..].split_at_checked(key_len)?;
        let (value, rest) = if value_len == DELETED {
            (None, rest)
        } else {
            let (value, rest) = rest.split_at_checked(value_len as usize)?;
            (Some(value), rest)
        };
        *payload = rest;
        Some(Self {
            revision,
            key,
            value,
        })
    }
}
