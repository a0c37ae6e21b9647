//! A long text in pieces.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// So long is a piece, unless somebody writes more at once.
const PIECE: usize = 32 << 10;

/// A text that is written, and then sent. The numbers of a large cluster are megabytes: as one piece
/// they would be copied each time that it gets too small, and the process would keep room for the
/// largest of them ever after.
#[derive(Debug, Default)]
pub struct Pages {
    full: VecDeque<Bytes>,
    open: String,
}

impl fmt::Write for Pages {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.open.len() + text.len() > self.open.capacity() {
            let next = String::with_capacity(PIECE.max(text.len()));
            self.full.extend(piece(mem::replace(&mut self.open, next)));
        }
        self.open.push_str(text);
        Ok(())
    }
}

fn piece(text: String) -> Option<Bytes> {
    (!text.is_empty()).then(|| text.into())
}

impl From<String> for Pages {
    fn from(text: String) -> Self {
        Self {
            full: piece(text).into_iter().collect(),
            open: String::new(),
        }
    }
}

impl From<Vec<u8>> for Pages {
    fn from(bytes: Vec<u8>) -> Self {
        let full = (!bytes.is_empty()).then(|| bytes.into());
        Self {
            full: full.into_iter().collect(),
            open: String::new(),
        }
    }
}

impl Body for Pages {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.full.pop_front();
        let next = next.or_else(|| piece(mem::take(&mut self.open)));
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
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
    async fn what_is_written_is_sent_in_pieces_of_which_none_is_long() {
        let mut pages = Pages::default();
        let mut whole = String::new();
        for number in 0..20_000 {
            let line = format!("line {number}\n");
            pages.write_str(&line).unwrap();
            whole += &line;
        }
        assert_eq!(pages.size_hint().exact(), Some(whole.len() as u64));
        let mut sent = String::new();
        let mut pieces = 0;
        while !pages.is_end_stream() {
            let piece = pages.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(!piece.is_empty() && piece.len() <= PIECE);
            sent += str::from_utf8(&piece).unwrap();
            pieces += 1;
        }
        assert_eq!(sent, whole);
        assert!(pieces > 1);
        assert!(pages.frame().await.is_none());
    }

    proptest! {
        #[test]
        fn nothing_is_lost_whatever_is_written_at_once(
            lengths in prop::collection::vec(0..3 * PIECE, 0..8)
        ) {
            let mut pages = Pages::default();
            for length in &lengths {
                pages.write_str(&"x".repeat(*length)).unwrap();
            }
            let whole: usize = lengths.iter().sum();
            prop_assert_eq!(pages.size_hint().exact(), Some(whole as u64));
            let pieces: usize = pages.full.iter().map(Bytes::len).sum();
            prop_assert_eq!(pieces + pages.open.len(), whole);
        }
    }
}
