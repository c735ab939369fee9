//! Java's choice of a partition: `toPositive(murmur2(key)) % partitions`.
//!
//! The producer leaves the choice to librdkafka's `murmur2_random`, which is compared with this;
//! here it places a connector in the internal topics. Knows nothing else.

/// Kafka's variant of `MurmurHash2` (32 bits, seed `0x9747b28c`).
#[expect(clippy::cast_possible_truncation, reason = "the length enters modulo 2^32, as in Java")]
pub fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    let mut hash = SEED ^ data.len() as u32;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

/// The partition of a key among so many.
pub fn partition(key: &[u8], partitions: i32) -> i32 {
    let positive = murmur2(key) & 0x7fff_ffff;
    let count = u32::try_from(partitions).unwrap_or(0).max(1);
    i32::try_from(positive % count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &[u8], hash: i32) {
        assert_eq!(murmur2(key).cast_signed(), hash, "{key:?}");
    }

    /// The table of Kafka's own `UtilsTest`.
    #[test]
    fn hashes_are_javas() {
        check(b"21", -973_932_308);
        check(b"foobar", -790_332_482);
        check(b"a-little-bit-long-string", -985_981_536);
        check(b"a-little-bit-longer-string", -1_486_304_829);
        check(b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971);
        check(b"abc", 479_470_107);
    }

    #[test]
    fn avro_keys_go_where_javas_client_sends_them() {
        let keys: [(&[u8], i32); 5] = [
            (&[0, 0, 0, 0, 1, 0x02], 0),
            (&[0, 0, 0, 0, 1, 0x04], 4),
            (&[0, 0, 0, 0, 1, 0x54], 0),
            (&[0, 0, 0, 0, 1, 0xd0, 0x0f], 4),
            (&[0, 0, 0, 0, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f], 3),
        ];
        for (key, expect) in keys {
            assert_eq!(partition(key, 6), expect, "{key:?}");
        }
    }
}
