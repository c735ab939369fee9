//! Key-value pairs of one cell, read by visiting.
//!
//! Stands beside `Sequence` in the neutral model. Knows no source's notation; the JSON form is the
//! one in which such a column is published as text. **Invariant:** pairs keep the source's order,
//! and a missing value is never an empty text.

use std::fmt;

use super::scalar::ValueError;

/// Pairs of a text key and an optional text value in the source's notation, and who can read it.
#[derive(Clone, Copy)]
pub struct KeyValues<'a> {
    /// The cell's bytes.
    pub raw: &'a [u8],
    /// Reads them.
    pub reader: &'a dyn KeyValueReader,
}

/// What is called for each pair: its key and its value.
pub type EachPair<'f> = dyn FnMut(&str, Option<&str>) -> Result<(), ValueError> + 'f;

/// Reads key-value pairs in a source's notation.
pub trait KeyValueReader: Send + Sync + fmt::Debug {
    /// Calls `each` for every pair in order; stops at its first error.
    ///
    /// # Errors
    /// The notation is malformed, a text is not UTF-8, or `each` failed.
    fn visit(&self, raw: &[u8], each: &mut EachPair<'_>) -> Result<(), ValueError>;
}

impl KeyValues<'_> {
    /// Calls `each` for every pair in order; stops at its first error.
    ///
    /// # Errors
    /// The notation is malformed, a text is not UTF-8, or `each` failed.
    pub fn visit(&self, each: &mut EachPair<'_>) -> Result<(), ValueError> {
        self.reader.visit(self.raw, each)
    }

    /// Gives the pairs piece by piece as a JSON object: no blanks, members in order, all values text
    /// or null.
    ///
    /// # Errors
    /// The notation is malformed or a text is not UTF-8; what was given is then incomplete.
    pub fn write_json(&self, piece: &mut dyn FnMut(&str)) -> Result<(), ValueError> {
        let mut before = "{";
        self.visit(&mut |key, value| {
            piece(before);
            before = ",";
            write_json_text(key, piece);
            piece(":");
            match value {
                Some(text) => write_json_text(text, piece),
                None => piece("null"),
            }
            Ok(())
        })?;
        if before == "{" {
            piece(before);
        }
        piece("}");
        Ok(())
    }
}

impl fmt::Debug for KeyValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyValues({} raw bytes)", self.raw.len())
    }
}

/// Only what JSON demands is escaped (RFC 8259 section 7), in the short form where there is one and
/// with upper-case digits elsewhere, as the Java writers that consumers know do it.
fn write_json_text(text: &str, piece: &mut dyn FnMut(&str)) {
    piece("\"");
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        let (plain, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        piece(plain);
        let mut characters = from.chars();
        match characters.next() {
            Some('"') => piece("\\\""),
            Some('\\') => piece("\\\\"),
            Some('\n') => piece("\\n"),
            Some('\r') => piece("\\r"),
            Some('\t') => piece("\\t"),
            Some('\u{8}') => piece("\\b"),
            Some('\u{c}') => piece("\\f"),
            Some(control) => {
                piece("\\u00");
                let code = u32::from(control);
                for digit in [code >> 4, code & 0xf] {
                    let digit = char::from_digit(digit, 16).unwrap_or('0').to_ascii_uppercase();
                    piece(digit.encode_utf8(&mut [0; 4]));
                }
            }
            None => {}
        }
        rest = characters.as_str();
    }
    piece(rest);
    piece("\"");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Pairs(&'static [(&'static str, Option<&'static str>)]);

    impl KeyValueReader for Pairs {
        fn visit(&self, _: &[u8], each: &mut EachPair<'_>) -> Result<(), ValueError> {
            self.0.iter().try_for_each(|(key, value)| each(key, *value))
        }
    }

    #[track_caller]
    fn check(pairs: &'static [(&'static str, Option<&'static str>)], expect: &str) {
        let mut out = String::new();
        let pairs = KeyValues { raw: &[], reader: &Pairs(pairs) };
        pairs.write_json(&mut |piece| out.push_str(piece)).unwrap();
        assert_eq!(out, expect);
    }

    #[test]
    fn pairs_become_a_json_object() {
        check(&[], "{}");
        check(&[("a b", Some("1, 2")), ("c", None)], r#"{"a b":"1, 2","c":null}"#);
        check(
            &[("\"\\/", Some("\u{1f}\u{b}\n\r\t\u{8}\u{c}é"))],
            r#"{"\"\\/":"\u001F\u000B\n\r\t\b\fé"}"#,
        );
    }
}
