//! Decompresses headers (RFC 1950 and 1951): one stream for all headers of a connection, flushed at
//! every frame.

use super::{ProtocolError, dictionary};

/// Bytes that a stream may refer back.
const WINDOW_BYTES: usize = 32 << 10;
/// Bytes of a decompressed header block, at most.
const MAX_BLOCK_BYTES: usize = 64 << 10;
/// The order in which the lengths of the code length codes are stored.
const ORDER: [usize; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// A decompressor.
#[derive(Debug, Default)]
pub(super) struct Inflate {
    has_begun: bool,
    /// The latest output, preceded by the dictionary.
    window: Vec<u8>,
}

impl Inflate {
    /// Decompresses the next piece of the stream, which ends with a whole block.
    pub(super) fn next(&mut self, piece: &[u8]) -> Result<Vec<u8>, ProtocolError> {
        let mut bits = Bits::new(piece);
        if !self.has_begun {
            self.begin(&mut bits)?;
        }
        let start = self.window.len();
        while !bits.is_done() {
            let _is_last = bits.take(1)?;
            match bits.take(2)? {
                0 => self.stored(&mut bits)?,
                1 => self.coded(&mut bits, &Codes::usual()?)?,
                2 => {
                    let codes = Codes::dynamic(&mut bits)?;
                    self.coded(&mut bits, &codes)?;
                }
                _ => return Err(ProtocolError("headers with a block of unknown type")),
            }
            if self.window.len() - start > MAX_BLOCK_BYTES {
                return Err(ProtocolError("headers that are too large"));
            }
        }
        let output = self.window[start..].to_vec();
        let surplus = self.window.len().saturating_sub(WINDOW_BYTES);
        self.window.drain(..surplus);
        Ok(output)
    }

    fn begin(&mut self, bits: &mut Bits<'_>) -> Result<(), ProtocolError> {
        let (method, flags) = (bits.take(8)?, bits.take(8)?);
        if method & 0xf != 8 || (method << 8 | flags) % 31 != 0 {
            return Err(ProtocolError("headers with an invalid zlib header"));
        }
        if flags & 0x20 != 0 {
            let bytes = [bits.take(8)?, bits.take(8)?, bits.take(8)?, bits.take(8)?];
            let checksum = bytes.iter().fold(0, |sum, byte| sum << 8 | byte);
            if checksum != dictionary::CHECKSUM {
                return Err(ProtocolError("headers with an unknown dictionary"));
            }
            self.window = dictionary::dictionary();
        }
        self.has_begun = true;
        Ok(())
    }

    fn stored(&mut self, bits: &mut Bits<'_>) -> Result<(), ProtocolError> {
        bits.align();
        let (length, check) = (bits.take(16)?, bits.take(16)?);
        if length != !check & 0xffff {
            return Err(ProtocolError("headers with an invalid block length"));
        }
        for _ in 0..length {
            let byte = bits.take(8)?;
            self.window.push(byte as u8);
        }
        Ok(())
    }

    fn coded(&mut self, bits: &mut Bits<'_>, codes: &Codes) -> Result<(), ProtocolError> {
        loop {
            match codes.literals.take(bits)? {
                256 => return Ok(()),
                byte @ 0..256 => self.window.push(byte as u8),
                symbol => {
                    let length = bits.length(symbol)?;
                    let symbol = codes.distances.take(bits)?;
                    let distance = bits.distance(symbol)?;
                    self.repeat(length, distance)?;
                }
            }
            if self.window.len() > WINDOW_BYTES + MAX_BLOCK_BYTES {
                return Err(ProtocolError("headers that are too large"));
            }
        }
    }

    fn repeat(&mut self, length: usize, distance: usize) -> Result<(), ProtocolError> {
        let from = self.window.len().checked_sub(distance);
        let from = from.ok_or(ProtocolError("headers with a distance beyond the window"))?;
        for at in from..from + length {
            self.window.push(self.window[at]);
        }
        Ok(())
    }
}

/// The two codes of a block.
struct Codes {
    literals: Code,
    distances: Code,
}

impl Codes {
    fn usual() -> Result<Self, ProtocolError> {
        let mut literals = [8; 288];
        literals[144..256].fill(9);
        literals[256..280].fill(7);
        Ok(Self {
            literals: Code::new(&literals)?,
            distances: Code::new(&[5; 30])?,
        })
    }

    fn dynamic(bits: &mut Bits<'_>) -> Result<Self, ProtocolError> {
        let (literals, distances) = (bits.take(5)? as usize + 257, bits.take(5)? as usize + 1);
        let output = bits.take(4)? as usize + 4;
        let mut lengths = [0; 19];
        for &at in &ORDER[..output] {
            lengths[at] = bits.take(3)? as u8;
        }
        let code = Code::new(&lengths)?;
        let mut lengths: Vec<u8> = Vec::with_capacity(literals + distances);
        while lengths.len() < literals + distances {
            let (length, times) = match code.take(bits)? {
                16 => {
                    let last = lengths
                        .last()
                        .ok_or(ProtocolError("a repeat code without a previous length"))?;
                    (*last, 3 + bits.take(2)?)
                }
                17 => (0, 3 + bits.take(3)?),
                18 => (0, 11 + bits.take(7)?),
                length => (length as u8, 1),
            };
            lengths.extend(std::iter::repeat_n(length, times as usize));
        }
        if lengths.len() > literals + distances {
            return Err(ProtocolError("a code with too many symbols"));
        }
        Ok(Self {
            literals: Code::new(&lengths[..literals])?,
            distances: Code::new(&lengths[literals..])?,
        })
    }
}

/// A prefix code, by the number of symbols of each length.
struct Code {
    counts: [u16; 16],
    symbols: Vec<u16>,
}

impl Code {
    fn new(lengths: &[u8]) -> Result<Self, ProtocolError> {
        let mut counts = [0_u16; 16];
        for &length in lengths {
            let count = counts.get_mut(usize::from(length));
            *count.ok_or(ProtocolError("a code length that is too large"))? += 1;
        }
        counts[0] = 0;
        let mut symbols: Vec<(u8, u16)> = Vec::new();
        for (symbol, &length) in (0_u16..).zip(lengths) {
            if length > 0 {
                symbols.push((length, symbol));
            }
        }
        symbols.sort_unstable();
        let symbols = symbols.into_iter().map(|(_, symbol)| symbol).collect();
        Ok(Self { counts, symbols })
    }

    fn take(&self, bits: &mut Bits<'_>) -> Result<u16, ProtocolError> {
        let (mut word, mut first, mut index) = (0_u32, 0_u32, 0_u32);
        for &count in &self.counts[1..] {
            word |= bits.take(1)?;
            let count = u32::from(count);
            if word.wrapping_sub(first) < count {
                let symbol = self.symbols.get((index + word - first) as usize);
                return symbol.copied().ok_or(ProtocolError("an invalid code"));
            }
            index += count;
            first = (first + count) << 1;
            word <<= 1;
        }
        Err(ProtocolError("an invalid code"))
    }
}

/// Reads bits, the lowest of a byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn take(&mut self, count: usize) -> Result<u32, ProtocolError> {
        let mut value = 0;
        for bit in 0..count {
            let byte = self.bytes.get(self.at / 8);
            let byte = byte.ok_or(ProtocolError("truncated compressed headers"))?;
            value |= u32::from(byte >> (self.at % 8) & 1) << bit;
            self.at += 1;
        }
        Ok(value)
    }

    fn align(&mut self) {
        self.at = self.at.next_multiple_of(8);
    }

    /// Whether less than a byte is left, as after a block that ends with one.
    fn is_done(&self) -> bool {
        self.at.div_ceil(8) >= self.bytes.len()
    }

    /// The length that a symbol stands for.
    fn length(&mut self, symbol: u16) -> Result<usize, ProtocolError> {
        let symbol = usize::from(symbol).wrapping_sub(257);
        match symbol {
            0..8 => Ok(symbol + 3),
            28 => Ok(258),
            8..28 => {
                let extra = symbol / 4 - 1;
                let base = (4 + symbol % 4) << extra;
                Ok(base + 3 + self.take(extra)? as usize)
            }
            _ => Err(ProtocolError("an invalid length symbol")),
        }
    }

    /// The distance that a symbol stands for.
    fn distance(&mut self, symbol: u16) -> Result<usize, ProtocolError> {
        match usize::from(symbol) {
            symbol @ 0..4 => Ok(symbol + 1),
            symbol @ 4..30 => {
                let extra = symbol / 2 - 1;
                let base = (2 + symbol % 2) << extra;
                Ok(base + 1 + self.take(extra)? as usize)
            }
            _ => Err(ProtocolError("an invalid distance symbol")),
        }
    }
}

#[cfg(test)]
mod tests;
