//! Texts that are hidden or shortened: a mask, a cut, a salted hash.
//!
//! Knows no configuration. **Invariants:** what a mask or a hash stands for is never written, not
//! even in part; nothing here allocates.

use std::fmt;
use std::sync::Arc;

use md5::{Digest as _, Md5};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512, SHA512_256};

use super::Primitive;

/// What becomes of a text before it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hiding {
    /// This text stands for every text.
    Mask(Arc<str>),
    /// So many UTF-16 code units at most (Java's characters); no character is cut in two.
    Truncate(usize),
    /// A hash stands for it.
    Hash(Arc<SaltedHash>),
}

/// A salted hash of texts, in lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct SaltedHash {
    /// The algorithm.
    pub algorithm: HashAlgorithm,
    /// Goes into the hash before the text.
    pub salt: Vec<u8>,
    /// What of the text goes into it.
    pub input: HashInput,
    /// Digits that are written at most; `None`: all.
    pub digits: Option<usize>,
}

/// The salt is a secret.
impl fmt::Debug for SaltedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaltedHash")
            .field("algorithm", &self.algorithm)
            .field("input", &self.input)
            .field("digits", &self.digits)
            .finish_non_exhaustive()
    }
}

/// What of a text is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashInput {
    /// The text as Java's object serialization writes it: a header, its length, and its characters
    /// in modified UTF-8 (Java Object Serialization Specification, section 6).
    JavaObject,
    /// Its UTF-8 bytes.
    Utf8,
}

/// A hash algorithm, by Java's standard names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashAlgorithm {
    /// 128 bits; broken, for compatibility only.
    Md5,
    /// 160 bits; broken, for compatibility only.
    Sha1,
    /// 256 bits.
    Sha256,
    /// 384 bits.
    Sha384,
    /// 512 bits.
    Sha512,
    /// 256 bits of another start value's 512.
    Sha512In256,
}

impl HashAlgorithm {
    /// Every algorithm with its name.
    pub const ALL: [(&'static str, Self); 6] = [
        ("MD5", Self::Md5),
        ("SHA-1", Self::Sha1),
        ("SHA-256", Self::Sha256),
        ("SHA-384", Self::Sha384),
        ("SHA-512", Self::Sha512),
        ("SHA-512/256", Self::Sha512In256),
    ];

    /// The algorithm of a name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|it| it.1)
    }
}

/// The longest hash, bytes.
const LONGEST: usize = 64;

enum Hasher {
    Md5(Md5),
    Sha(Context),
}

impl Hasher {
    fn new(algorithm: HashAlgorithm) -> Self {
        let sha = |algorithm| Self::Sha(Context::new(algorithm));
        match algorithm {
            HashAlgorithm::Md5 => Self::Md5(Md5::new()),
            HashAlgorithm::Sha1 => sha(&SHA1_FOR_LEGACY_USE_ONLY),
            HashAlgorithm::Sha256 => sha(&SHA256),
            HashAlgorithm::Sha384 => sha(&SHA384),
            HashAlgorithm::Sha512 => sha(&SHA512),
            HashAlgorithm::Sha512In256 => sha(&SHA512_256),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Md5(hasher) => hasher.update(bytes),
            Self::Sha(context) => context.update(bytes),
        }
    }

    fn finish(self) -> ([u8; LONGEST], usize) {
        let mut hash = [0; LONGEST];
        let mut keep = |bytes: &[u8]| {
            hash.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            bytes.len()
        };
        let length = match self {
            Self::Md5(hasher) => keep(&hasher.finalize()),
            Self::Sha(context) => keep(context.finish().as_ref()),
        };
        (hash, length)
    }
}

impl SaltedHash {
    fn write<P: Primitive>(&self, text: &str, out: &mut P) {
        let mut hasher = Hasher::new(self.algorithm);
        hasher.update(&self.salt);
        match self.input {
            HashInput::Utf8 => hasher.update(text.as_bytes()),
            HashInput::JavaObject => java_object(text, &mut hasher),
        }
        let (hash, length) = hasher.finish();
        let digits = self.digits.map_or(length * 2, |most| most.min(length * 2));
        out.ascii(
            digits,
            hash.into_iter().flat_map(|byte| [hex(byte >> 4), hex(byte & 15)]).take(digits),
        );
    }
}

