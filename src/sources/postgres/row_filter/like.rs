//! `LIKE`: a pattern, split once, held against texts.
//!
//! What the server's `MatchText` does (`like_match.c`), for collations under which equal means equal
//! bytes. Knows no rows. **Invariants:** matching allocates nothing and takes at most the product
//! of both lengths; `_` stands for one character, not one byte.

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(Box<[Piece]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// One character, in its bytes.
    Char(Box<[u8]>),
    /// `_`.
    One,
    /// `%`.
    Any,
}

impl Pattern {
    /// Splits a pattern; `None`: it ends with the escape character, which the server refuses when
    /// it meets it.
    pub(super) fn parse(text: &str, escape: Option<char>) -> Option<Self> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut chars = text.chars();
        let plain = |c: char| Piece::Char(c.to_string().into_bytes().into());
        while let Some(c) = chars.next() {
            let piece = match c {
                _ if Some(c) == escape => plain(chars.next()?),
                '%' if pieces.last() == Some(&Piece::Any) => continue,
                '%' => Piece::Any,
                '_' => Piece::One,
                _ => plain(c),
            };
            pieces.push(piece);
        }
        Some(Self(pieces.into()))
    }

    /// Whether a text, in UTF-8, fits.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        let mut pieces = &*self.0;
        let mut rest = text;
        // Where to go on if it does not fit: behind the last `%`, one character further.
        let mut retry: Option<(&[Piece], &[u8])> = None;
        loop {
            let step = match pieces.split_first() {
                None if rest.is_empty() => return true,
                None => None,
                Some((Piece::Any, after)) => {
                    if after.is_empty() {
                        return true;
                    }
                    retry = Some((after, rest));
                    pieces = after;
                    continue;
                }
                Some((Piece::One, after)) => skip(rest).map(|rest| (after, rest)),
                Some((Piece::Char(bytes), after)) => {
                    rest.strip_prefix(&**bytes).map(|rest| (after, rest))
                }
            };
            if let Some((after, left)) = step {
                (pieces, rest) = (after, left);
                continue;
            }
            let Some((after, from)) = retry else { return false };
            let Some(from) = skip(from) else { return false };
            retry = Some((after, from));
            (pieces, rest) = (after, from);
        }
    }
}

/// The text behind its first character.
fn skip(text: &[u8]) -> Option<&[u8]> {
    let (_, mut rest) = text.split_first()?;
    while let Some((0x80..=0xbf, after)) = rest.split_first() {
        rest = after;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, expect: bool) {
        let parsed = Pattern::parse(pattern, Some('\\')).expect("a pattern");
        assert_eq!(parsed.matches(text.as_bytes()), expect, "{text} LIKE {pattern}");
    }

    #[test]
    fn patterns_fit_as_the_server_has_them() {
        check("", "", true);
        check("", "a", false);
        check("%", "", true);
        check("abc", "abc", true);
        check("abc", "abcd", false);
        check("a%", "abcd", true);
        check("%d", "abcd", true);
        check("%b%d", "abcbd", true);
        check("%b_", "abcbd", true);
        check("a%%b", "ab", true);
        check("_", "é", true);
        check("__", "日本", true);
        check("_", "", false);
        check("%本%", "日本語", true);
        check(r"100\%", "100%", true);
        check(r"100\%", "1000", false);
        check(r"a\\b", r"a\b", true);
        check("%aab", "aaaaab", true);
        check("%a_c%", "xxabdabc", true);
        check("%_", "é", true);
    }

    #[test]
    fn an_escape_needs_something_to_escape() {
        assert_eq!(Pattern::parse(r"a\", Some('\\')), None);
        assert!(Pattern::parse(r"a\", None).is_some_and(|pattern| pattern.matches(br"a\")));
        assert!(Pattern::parse("a!%", Some('!')).is_some_and(|pattern| pattern.matches(b"a%")));
    }
}
