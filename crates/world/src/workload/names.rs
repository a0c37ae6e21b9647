//! Names that are derived from content.

/// The alphabet of generated names in Kubernetes, from which no bad words can be formed.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Five letters derived from `parts`; equal for equal parts, in every process and version.
pub(crate) fn suffix(parts: &[&str]) -> String {
    let mut rest = fnv(parts);
    let letters = (0..5).map(|_| {
        let letter = ALPHABET[(rest % 27) as usize];
        rest /= 27;
        char::from(letter)
    });
    letters.collect()
}

/// A short digest of a content, such as a pod template.
pub(crate) fn digest(content: &str) -> String {
    let mut rest = fnv(&[content]) >> 32;
    let mut letters = String::new();
    while rest > 0 || letters.is_empty() {
        letters.push(char::from(ALPHABET[(rest % 27) as usize]));
        rest /= 27;
    }
    letters
}

/// FNV-1a, whose values never change, unlike those of a hasher of the standard library.
fn fnv(parts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    // FNV-1a mixes the low bits of a short text poorly, so the high bits are folded in.
    hash ^ (hash >> 29)
}
