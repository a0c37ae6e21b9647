use super::*;

fn shards(weights: &[(&str, u32)]) -> Vec<Shard> {
    let shards = weights.iter();
    shards
        .map(|(key, weight)| Shard {
            key: (*key).to_owned(),
            weight: *weight,
        })
        .collect()
}

#[test]
fn the_first_blobs_are_where_buildbarn_keeps_them() {
    let shards = shards(&[("a", 1), ("b", 2), ("c", 4), ("d", 7), ("e", 1)]);
    let selector = ShardSelector::new(&shards);
    let first: Vec<_> = (0..20).map(|blob| selector.select(blob)).collect();
    let theirs = [3, 2, 0, 3, 3, 3, 0, 0, 1, 3, 0, 3, 1, 2, 2, 2, 3, 3, 1, 3];
    assert_eq!(first, theirs);
}

#[test]
fn ten_million_blobs_are_distributed_as_buildbarn_distributes_them() {
    let shards = shards(&[("a", 1), ("b", 2), ("c", 4), ("d", 7), ("e", 1)]);
    let selector = ShardSelector::new(&shards);
    let mut counts = [0; 5];
    for blob in 0..10_000_000 {
        counts[selector.select(blob)] += 1;
    }
    assert_eq!(counts, [668_687, 1_332_248, 2_666_353, 4_666_342, 666_370]);
}

#[test]
fn logarithms_of_powers_are_exact() {
    let selector = ShardSelector::new(&[]);
    for exponent in 0..64 {
        assert_eq!(selector.log2(1 << exponent), exponent << FRACTION_BITS);
    }
    assert_eq!(selector.log2(0), 0);
    assert_eq!(selector.log2(u64::MAX), (64 << FRACTION_BITS) - 1);
}

#[test]
fn the_predicted_share_of_moved_blobs_is_that_of_a_million_random_ones() {
    for (from, to) in [
        (vec![("0", 1), ("1", 1)], vec![("0", 1), ("1", 1), ("2", 1)]),
        (vec![("0", 1), ("1", 1), ("2", 1)], vec![("0", 1), ("1", 1)]),
        (vec![("0", 1), ("1", 1)], vec![("0", 1), ("1", 3)]),
        (
            vec![("0", 2), ("1", 3), ("2", 1)],
            vec![("0", 1), ("2", 4), ("3", 2)],
        ),
        (vec![("0", 1), ("1", 1)], vec![("x", 1), ("y", 1)]),
        (vec![("0", 1), ("1", 1)], vec![("1", 1), ("0", 1)]),
    ] {
        let (from, to) = (shards(&from), shards(&to));
        let (before, after) = (ShardSelector::new(&from), ShardSelector::new(&to));
        let mut moved = 0;
        for number in 0..1_000_000_u64 {
            let blob = mix(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let (old, new) = (before.select(blob), after.select(blob));
            moved += u32::from(from[old].key != to[new].key);
        }
        let (counted, predicted) = (f64::from(moved) / 1e6, moved_share(&from, &to));
        let difference = (counted - predicted).abs();
        assert!(
            difference < 0.002,
            "{from:?} → {to:?}: {counted} {predicted}"
        );
    }
}

#[test]
fn the_order_of_the_shards_changes_nothing() {
    let (some, others) = (shards(&[("a", 1), ("b", 2)]), shards(&[("b", 2), ("a", 1)]));
    assert!(moved_share(&some, &others) < 1e-9);
    let (one, other) = (ShardSelector::new(&some), ShardSelector::new(&others));
    for blob in 0..1000 {
        assert_eq!(
            some[one.select(mix(blob))].key,
            others[other.select(mix(blob))].key
        );
    }
}

#[test]
fn a_key_that_occurs_twice_is_found() {
    assert_eq!(duplicate_key(&shards(&[("a", 1), ("b", 2)])), None);
    assert_eq!(
        duplicate_key(&shards(&[("a", 1), ("b", 2), ("a", 3)])),
        Some("a")
    );
}
