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

    /// Appends the pairs as a JSON object: no blanks, members in order, all values text or null.
    ///
    /// # Errors
    /// The notation is malformed or a text is not UTF-8; what was appended is then incomplete.
    pub fn append_json(&self, out: &mut String) -> Result<(), ValueError> {
        let mut separator = '{';
        self.visit(&mut |key, value| {
            out.push(separator);
            separator = ',';
            append_json_text(key, out);
            out.push(':');
            match value {
                Some(text) => append_json_text(text, out),
                None => out.push_str("null"),
            }
            Ok(())
        })?;
        if separator == '{' {
            out.push(separator);
        }
        out.push('}');
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
fn append_json_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => {
                out.push_str("\\u00");
                let code = u32::from(character);
                for digit in [code >> 4, code & 0xf] {
                    out.extend(char::from_digit(digit, 16).map(|digit| digit.to_ascii_uppercase()));
                }
            }
            _ => out.push(character),
        }
    }
    out.push('"');
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
        KeyValues { raw: &[], reader: &Pairs(pairs) }.append_json(&mut out).unwrap();
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
