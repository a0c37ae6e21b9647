//! Places in a program where the release is written.
//!
//! A place begins with NUL, a name and NUL, goes on with a run of `X`, and ends with NUL. The value and a NUL are
//! written over its beginning, so that the program keeps its size.

use std::fmt;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// The version of the release.
    Version,
    /// The payload by digest.
    Image,
    /// `os/arch`.
    Architecture,
}

/// The value is longer than its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} has {length} bytes and its place {place}", length = value.len())]
pub struct TooLong {
    value: String,
    place: usize,
}

impl Placeholder {
    fn marker(self) -> &'static [u8] {
        match self {
            Self::Version => b"\0_RELEASE_VERSION_LOCATION_\0",
            Self::Image => b"\0_RELEASE_IMAGE_LOCATION_\0",
            Self::Architecture => b"\0_RELEASE_ARCHITECTURE_LOCATION_\0",
        }
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "version",
            Self::Image => "image",
            Self::Architecture => "architecture",
        })
    }
}

/// Writes `value` into the first place; false if the program has none.
pub fn replace(program: &mut [u8], placeholder: Placeholder, value: &str) -> Result<bool, TooLong> {
    let marker = placeholder.marker();
    let mut from = 0;
    while let Some(start) = find(&program[from..], marker).map(|at| at + from) {
        let run = &program[start + marker.len()..];
        let length = run.iter().take_while(|byte| **byte == b'X').count();
        // The name alone is also in programs that look for the place.
        if length == 0 || run.get(length) != Some(&0) {
            from = start + marker.len();
            continue;
        }
        let place = marker.len() + length + 1;
        if value.len() + 1 > place {
            let value = value.to_owned();
            return Err(TooLong { value, place });
        }
        program[start..start + value.len()].copy_from_slice(value.as_bytes());
        program[start + value.len()] = 0;
        return Ok(true);
    }
    Ok(false)
}

fn find(content: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = content[from..].iter().position(|byte| *byte == wanted[0]) {
        let start = from + at;
        if content[start..].starts_with(wanted) {
            return Some(start);
        }
        from = start + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(run: usize) -> Vec<u8> {
        let mut program = b"code\0_RELEASE_VERSION_LOCATION_\0 is looked for".to_vec();
        program.extend_from_slice(b"\0_RELEASE_VERSION_LOCATION_\0");
        program.extend(std::iter::repeat_n(b'X', run));
        program.extend_from_slice(b"\0more");
        program
    }

    #[test]
    fn the_value_is_written_over_the_place_and_the_size_stays() {
        let mut found = program(40);
        let before = found.len();
        assert_eq!(
            replace(&mut found, Placeholder::Version, "4.99.0"),
            Ok(true)
        );
        assert_eq!(found.len(), before);
        let text = String::from_utf8_lossy(&found).into_owned();
        assert!(text.contains("looked for4.99.0\0"), "{text:?}");
        assert!(text.ends_with("X\0more"));
        assert_eq!(replace(&mut found, Placeholder::Image, "x"), Ok(false));
    }

    #[test]
    fn a_value_that_does_not_fit_changes_nothing() {
        let mut found = program(1);
        let before = found.clone();
        assert!(replace(&mut found, Placeholder::Version, &"9".repeat(31)).is_err());
        assert_eq!(found, before);
    }
}
