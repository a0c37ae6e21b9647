//! A long text as a response body in chunks.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// The length of a chunk, unless a single write is longer.
const CHUNK_BYTES: usize = 32 << 10;

/// A text that is written in full, and then sent as a body. The metrics of a large cluster are
/// megabytes: a single buffer would be copied whenever it grows, and the process would keep memory for
/// the largest one.
#[derive(Debug, Default)]
pub struct ChunkedText {
    full: VecDeque<Bytes>,
    open: String,
}

impl fmt::Write for ChunkedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.open.len() + text.len() > self.open.capacity() {
            let next = String::with_capacity(CHUNK_BYTES.max(text.len()));
            self.full.extend(chunk(mem::replace(&mut self.open, next)));
        }
        self.open.push_str(text);
        Ok(())
    }
}

fn chunk(text: String) -> Option<Bytes> {
    (!text.is_empty()).then(|| text.into())
}

impl From<String> for ChunkedText {
    fn from(text: String) -> Self {
        Self {
            full: chunk(text).into_iter().collect(),
            open: String::new(),
        }
    }
}

impl From<Vec<u8>> for ChunkedText {
    fn from(bytes: Vec<u8>) -> Self {
        let full = (!bytes.is_empty()).then(|| bytes.into());
        Self {
            full: full.into_iter().collect(),
            open: String::new(),
        }
    }
}

impl Body for ChunkedText {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.full.pop_front();
        let next = next.or_else(|| chunk(mem::take(&mut self.open)));
        Poll::Ready(next.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.full.is_empty() && self.open.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let full: usize = self.full.iter().map(Bytes::len).sum();
        SizeHint::with_exact((full + self.open.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use http_body_util::BodyExt;
    use proptest::prelude::*;

    use super::*;

    #[tokio::test]
    async fn a_text_is_sent_in_chunks_of_bounded_length() {
        let mut chunked_text = ChunkedText::default();
        let mut whole = String::new();
        for number in 0..20_000 {
            let line = format!("line {number}\n");
            chunked_text.write_str(&line).unwrap();
            whole += &line;
        }
        assert_eq!(chunked_text.size_hint().exact(), Some(whole.len() as u64));
        let mut sent = String::new();
        let mut chunks = 0;
        while !chunked_text.is_end_stream() {
            let chunk = chunked_text
                .frame()
                .await
                .unwrap()
                .unwrap()
                .into_data()
                .unwrap();
            assert!(!chunk.is_empty() && chunk.len() <= CHUNK_BYTES);
            sent += str::from_utf8(&chunk).unwrap();
            chunks += 1;
        }
        assert_eq!(sent, whole);
        assert!(chunks > 1);
        assert!(chunked_text.frame().await.is_none());
    }

    proptest! {
        #[test]
        fn no_text_is_lost_for_any_length_of_writes(
            lengths in prop::collection::vec(0..3 * CHUNK_BYTES, 0..8)
        ) {
            let mut chunked_text = ChunkedText::default();
            for length in &lengths {
                chunked_text.write_str(&"x".repeat(*length)).unwrap();
            }
            let whole: usize = lengths.iter().sum();
            prop_assert_eq!(chunked_text.size_hint().exact(), Some(whole as u64));
            let chunks: usize = chunked_text.full.iter().map(Bytes::len).sum();
            prop_assert_eq!(chunks + chunked_text.open.len(), whole);
        }
    }
}
