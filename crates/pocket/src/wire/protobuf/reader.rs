//! The wire format: tagged fields one after the other.

use super::Malformed;

/// Reads the fields of a message.
#[derive(Debug, Clone)]
pub(super) struct FieldReader<'a> {
    rest: &'a [u8],
}

/// The value of one field, before its type is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldPayload<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

impl<'a> FieldReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field's number and value; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, FieldPayload<'a>)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| Malformed::LongNumber)?;
        let payload = match tag & 7 {
            0 => FieldPayload::Varint(self.varint()?),
            1 => FieldPayload::Fixed64(self.fixed64()?),
            2 => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| Malformed::Truncated)?;
                FieldPayload::Bytes(self.take(length)?)
            }
            5 => FieldPayload::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Malformed::UnknownWireType(number)),
        };
        Ok(Some((number, payload)))
    }

    /// A base 128 number, least significant group first.
    pub(super) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for (index, &byte) in self.rest.iter().enumerate() {
            // The tenth byte has room for one bit.
            if index == 9 && byte > 1 {
                return Err(Malformed::LongNumber);
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(Malformed::Truncated)
    }

    /// Eight bytes, least significant first.
    pub(super) fn fixed64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed::Truncated)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

impl<'a> FieldPayload<'a> {
    pub(super) fn varint(self, number: u32) -> Result<u64, Malformed> {
        match self {
            Self::Varint(value) => Ok(value),
            _ => Err(Malformed::WireType(number)),
        }
    }

    pub(super) fn fixed64(self, number: u32) -> Result<u64, Malformed> {
        match self {
            Self::Fixed64(value) => Ok(value),
            _ => Err(Malformed::WireType(number)),
        }
    }

    pub(super) fn bytes(self, number: u32) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(value) => Ok(value),
            _ => Err(Malformed::WireType(number)),
        }
    }

    /// `name` is the field's name in errors.
    pub(super) fn text(self, number: u32, name: &str) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes(number)?).map_err(|_| Malformed::NotText(name.into()))
    }
}
