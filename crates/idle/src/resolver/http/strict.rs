//! Refuses HTTP/1 that two readers may understand differently.
//!
//! A request that ends elsewhere for the pod than for whoever stands before it can carry another
//! one inside. So nothing is put up with: one way to end a line, one length, one way to say it. What
//! passes here is read by hyper, which does the rest.

use http::StatusCode;
use memchr::memchr3;

/// The head of a request is no longer than this.
pub(super) const HEAD: usize = 64 << 10;
/// The line with the size of a chunk, and whatever else it says, is no longer than this.
const CHUNK_LINE: usize = 1 << 10;

/// Follows the bytes of a connection.
#[derive(Debug, Default)]
pub(super) struct Inspector {
    at: At,
    line: Vec<u8>,
    head: Head,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before a request.
    #[default]
    Between,
    Head,
    /// In so many more bytes of a body.
    Body(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers,
}

/// What the head of the present request has said.
#[derive(Debug, Default)]
struct Head {
    size: usize,
    old: bool,
    length: Option<u64>,
    chunked: bool,
}

/// Why a connection is not listened to any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) status: StatusCode,
    pub(super) why: &'static str,
}

fn bad(why: &'static str) -> Bad {
    Bad {
        status: StatusCode::BAD_REQUEST,
        why,
    }
}

impl Inspector {
    /// Looks at the bytes that come next.
    pub(super) fn inspect(&mut self, mut bytes: &[u8]) -> Result<(), Bad> {
        while let Some(first) = bytes.first().copied() {
            bytes = match self.at {
                At::Body(left) | At::Chunk(left) => {
                    let taken = left.min(bytes.len() as u64);
                    self.carry(left - taken);
                    &bytes[taken as usize..]
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

    /// A line that came in one piece is looked at where it is; gives what comes after it. Nothing if
    /// there is no such line, or one that is wrong: looking at every byte tells how.
    fn whole_line<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Bad> {
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

    fn carry(&mut self, left: u64) {
        self.at = match (self.at, left) {
            (At::Chunk(_), 0) => At::ChunkEnd,
            (At::Chunk(_), left) => At::Chunk(left),
            (_, 0) => At::Between,
            (_, left) => At::Body(left),
        };
    }

    /// So much may come at once, and what is said to whoever sends more.
    fn limit(&self) -> (usize, StatusCode) {
        match self.at {
            At::ChunkSize | At::ChunkEnd => (CHUNK_LINE, StatusCode::BAD_REQUEST),
            _ => (HEAD, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        }
    }

    fn byte(&mut self, byte: u8) -> Result<(), Bad> {
        self.head.size += 1;
        let (limit, status) = self.limit();
        if self.head.size > limit {
            let why = "the head of a request is too long";
            return Err(Bad { status, why });
        }
        let after_return = self.line.last() == Some(&b'\r');
        match byte {
            b'\n' if !after_return => Err(bad("a line ends without a carriage return")),
            b'\n' => {
                self.line.pop();
                let line = std::mem::take(&mut self.line);
                let done = self.end_of_line(&line);
                self.line = line;
                self.line.clear();
                done
            }
            _ if after_return => Err(bad("a carriage return is not at the end of a line")),
            0 => Err(bad("there is a zero byte in a head")),
            _ => {
                self.line.push(byte);
                Ok(())
            }
        }
    }

    fn end_of_line(&mut self, line: &[u8]) -> Result<(), Bad> {
        match self.at {
            // Some clients send an empty line after a body.
            At::Between if line.is_empty() => self.head.size = 0,
            At::Between => {
                self.at = At::Head;
                self.head.old = !line.ends_with(b"HTTP/1.1");
            }
            At::Head if line.is_empty() => return self.end_of_head(),
            At::Head => return self.head.field(line),
            At::ChunkSize => self.at = chunk(line)?,
            At::ChunkEnd if line.is_empty() => self.at = At::ChunkSize,
            At::ChunkEnd => return Err(bad("a chunk is longer than it said")),
            At::Trailers if line.is_empty() => self.at = At::Between,
            At::Trailers => return Head::default().field(line),
            At::Body(_) | At::Chunk(_) => {}
        }
        if !matches!(self.at, At::Head | At::Trailers) {
            self.head = Head::default();
        }
        Ok(())
    }

    fn end_of_head(&mut self) -> Result<(), Bad> {
        let head = std::mem::take(&mut self.head);
        self.at = match (head.chunked, head.length) {
            (true, Some(_)) => return Err(bad("a length and chunks were both said")),
            (true, None) if head.old => return Err(bad("chunks are unknown in this version")),
            (true, None) => At::ChunkSize,
            (false, None | Some(0)) => At::Between,
            (false, Some(length)) => At::Body(length),
        };
        Ok(())
    }
}

impl Head {
    fn field(&mut self, line: &[u8]) -> Result<(), Bad> {
        let colon = line.iter().position(|byte| *byte == b':');
        let colon = colon.ok_or_else(|| bad("a header has no colon"))?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        // Also catches a folded line, which begins with a space.
        if name.is_empty() || name.iter().any(u8::is_ascii_whitespace) {
            return Err(bad("there is a space in the name of a header"));
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            if self.length.is_some() {
                return Err(bad("the length was said twice"));
            }
            self.length = Some(decimal(value).ok_or_else(|| bad("the length is no number"))?);
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(bad("only chunks are understood, said once"));
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

fn chunk(line: &[u8]) -> Result<At, Bad> {
    let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let digits = !size.is_empty() && size.len() <= 15 && size.iter().all(u8::is_ascii_hexdigit);
    let size = digits.then(|| std::str::from_utf8(size).ok()).flatten();
    let size = size.and_then(|size| u64::from_str_radix(size, 16).ok());
    match size {
        Some(0) => Ok(At::Trailers),
        Some(size) => Ok(At::Chunk(size)),
        None => Err(bad("the size of a chunk is no number")),
    }
}