const fn hex(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
}

/// Stream magic and version, then a string, short or long, with its length in bytes.
fn java_object(text: &str, hasher: &mut Hasher) {
    let length: usize = text.chars().map(modified_length).sum();
    hasher.update(&[0xac, 0xed, 0x00, 0x05]);
    match u16::try_from(length) {
        Ok(length) => {
            hasher.update(b"t");
            hasher.update(&length.to_be_bytes());
        }
        Err(_) => {
            hasher.update(b"|");
            hasher.update(&(length as u64).to_be_bytes());
        }
    }
    let mut plain = 0;
    for (at, c) in text.char_indices().filter(|(_, c)| is_modified(*c)) {
        hasher.update(text.get(plain..at).unwrap_or_default().as_bytes());
        plain = at + c.len_utf8();
        if c == '\0' {
            hasher.update(&[0xc0, 0x80]);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let [high, low] = unit.to_be_bytes();
            let middle = (high & 0x0f) << 2 | low >> 6;
            hasher.update(&[0xe0 | high >> 4, 0x80 | middle, 0x80 | low & 0x3f]);
        }
    }
    hasher.update(text.get(plain..).unwrap_or_default().as_bytes());
}

/// Modified UTF-8 differs for NUL and for what needs two UTF-16 units.
const fn is_modified(c: char) -> bool {
    c == '\0' || c as u32 > 0xffff
}

const fn modified_length(c: char) -> usize {
    match c {
        '\0' => 2,
        _ if c as u32 > 0xffff => 6,
        _ => c.len_utf8(),
    }
}

/// The beginning of a text, so many UTF-16 code units long at most.
fn truncate(text: &str, units: usize) -> &str {
    // A text has at most as many units as bytes.
    if text.len() <= units {
        return text;
    }
    let mut left = units;
    for (at, c) in text.char_indices() {
        match left.checked_sub(c.len_utf16()) {
            Some(rest) => left = rest,
            None => return text.get(..at).unwrap_or_default(),
        }
    }
    text
}

/// Writes what stands for a text.
pub(super) fn write<P: Primitive>(text: &str, hiding: &Hiding, out: &mut P) {
    match hiding {
        Hiding::Mask(mask) => out.text(mask),
        Hiding::Truncate(units) => out.text(truncate(text, *units)),
        Hiding::Hash(hash) => hash.write(text, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_truncate(text: &str, units: usize, expect: &str) {
        assert_eq!(truncate(text, units), expect);
    }

    #[test]
    fn a_text_is_cut_by_javas_characters_and_never_inside_one() {
        check_truncate("abc", 3, "abc");
        check_truncate("abcd", 3, "abc");
        check_truncate("aü€d", 3, "aü€");
        check_truncate("a😀b", 3, "a😀");
        check_truncate("a😀b", 2, "a");
        check_truncate("a", 0, "");
        check_truncate("", 0, "");
    }

    #[test]
    fn java_serializes_some_characters_in_its_own_way() {
        let hash = |text: &str| {
            let mut hasher = Hasher::new(HashAlgorithm::Md5);
            java_object(text, &mut hasher);
            hasher.finish()
        };
        let bytes = |bytes: &[u8]| {
            let mut hasher = Hasher::new(HashAlgorithm::Md5);
            hasher.update(bytes);
            hasher.finish()
        };
        assert_eq!(
            hash("a\0€😀b"),
            bytes(b"\xac\xed\0\x05t\0\x0da\xc0\x80\xe2\x82\xac\xed\xa0\xbd\xed\xb8\x80b")
        );
        let long = "x".repeat(70_000);
        let mut expect = b"\xac\xed\0\x05|\0\0\0\0\0\x01\x11\x70".to_vec();
        expect.extend_from_slice(long.as_bytes());
        assert_eq!(hash(&long), bytes(&expect));
    }

    #[test]
    fn the_salt_is_not_shown() {
        let hash = SaltedHash {
            algorithm: HashAlgorithm::Sha256,
            salt: b"pepper".to_vec(),
            input: HashInput::Utf8,
            digits: None,
        };
        let shown = format!("{hash:?}");
        assert!(!shown.contains("pepper") && !shown.contains("112"), "{shown}");
    }
}
