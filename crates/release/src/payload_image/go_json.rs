//! JSON as Go writes it: two spaces of indentation, and `<`, `>`, `&` escaped.
//!
//! Other programs compare and hash these documents, so ours are equal to the byte.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// The document without a final newline.
pub fn to_vec<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    let formatter = GoFormatter(PrettyFormatter::with_indent(b"  "));
    value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter))?;
    Ok(bytes)
}

/// The document as text.
pub fn to_string<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let bytes = to_vec(value)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The document in one line.
pub fn to_line<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, Compact))?;
    Ok(bytes)
}

struct Compact;

impl Formatter for Compact {
    fn write_string_fragment<W>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + io::Write,
    {
        escaped(writer, fragment)
    }
}

struct GoFormatter(PrettyFormatter<'static>);

macro_rules! forwarded {
    ($($name:ident($($argument:ident: $kind:ty),*)),* $(,)?) => {
        $(fn $name<W>(&mut self, writer: &mut W $(, $argument: $kind)*) -> io::Result<()>
        where
            W: ?Sized + io::Write,
        {
            self.0.$name(writer $(, $argument)*)
        })*
    };
}

impl Formatter for GoFormatter {
    forwarded!(
        begin_array(),
        end_array(),
        begin_array_value(first: bool),
        end_array_value(),
        begin_object(),
        end_object(),
        begin_object_key(first: bool),
        begin_object_value(),
        end_object_value(),
    );

    fn write_string_fragment<W>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + io::Write,
    {
        escaped(writer, fragment)
    }
}

fn escaped<W: ?Sized + io::Write>(writer: &mut W, fragment: &str) -> io::Result<()> {
    let mut rest = fragment;
    let special = |it: char| matches!(it, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
    while let Some(at) = rest.find(special) {
        let (before, after) = rest.split_at(at);
        writer.write_all(before.as_bytes())?;
        let mut characters = after.chars();
        if let Some(character) = characters.next() {
            write!(writer, "\\u{:04x}", u32::from(character))?;
        }
        rest = characters.as_str();
    }
    writer.write_all(rest.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_look_as_go_writes_them() {
        let value = json!({"a": [], "b": {}, "c": ["<a & b>", 1, null], "d": "\u{2028}\"ü"});
        let expected = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    \"\\u003ca \\u0026 b\\u003e\",\n    1,\n    null\n  ],\n  \"d\": \"\\u2028\\\"ü\"\n}";
        assert_eq!(to_string(&value).unwrap(), expected);
        let line = to_line(&json!({"a": "<"})).unwrap();
        assert_eq!(line, br#"{"a":"\u003c"}"#);
    }
}
