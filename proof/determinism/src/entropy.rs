//! Entropy from a seed.

use std::{
    ffi::{c_uint, c_void},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use nix::libc;

static STATE: AtomicU64 = AtomicU64::new(0);
/// Until a seed is set, entropy is the system's.
static SEEDED: AtomicBool = AtomicBool::new(false);

/// Restarts the stream with this seed.
pub fn seed(seed: u64) {
    STATE.store(seed, Ordering::Relaxed);
    SEEDED.store(true, Ordering::Release);
}

/// The next number of the stream (`SplitMix64`).
fn next() -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut mixed = STATE.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Replaces the C library's function: a symbol of the program itself is found first.
///
/// # Safety
/// As for the function of the C library: `buffer` is writable for `length` bytes.
// SAFETY: the name and the signature are those of getrandom(2), which is what callers expect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize {
    if !SEEDED.load(Ordering::Acquire) {
        // SAFETY: the arguments are those of the call that this function replaces.
        let filled = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) };
        return isize::try_from(filled).unwrap_or(-1);
    }
    // SAFETY: the caller guarantees that `length` bytes are writable there, and bytes need no
    // alignment.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&next().to_le_bytes()[..chunk.len()]);
    }
    isize::try_from(length).unwrap_or(isize::MAX)
}
