//! Names of objects and hashes of inputs, as the original has them, and how names of its ProwJobs are read.

mod run_name;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use aws_lc_rs::digest::{SHA256, digest};
use jiff::{Timestamp, tz::TimeZone};

pub use self::run_name::{RunName, RunNameError, RunStream};

/// The most characters of the name of a ProwJob, whose pod has it in a label.
const MAX_RUN_NAME: usize = 63;
/// The letters of a hash in a name. There are no vowels, so that no words come out.
const HASH_ALPHABET: &[u8; 32] = b"bcdfghijklmnpqrstvwxyz0123456789";

/// The name of a ProwJob: `<name>-<suffix>`, or `name` without a suffix. A name that is too long is cut off
/// and gets a hash of the whole.
pub fn run_name(name: &str, suffix: &str) -> String {
    let suffix = if suffix.is_empty() {
        String::new()
    } else {
        format!("-{suffix}")
    };
    if name.len() + suffix.len() <= MAX_RUN_NAME {
        return format!("{name}{suffix}");
    }
    let hash = short_hash(name);
    let room = MAX_RUN_NAME.saturating_sub(hash.len() + 1 + suffix.len());
    let mut end = room.min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let base = &name[..end];
    let base = base.strip_suffix('-').unwrap_or(base);
    let base = base.strip_suffix('.').unwrap_or(base);
    format!("{base}-{hash}{suffix}")
}

/// Seven characters that stand for a name: the first four bytes of its SHA-256 in base 32.
pub fn short_hash(name: &str) -> String {
    let hash = digest(&SHA256, name.as_bytes());
    let bytes: [u8; 4] = std::array::from_fn(|at| hash.as_ref()[at]);
    let bits = u64::from(u32::from_be_bytes(bytes)) << 3;
    let letter = |at: u32| char::from(HASH_ALPHABET[((bits >> (30 - 5 * at)) & 31) as usize]);
    (0..7).map(letter).collect()
}

/// The tag of a release that an Integration stream creates at `now`.
pub fn release_tag(stream: &str, now: Timestamp) -> String {
    let time = now.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d-%H%M%S");
    format!("{stream}-{time}")
}

/// The mirror of a release of an Integration stream: `prefix`, and what the tag has after the stream.
pub fn mirror(prefix: &str, stream: &str, tag: &str) -> String {
    format!("{prefix}{}", tag.strip_prefix(stream).unwrap_or(tag))
}

/// The Job that copies a release to the alternate repository.
pub fn alternate_mirror_job(tag: &str) -> String {
    format!("{tag}-alternate-mirror")
}

/// The Job that removes a release whose images are only referred to.
pub fn removal_job(tag: &str) -> String {
    format!("remove-{tag}")
}

/// The tag of the image of a release whose images are only referred to.
pub fn reference_tag(tag: &str) -> String {
    format!("rc_payload__{tag}")
}

/// The tag that asks for the removal of that image.
pub fn reference_removal_tag(tag: &str) -> String {
    format!("remove__rc_payload__{tag}")
}

/// The ProwJob of a verification job; `attempt` counts from zero.
pub fn verification_run(tag: &str, key: &str, attempt: u32) -> String {
    run_name(&format!("{tag}-{key}"), &attempt_suffix("", attempt))
}

/// The ProwJob of one of the runs that are analysed together.
pub fn analysis_run(tag: &str, key: &str, number: u32) -> String {
    run_name(&format!("{tag}-{key}"), &format!("analysis-{number}"))
}

/// The ProwJob that analyses them.
pub fn aggregator_run(tag: &str, key: &str, attempt: u32) -> String {
    run_name(
        &format!("{tag}-{key}"),
        &attempt_suffix("aggregator", attempt),
    )
}

/// The ProwJob of an upgrade to a Stable release.
pub fn upgrade_run(tag: &str, from: &str, platform: &str) -> String {
    run_name(&format!("{tag}-upgrade-from-{from}-{platform}"), "")
}

/// The Prow job of an aggregator in the payload: the key and its name.
pub fn aggregator_job(key: &str, aggregator: &str) -> String {
    format!("{key}-{aggregator}")
}

fn attempt_suffix(kind: &str, attempt: u32) -> String {
    match (kind, attempt) {
        (kind, 0) => kind.to_owned(),
        ("", attempt) => attempt.to_string(),
        (kind, attempt) => format!("{kind}-{attempt}"),
    }
}

/// The hash of inputs: SHA-256 over their digests or pull specs, with nothing between them.
pub fn input_hash<'a>(inputs: impl IntoIterator<Item = &'a str>) -> String {
    let all: String = inputs.into_iter().collect();
    format!("sha256:{}", hex(digest(&SHA256, all.as_bytes()).as_ref()))
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
