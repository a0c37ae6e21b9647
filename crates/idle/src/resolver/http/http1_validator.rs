//! Rejects ambiguous HTTP/1, to prevent request smuggling.
//!
//! If a pod and the proxy before it disagree about the end of a request, its body can contain another
//! request. So the validator is strict: one line ending, one length, one way to declare it. hyper parses
//! the bytes that pass, and does the remaining checks.

use http::StatusCode;
use memchr::memchr3;

/// Upper limit on the head of a request.
pub(super) const MAX_HEAD_SIZE: usize = 64 << 10;
/// Upper limit on the line with the size and the extensions of a chunk.
const MAX_CHUNK_LINE: usize = 1 << 10;

/// Validates the bytes of a connection as they arrive.
#[derive(Debug, Default)]
pub(super) struct Http1Validator {
    state: ParseState,
    line: Vec<u8>,
    head: HeadState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ParseState {
    /// Before a request.
    #[default]
    Between,
    HeadState,
    /// With this many bytes of the body left.
    Body(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers,
}

/// The relevant fields of the current request's head.
#[derive(Debug, Default)]
struct HeadState {
    size: usize,
    old: bool,
    length: Option<u64>,
    chunked: bool,
}

/// Why a connection is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) status: StatusCode,
    pub(super) why: &'static str,
}

fn violation(why: &'static str) -> Violation {
    Violation {
        status: StatusCode::BAD_REQUEST,
        why,
    }
}

impl Http1Validator {
    /// Validates the next bytes.
    pub(super) fn validate(&mut self, mut bytes: &[u8]) -> Result<(), Violation> {
        while let Some(first) = bytes.first().copied() {
            bytes = match self.state {
                ParseState::Body(left) | ParseState::Chunk(left) => {
                    let read = left.min(bytes.len() as u64);
                    self.body_left(left - read);
                    &bytes[read as usize..]
                }
                _ => {
                    if let Some(rest) = self.whole_line(bytes)? {
                        rest
                    } else {
                        self.byte(first)?;
                        &bytes[1..]
                    }
                }
            };
        }
        Ok(())
    }

    /// Whether the bytes so far end with a complete request.
    pub(super) fn is_between(&self) -> bool {
        self.state == ParseState::Between && self.line.is_empty()
    }

    /// Validates a line that arrived in one piece, without a copy; returns the bytes after it. `None` if
    /// there is no such line or it is malformed: the check of single bytes finds out how.
    fn whole_line<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Violation> {
        if !self.line.is_empty() {
            return Ok(None);
        }
        let Some(end) = memchr3(b'\n', b'\r', 0, bytes) else {
            return Ok(None);
        };
        let size = self.head.size + end + 2;
        if !bytes[end..].starts_with(b"\r\n") || size > self.limit().0 {
            return Ok(None);
        }
        self.head.size = size;
        self.end_of_line(&bytes[..end])?;
        Ok(Some(&bytes[end + 2..]))
    }

    fn body_left(&mut self, left: u64) {
        self.state = match (self.state, left) {
            (ParseState::Chunk(_), 0) => ParseState::ChunkEnd,
            (ParseState::Chunk(_), left) => ParseState::Chunk(left),
            (_, 0) => ParseState::Between,
            (_, left) => ParseState::Body(left),
        };
    }

    /// The size limit of the current state, and the status for exceeding it.
    fn limit(&self) -> (usize, StatusCode) {
        match self.state {
            ParseState::ChunkSize | ParseState::ChunkEnd => {
                (MAX_CHUNK_LINE, StatusCode::BAD_REQUEST)
            }
            _ => (MAX_HEAD_SIZE, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        }
    }

    fn byte(&mut self, byte: u8) -> Result<(), Violation> {
        self.head.size += 1;
        let (limit, status) = self.limit();
        if self.head.size > limit {
            let why = "the head of a request is too long";
            return Err(Violation { status, why });
        }
        let after_return = self.line.last() == Some(&b'\r');
        match byte {
            b'\n' if !after_return => Err(violation("a line ends without a carriage return")),
            b'\n' => {
                self.line.pop();
                let line = std::mem::take(&mut self.line);
                let done = self.end_of_line(&line);
                self.line = line;
                self.line.clear();
                done
            }
            _ if after_return => Err(violation("a carriage return is not at the end of a line")),
            0 => Err(violation("the head contains a zero byte")),
            _ => {
                self.line.push(byte);
                Ok(())
            }
        }
    }

    fn end_of_line(&mut self, line: &[u8]) -> Result<(), Violation> {
        match self.state {
            // Some clients send an empty line after a body.
            ParseState::Between if line.is_empty() => self.head.size = 0,
            ParseState::Between => {
                self.state = ParseState::HeadState;
                self.head.old = !line.ends_with(b"HTTP/1.1");
            }
            ParseState::HeadState if line.is_empty() => return self.end_of_head(),
            ParseState::HeadState => return self.head.field(line),
            ParseState::ChunkSize => self.state = chunk(line)?,
            ParseState::ChunkEnd if line.is_empty() => self.state = ParseState::ChunkSize,
            ParseState::ChunkEnd => return Err(violation("a chunk is longer than declared")),
            ParseState::Trailers if line.is_empty() => self.state = ParseState::Between,
            ParseState::Trailers => return HeadState::default().field(line),
            ParseState::Body(_) | ParseState::Chunk(_) => {}
        }
        if !matches!(self.state, ParseState::HeadState | ParseState::Trailers) {
            self.head = HeadState::default();
        }
        Ok(())
    }

    fn end_of_head(&mut self) -> Result<(), Violation> {
        let head = std::mem::take(&mut self.head);
        self.state = match (head.chunked, head.length) {
            (true, Some(_)) => {
                return Err(violation(
                    "Content-Length and Transfer-Encoding are both present",
                ));
            }
            (true, None) if head.old => {
                return Err(violation(
                    "chunked encoding does not exist in this version of HTTP",
                ));
            }
            (true, None) => ParseState::ChunkSize,
            (false, None | Some(0)) => ParseState::Between,
            (false, Some(length)) => ParseState::Body(length),
        };
        Ok(())
    }
}

impl HeadState {
    fn field(&mut self, line: &[u8]) -> Result<(), Violation> {
        let colon = line.iter().position(|byte| *byte == b':');
        let colon = colon.ok_or_else(|| violation("a header line has no colon"))?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        // Also catches a folded line, which begins with a space.
        if name.is_empty() || name.iter().any(u8::is_ascii_whitespace) {
            return Err(violation("a header name contains whitespace"));
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            if self.length.is_some() {
                return Err(violation("Content-Length is repeated"));
            }
            self.length =
                Some(decimal(value).ok_or_else(|| violation("Content-Length is not a number"))?);
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(violation(
                    "Transfer-Encoding must be chunked, and only once",
                ));
            }
            self.chunked = true;
        }
        Ok(())
    }
}

fn decimal(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    digits.then(|| std::str::from_utf8(value).ok()?.parse().ok())?
}

fn chunk(line: &[u8]) -> Result<ParseState, Violation> {
    let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let digits = !size.is_empty() && size.len() <= 15 && size.iter().all(u8::is_ascii_hexdigit);
    let size = digits.then(|| std::str::from_utf8(size).ok()).flatten();
    let size = size.and_then(|size| u64::from_str_radix(size, 16).ok());
    match size {
        Some(0) => Ok(ParseState::Trailers),
        Some(size) => Ok(ParseState::Chunk(size)),
        None => Err(violation("the size of a chunk is not a number")),
    }
}
