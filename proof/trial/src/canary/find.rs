//! Finds a canary in plain text, base64 or URL encoding.

use std::sync::LazyLock;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use memchr::memmem::Finder;

use super::{IN_SPEC, OF_SECRET};

/// All encodings of one canary.
pub(crate) struct CanaryEncodings(Vec<Finder<'static>>);

/// The canary of Secrets.
pub(crate) fn of_secret() -> &'static CanaryEncodings {
    static SONG: LazyLock<CanaryEncodings> = LazyLock::new(|| CanaryEncodings::of(OF_SECRET));
    &SONG
}

/// The canary of pod specs.
pub(crate) fn in_spec() -> &'static CanaryEncodings {
    static SONG: LazyLock<CanaryEncodings> = LazyLock::new(|| CanaryEncodings::of(IN_SPEC));
    &SONG
}

/// Whether `text` contains either canary.
pub(crate) fn shows(text: &str) -> bool {
    of_secret().is_in(text.as_bytes()) || in_spec().is_in(text.as_bytes())
}

impl CanaryEncodings {
    fn of(canary: &str) -> Self {
        let mut all = vec![canary.to_owned()];
        all.push(form_urlencoded::byte_serialize(canary.as_bytes()).collect());
        let percent: String = canary.bytes().map(percent).collect();
        all.push(percent.to_lowercase());
        all.push(percent);
        for skipped in 0..3 {
            all.extend(inner(
                &STANDARD_NO_PAD.encode(shifted(canary, skipped)),
                skipped,
            ));
            all.extend(inner(
                &URL_SAFE_NO_PAD.encode(shifted(canary, skipped)),
                skipped,
            ));
        }
        all.sort_unstable();
        all.dedup();
        let finders = all.iter().map(|text| Finder::new(text).into_owned());
        Self(finders.collect())
    }

    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        self.0.iter().any(|finder| finder.find(text).is_some())
    }
}

/// Inside a longer text the canary may start at any of the three bytes that base64 encodes as four
/// letters.
fn shifted(canary: &str, skipped: usize) -> String {
    format!("{}{canary}", &"xx"[..skipped])
}

/// The letters of the encoding that depend on the canary alone.
fn inner(encoded: &str, skipped: usize) -> Option<String> {
    let first = [0, 2, 3][skipped];
    let last = encoded.len() - 1;
    encoded.get(first..last).map(str::to_owned)
}

fn percent(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn a_canary_is_found_in_any_dress() {
        let within = |text: &str| format!("ab{text}cd");
        let mut dresses = vec![
            within(OF_SECRET),
            "password=canary%2Fof%3Da+secret+that+isn%27t+shared%3F".to_owned(),
            "canary%2fof%3da%20secret%20that%20isn%27t%20shared%3f".to_owned(),
            within(&STANDARD.encode(OF_SECRET)),
        ];
        for before in ["", "u", "us", "use", "user:"] {
            for after in ["", "\n", "!!", "and more"] {
                dresses.push(within(
                    &STANDARD.encode(format!("{before}{OF_SECRET}{after}")),
                ));
                dresses.push(within(
                    &URL_SAFE_NO_PAD.encode(format!("{before}{OF_SECRET}{after}")),
                ));
            }
        }
        for dress in dresses {
            assert!(of_secret().is_in(dress.as_bytes()), "{dress}");
            assert!(!in_spec().is_in(dress.as_bytes()), "{dress}");
        }
        assert!(!shows("a canary, a secret, and cGFzc3dvcmQ="));
    }
}
