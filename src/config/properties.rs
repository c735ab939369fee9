//! Java's properties files, by the rules of `java.util.Properties.load`, read as UTF-8.
//!
//! Knows no key. **Invariant:** entries come out in the order of the file, repeated ones included;
//! nothing in the input panics.

use std::iter::Peekable;
use std::str::Chars;

/// The one way in which a file can be malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: \\u must be followed by the four hexadecimal digits of a character")]
pub struct PropertiesError {
    /// Counted from 1.
    pub line: usize,
}

/// Reads all entries.
///
/// # Errors
/// A `\u` escape without four hexadecimal digits, or for half a character.
pub fn parse(text: &str) -> Result<Vec<(String, String)>, PropertiesError> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut entries = Vec::new();
    let mut lines = text.split('\n').enumerate();
    while let Some((index, line)) = lines.next() {
        let line = line.trim_start_matches(is_blank);
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = line.to_owned();
        while is_continued(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start_matches(is_blank));
        }
        entries.push(parse_entry(&logical).ok_or(PropertiesError { line: index + 1 })?);
    }
    Ok(entries)
}

const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c')
}

/// An odd number of backslashes ends the line.
fn is_continued(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

fn parse_entry(line: &str) -> Option<(String, String)> {
    let mut chars = line.chars().peekable();
    let mut key = String::new();
    while let Some(c) = chars.next_if(|c| !is_blank(*c) && !matches!(c, '=' | ':')) {
        push_unescaped(&mut key, c, &mut chars)?;
    }
    skip_blanks(&mut chars);
    if chars.next_if(|c| matches!(c, '=' | ':')).is_some() {
        skip_blanks(&mut chars);
    }
    let mut value = String::new();
    while let Some(c) = chars.next() {
        push_unescaped(&mut value, c, &mut chars)?;
    }
    Some((key, value))
}

fn skip_blanks(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| is_blank(*c)).is_some() {}
}

fn push_unescaped(text: &mut String, c: char, rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    if c != '\\' {
        text.push(c);
        return Some(());
    }
    // A backslash at the very end of the file stands for nothing.
    let Some(escaped) = rest.next() else { return Some(()) };
    text.push(match escaped {
        't' => '\t',
        'n' => '\n',
        'r' => '\r',
        'f' => '\x0c',
        'u' => unicode(rest)?,
        other => other,
    });
    Some(())
}

/// Java writes UTF-16: a character beyond the first plane is two escapes.
fn unicode(rest: &mut Peekable<Chars<'_>>) -> Option<char> {
    let first = code_unit(rest)?;
    if !(0xD800..0xDC00).contains(&first) {
        return char::from_u32(u32::from(first));
    }
    if (rest.next(), rest.next()) != (Some('\\'), Some('u')) {
        return None;
    }
    let second = code_unit(rest)?;
    char::decode_utf16([first, second]).next()?.ok()
}

fn code_unit(rest: &mut Peekable<Chars<'_>>) -> Option<u16> {
    let digits: String = rest.by_ref().take(4).collect();
    let is_hexadecimal = digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_hexadecimal.then(|| u16::from_str_radix(&digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[(&str, &str)]) {
        let entries = parse(text).expect("well-formed");
        let entries: Vec<_> = entries.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(entries, expect);
    }

    #[test]
    fn separators() {
        check("a=1", &[("a", "1")]);
        check("a:1\nb 2\nc\t=\t3\nd : = 4", &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "= 4")]);
        check("a=\nb\n=c", &[("a", ""), ("b", ""), ("", "c")]);
        check("a = x y ", &[("a", "x y ")]);
        check("a=b=c", &[("a", "b=c")]);
    }

    #[test]
    fn comments_and_blank_lines() {
        check("# a=1\n  ! b=2 \\\n\n \t\n c=3#x", &[("c", "3#x")]);
    }

    #[test]
    fn line_ends() {
        check("a=1\r\nb=2\rc=3\n", &[("a", "1"), ("b", "2"), ("c", "3")]);
        check("a=1,\\\r\n   2,\\\n\t3", &[("a", "1,2,3")]);
        check("a=1\\\\\nb=2", &[("a", "1\\"), ("b", "2")]);
        check("a=1\\\n\nb=2", &[("a", "1"), ("b", "2")]);
        check("a=1\\\n#2", &[("a", "1#2")]);
        check("a=1\\", &[("a", "1")]);
    }

    #[test]
    fn escapes() {
        check(r"a\=b\:c\ d=1", &[("a=b:c d", "1")]);
        check(r"a=\t\n\r\f\q\\", &[("a", "\t\n\r\x0cq\\")]);
        check(r"a=\u00e4\u20AC\uD83D\uDE00", &[("a", "ä€😀")]);
    }

    #[test]
    fn broken_escapes_name_their_line() {
        for text in [r"\u12", r"\u12g4", r"\uD83D", r"\uD83Dx", r"\uDE00", r"\u+123"] {
            assert_eq!(
                parse(&format!("a=1\nb={text}")),
                Err(PropertiesError { line: 2 }),
                "{text}"
            );
        }
    }

    fn escape(text: &str) -> String {
        text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
    }

    proptest! {
        #[test]
        fn nothing_panics(text in any::<String>()) {
            drop(parse(&text));
        }

        #[test]
        fn escaped_entries_come_back(entries in prop::collection::vec((any::<String>(), any::<String>()), 0..5)) {
            let text: String = entries.iter().map(|(k, v)| format!("  {}={}\n", escape(k), escape(v))).collect();
            // An entry whose key and value are empty is the line `=`, which is an entry in Java too.
            prop_assert_eq!(parse(&text), Ok(entries));
        }

        #[test]
        fn plain_entries_come_back(key in "[a-z.]{1,10}", value in "[a-z0-9=:#!][a-z0-9=:#! ]{0,10}", separator in "( ?[=:] ?)") {
            let text = format!("{key}{separator}{value}");
            prop_assert_eq!(parse(&text), Ok(vec![(key, value)]));
        }
    }
}
