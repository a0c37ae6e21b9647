//! HTTP, content negotiation and the encodings of bodies.

pub mod decode;
