//! Names that follow from what they are for.

/// Letters and digits of which no bad words can be made, as in all generated names of Kubernetes.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Five letters that follow from `parts`; equal for equal parts, in every process and version.
pub(crate) fn suffix(parts: &[&str]) -> String {
    let mut rest = fnv(parts);
    let letters = (0..5).map(|_| {
        let letter = LETTERS[(rest % 27) as usize];
        rest /= 27;
        char::from(letter)
    });
    letters.collect()
}

/// A short name for a content, such as a pod template.
pub(crate) fn digest(content: &str) -> String {
    let mut rest = fnv(&[content]) >> 32;
    let mut letters = String::new();
    while rest > 0 || letters.is_empty() {
        letters.push(char::from(LETTERS[(rest % 27) as usize]));
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
    // The low bits of a short text are poor; the high ones have seen everything.
    hash ^ (hash >> 29)
}
