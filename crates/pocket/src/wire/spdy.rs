//! The part of SPDY/3.1 that `kubectl port-forward` needs, which it speaks inside of a WebSocket:
//! streams of bytes in frames. Neither side uses flow control.

mod dictionary;
mod frame;
mod headers;
mod inflate;

pub(super) use self::{
    frame::{Framer, SpdyFrame, Why},
    headers::Replies,
};

/// A protocol violation after which the connection cannot continue.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct ProtocolError(&'static str);
