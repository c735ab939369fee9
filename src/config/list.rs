//! Lists in configuration values: plain ones, and lists of regular expressions.
//!
//! Knows no key. **Invariant:** an expression matches a whole name or nothing of it.

use regex::{Regex, RegexBuilder};

/// The elements of a list: separated by commas, without the blanks around them, empty ones left
/// out.
pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|element| !element.is_empty())
}

/// Compiles a list of regular expressions: anchored, case-insensitive. A comma inside brackets, or
/// after a backslash, belongs to the expression.
///
/// # Errors
/// Which expression cannot be compiled, and why.
pub fn parse_patterns(text: &str) -> Result<Vec<Regex>, String> {
    split_patterns(text).into_iter().map(parse_pattern).collect()
}

fn parse_pattern(pattern: &str) -> Result<Regex, String> {
    // Compiled as it stands first: `a)(b` must not become legal by the group around it.
    Regex::new(pattern)
        .and_then(|_| RegexBuilder::new(&format!("^(?:{pattern})$")).case_insensitive(true).build())
        .map_err(|error| {
            // The lines before the last draw a picture.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("{pattern} is not a regular expression: {reason}")
        })
}

/// The expressions of a list.
pub(super) fn split_patterns(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut depth, mut is_escaped) = (0, 0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                pieces.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.extend(text.get(start..));
    pieces.into_iter().map(str::trim).filter(|piece| !piece.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_split(text: &str, expect: &[&str]) {
        assert_eq!(split_patterns(text), expect);
    }

    #[test]
    fn commas_inside_an_expression_do_not_split_it() {
        check_split("", &[]);
        check_split(r"public\.t_a, public\.t_b ,", &[r"public\.t_a", r"public\.t_b"]);
        check_split(r"a{1,2},[b,c],(d,e)", &["a{1,2}", "[b,c]", "(d,e)"]);
        check_split(r"a\,b,c", &[r"a\,b", "c"]);
        check_split("public.(t_a,x", &["public.(t_a,x"]);
    }

    #[test]
    fn patterns_match_whole_names_in_any_case() {
        let patterns = parse_patterns("public\\.a|b").expect("legal");
        assert!(patterns.iter().any(|p| p.is_match("PUBLIC.A")));
        assert!(!patterns.iter().any(|p| p.is_match("public.ab")));
        assert!(!patterns.iter().any(|p| p.is_match("xb")));
    }

    #[test]
    fn a_broken_pattern_is_named_with_the_reason() {
        assert_eq!(
            parse_patterns("ok,public.(t_a").map(drop),
            Err("public.(t_a is not a regular expression: unclosed group".into())
        );
        assert!(parse_patterns("a)(b").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_fail_otherwise(text in ".{0,40}") {
            drop(parse_patterns(&text));
            let joined: String = split_patterns(&text).concat();
            proptest::prop_assert!(joined.len() <= text.len());
        }
    }
}
