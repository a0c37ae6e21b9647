//! What clients and pods say to each other, by the number of the request.

use bytes::{BufMut, Bytes, BytesMut};

/// Nothing that is said is longer.
pub(crate) const LONGEST: usize = 1 << 16;
/// The header with the number of a call.
pub(crate) const ID: &str = "x-id";
/// The trailer that says whether a call succeeded.
pub(crate) const STATUS: &str = "grpc-status";
/// What comes before bytes: a number, and how many there are.
pub(crate) const HEAD: usize = 12;

/// What is sent and comes back: another one for each, of many lengths.
pub(crate) fn payload(id: u64) -> Bytes {
    let mut payload = BytesMut::new();
    payload.put_slice(format!("{id}:").as_bytes());
    payload.put_bytes(b'a' + (id % 26) as u8, (id % 7) as usize * 300);
    payload.freeze()
}

/// The same as one message of a call.
pub(crate) fn message(id: u64) -> Bytes {
    let payload = payload(id);
    let mut message = BytesMut::new();
    message.put_u8(0);
    message.put_u32(payload.len() as u32);
    message.put_slice(&payload);
    message.freeze()
}

/// The same as bytes.
pub(crate) fn said(id: u64) -> Bytes {
    let payload = payload(id);
    let mut said = BytesMut::new();
    said.put_u64(id);
    said.put_u32(payload.len() as u32);
    said.put_slice(&payload);
    said.freeze()
}

/// Whose bytes follow, and how many.
pub(crate) fn heard(head: &[u8; HEAD]) -> (u64, usize) {
    let (mut id, mut length) = ([0; 8], [0; 4]);
    id.copy_from_slice(&head[..8]);
    length.copy_from_slice(&head[8..]);
    (u64::from_be_bytes(id), u32::from_be_bytes(length) as usize)
}
