//! Which shard keeps a blob, and how many blobs a change of the shards moves. Pure.
//!
//! Buildbarn uses weighted rendezvous hashing: each shard has a score for a blob, and the highest wins. All
//! numbers are integers, so that every client computes the same. [`ShardSelector`] computes the same too;
//! [`moved_share`] is the exact probability that a random blob changes its shard.

#[cfg(test)]
mod tests;

use aws_lc_rs::digest::{SHA256, digest};

use crate::api::Shard;

/// The number of bits of a logarithm after its point.
const FRACTION_BITS: u32 = 16;
/// The table of logarithms has an entry for each value of this many bits after the first.
const TABLE_BITS: u32 = 6;
const TABLE_LENGTH: usize = (1 << TABLE_BITS) + 1;

/// Chooses the shards of blobs.
#[derive(Debug, Clone)]
pub struct ShardSelector {
    /// In the order of their hashes, which decides between equal scores.
    shards: Vec<HashedShard>,
    logarithms: [u64; TABLE_LENGTH],
}

#[derive(Debug, Clone, Copy)]
struct HashedShard {
    hash: u64,
    weight: u32,
    index: usize,
}

impl ShardSelector {
    /// The selector of these shards.
    pub fn new(shards: &[Shard]) -> Self {
        let shards = shards.iter().enumerate();
        let mut shards: Vec<_> = shards
            .map(|(index, shard)| HashedShard {
                hash: key_hash(&shard.key),
                weight: shard.weight,
                index,
            })
            .collect();
        shards.sort_by_key(|shard| shard.hash);
        Self {
            shards,
            logarithms: logarithms(),
        }
    }

    /// The index of the shard of a blob, by the first eight bytes of its hash, most significant first.
    pub fn select(&self, blob: u64) -> usize {
        let mut best = (0, 0);
        for shard in &self.shards {
            let score = self.score(mix(shard.hash ^ blob), shard.weight);
            if score > best.0 {
                best = (score, shard.index);
            }
        }
        best.1
    }

    /// The weight divided by the negative logarithm of `random` as a fraction of all numbers.
    fn score(&self, random: u64, weight: u32) -> u64 {
        let distance = (64 << FRACTION_BITS) - self.log2(random);
        (u64::from(weight) << 32) / distance
    }

    /// The logarithm of a number, interpolated between the entries of the table. That of zero is zero.
    fn log2(&self, number: u64) -> u64 {
        let exponent = (number >> 1).checked_ilog2().map_or(0, |it| it + 1);
        // The bits after the first, left-aligned.
        let mantissa = number.checked_shl(64 - exponent).unwrap_or(0);
        let index = (mantissa >> (64 - TABLE_BITS)) as usize;
        let rest = mantissa << TABLE_BITS >> FRACTION_BITS;
        let (low, high) = (self.logarithms[index], self.logarithms[index + 1]);
        let fraction = (low << 48).wrapping_add((high - low) * rest) >> 48;
        u64::from(exponent) << FRACTION_BITS | fraction
    }
}

/// The first eight bytes of the SHA-256 of a shard's key.
pub fn key_hash(key: &str) -> u64 {
    let hash = digest(&SHA256, key.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_ref()[..8]);
    u64::from_be_bytes(first)
}

/// The finaliser of splitmix64.
fn mix(mut number: u64) -> u64 {
    number ^= number >> 30;
    number = number.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number ^= number >> 27;
    number = number.wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Logarithms of 1, 1 + 1/64, .. 2.
fn logarithms() -> [u64; TABLE_LENGTH] {
    std::array::from_fn(|at| {
        let number = 1.0 + at as f64 / 64.0;
        (number.log2() * 65_536.0).round() as u64
    })
}

/// The share of all blobs that are on another shard after the change.
///
/// The score of a shard is its weight divided by an exponentially distributed number, so the shard wins
/// before and after if no other comes first in either race. That has a closed form, and needs no samples.
pub fn moved_share(from: &[Shard], to: &[Shard]) -> f64 {
    let weight = |shards: &[Shard], key: &str| {
        let found = shards.iter().find(|shard| shard.key == key);
        found.map_or(0.0, |shard| f64::from(shard.weight))
    };
    let keys: Vec<_> = from
        .iter()
        .chain(to.iter().filter(|it| weight(from, &it.key) == 0.0))
        .map(|shard| shard.key.as_str())
        .collect();
    let stays = keys.iter().map(|key| {
        let (before, after) = (weight(from, key), weight(to, key));
        if before == 0.0 || after == 0.0 {
            return 0.0;
        }
        let others = keys.iter().filter(|other| *other != key);
        let others: f64 = others
            .map(|other| (weight(from, other) / before).max(weight(to, other) / after))
            .sum();
        1.0 / (1.0 + others)
    });
    (1.0 - stays.sum::<f64>()).clamp(0.0, 1.0)
}

/// Two keys that are the same shard to Buildbarn, which refuses to start with them.
pub fn duplicate_key(shards: &[Shard]) -> Option<&str> {
    let mut hashes = std::collections::BTreeSet::new();
    let mut shards = shards.iter();
    let found = shards.find(|shard| !hashes.insert(key_hash(&shard.key)));
    found.map(|shard| shard.key.as_str())
}
