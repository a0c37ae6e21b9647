//! Entropy from a seed.

use std::{
    ffi::{c_uint, c_void},
    sync::atomic::{AtomicU64, Ordering},
};

static STATE: AtomicU64 = AtomicU64::new(0);

/// Begins the stream anew.
pub fn seed(seed: u64) {
    STATE.store(seed, Ordering::Relaxed);
}

/// The next number of the stream.
fn next() -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut mixed = STATE.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Takes the place of the C library's function: a symbol of the program itself is found first.
///
/// # Safety
/// As for the function of the C library: `buffer` is writable for `length` bytes.
// SAFETY: the name and the signature are those of getrandom(2), which is what callers expect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, _flags: c_uint) -> isize {
    // SAFETY: the caller says that so many bytes are writable there, and bytes need no alignment.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&next().to_le_bytes()[..chunk.len()]);
    }
    isize::try_from(length).unwrap_or(isize::MAX)
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, RandomState};

    /// The keys of a thread's first map.
    fn first_hash(seed: u64) -> u64 {
        super::seed(seed);
        let hashed = std::thread::spawn(|| RandomState::new().hash_one(1));
        hashed.join().unwrap_or_default()
    }

    #[test]
    fn maps_of_the_standard_library_follow_the_seed() {
        let one = first_hash(1);
        assert_eq!(one, first_hash(1));
        assert_ne!(one, first_hash(2));
    }
}
