//! As much of SPDY/3.1 as `kubectl port-forward` needs, which it speaks inside of a WebSocket: streams
//! of bytes in frames. Neither side of that has ever minded flow control.

mod dictionary;
mod frame;
mod headers;
mod inflate;

pub(super) use self::{
    frame::{Frame, Framer},
    headers::Replies,
};

/// What makes a peer one that cannot be spoken with any further.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Broken(&'static str);
