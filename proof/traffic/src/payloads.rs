//! The payloads of requests and answers, by the number of the request.

use bytes::{BufMut, Bytes, BytesMut};

/// Bytes of a body at most.
pub(crate) const MAX_BODY: usize = 1 << 16;
/// The header with the number of a call.
pub(crate) const ID: &str = "x-id";
/// The trailer with the status of a call.
pub(crate) const STATUS: &str = "grpc-status";
/// Bytes of the head of a TCP message: the number of the request, and the length of its payload.
pub(crate) const HEAD: usize = 12;

/// The payload of a request and of its answer: unique, with varying lengths.
pub(crate) fn payload(id: u64) -> Bytes {
    let mut payload = BytesMut::new();
    payload.put_slice(format!("{id}:").as_bytes());
    payload.put_bytes(b'a' + (id % 26) as u8, (id % 7) as usize * 300);
    payload.freeze()
}

/// The payload as a gRPC message.
pub(crate) fn message(id: u64) -> Bytes {
    let payload = payload(id);
    let mut message = BytesMut::new();
    message.put_u8(0);
    message.put_u32(payload.len() as u32);
    message.put_slice(&payload);
    message.freeze()
}

/// The payload as a TCP message.
pub(crate) fn tcp_message(id: u64) -> Bytes {
    let payload = payload(id);
    let mut said = BytesMut::new();
    said.put_u64(id);
    said.put_u32(payload.len() as u32);
    said.put_slice(&payload);
    said.freeze()
}

/// Parses the head of a TCP message.
pub(crate) fn parse_head(head: &[u8; HEAD]) -> (u64, usize) {
    let (mut id, mut length) = ([0; 8], [0; 4]);
    id.copy_from_slice(&head[..8]);
    length.copy_from_slice(&head[8..]);
    (u64::from_be_bytes(id), u32::from_be_bytes(length) as usize)
}
