//! HTTP, content negotiation and the encodings of bodies.

pub mod decode;
//! What crosses the wire: content types and their decoding.
//!
//! May use every other room; no other room uses it.

pub mod protobuf;
