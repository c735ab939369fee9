//! Regular expressions over topics, written for Java and meant as Java means them.
//!
//! Topics are ASCII, and Rust's expressions are a subset of Java's with the same order of
//! alternatives; what Java has beyond that is refused, and so is the one notation that both accept
//! and read differently (a `+` behind a repetition). Knows no transform. **Invariant:** what is
//! accepted matches and replaces as `java.util.regex` does.

use regex::Regex;

/// An expression that is asked whether it fits a whole topic.
#[derive(Clone, Debug)]
pub struct TopicPattern {
    text: String,
    whole: Regex,
    anywhere: Regex,
}

/// What is put in the place of a match, in the notation of Java's `Matcher.replaceFirst`.
#[derive(Clone, Debug)]
pub(super) struct Replacement {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Group(usize),
}

impl TopicPattern {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it, in a few words.
    pub fn parse(text: &str) -> Result<Self, String> {
        if has_possessive(text) {
            return Err("possessive repetitions ('++', '*+', '?+') are not supported".to_owned());
        }
        // Compiled as it stands first: `a)(b` must not become legal by the group around it.
        let compile = |text: &str| {
            Regex::new(text).map_err(|error| {
                // The lines before the last draw a picture.
                let picture = error.to_string();
                let reason = picture.lines().last().unwrap_or_default();
                format!("is no regular expression: {}", reason.trim_start_matches("error: "))
            })
        };
        let anywhere = compile(text)?;
        let whole = compile(&format!("^(?:{text})$"))?;
        Ok(Self { text: text.to_owned(), whole, anywhere })
    }

    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the whole topic is of this form.
    pub fn matches(&self, topic: &str) -> bool {
        self.whole.is_match(topic)
    }

    /// Replaces the first match in a topic that matches as a whole; `None`: it does not. As in
    /// Java, the first match need not be the whole topic: an expression may be content with less.
    pub(super) fn replace(&self, topic: &str, replacement: &Replacement) -> Option<String> {
        if !self.matches(topic) {
            return None;
        }
        let captures = self.anywhere.captures(topic)?;
        let found = captures.get(0)?;
        let mut replaced = topic.get(..found.start())?.to_owned();
        for part in &replacement.parts {
            replaced.push_str(match part {
                Part::Text(text) => text,
                Part::Group(group) => captures.get(*group).map_or("", |found| found.as_str()),
            });
        }
        replaced.push_str(topic.get(found.end()..)?);
        Some(replaced)
    }
}

impl Replacement {
    /// Reads a replacement for matches of an expression: `$1` and `${name}` are its groups, a
    /// backslash takes the meaning from what follows.
    pub(super) fn parse(text: &str, pattern: &TopicPattern) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text.chars();
        while let Some(next) = rest.next() {
            match next {
                '\\' => plain.push(rest.next().ok_or("ends with a backslash")?),
                '$' => {
                    let group = group(&mut rest, &pattern.anywhere)?;
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(Part::Group(group));
                }
                other => plain.push(other),
            }
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// The replacement as it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// The group that stands behind a dollar sign.
fn group(rest: &mut std::str::Chars<'_>, pattern: &Regex) -> Result<usize, String> {
    let text = rest.as_str();
    if let Some(inside) = text.strip_prefix('{') {
        let (name, after) = inside.split_once('}').ok_or("has '${' without '}'")?;
        *rest = after.chars();
        let mut names = pattern.capture_names();
        return names
            .position(|known| known == Some(name))
            .ok_or_else(|| format!("names a group '{name}' that the expression does not have"));
    }
    let mut group: Option<usize> = None;
    while let Some(digit) = rest.clone().next().and_then(|next| next.to_digit(10)) {
        let longer = group.unwrap_or(0).saturating_mul(10).saturating_add(digit as usize);
        // Java takes further digits only as long as there is such a group.
        if group.is_some() && longer >= pattern.captures_len() {
            break;
        }
        group = Some(longer);
        rest.next();
    }
    match group {
        None => Err("has a '$' that names no group (write '\\$' for a dollar sign)".to_owned()),
        Some(group) if group >= pattern.captures_len() => {
            Err(format!("names a group {group} that the expression does not have"))
        }
        Some(group) => Ok(group),
    }
}

/// Whether a repetition is followed by a plus, outside of a class and of a quotation.
fn has_possessive(text: &str) -> bool {
    let (mut is_escaped, mut depth, mut after_repetition) = (false, 0_usize, false);
    for next in text.chars() {
        if next == '+' && after_repetition && depth == 0 {
            return true;
        }
        let is_plain = std::mem::take(&mut is_escaped);
        after_repetition = !is_plain && depth == 0 && matches!(next, '*' | '+' | '?' | '}');
        match next {
            _ if is_plain => {}
            '\\' => is_escaped = true,
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, replacement: &str, topic: &str, expect: Option<&str>) {
        let pattern = TopicPattern::parse(pattern).unwrap();
        let replacement = Replacement::parse(replacement, &pattern).unwrap();
        assert_eq!(pattern.replace(topic, &replacement).as_deref(), expect);
    }

    #[test]
    fn a_topic_that_matches_as_a_whole_is_replaced() {
        check(r"shop\.(.*)\.(.*)", "$2-$1-cdc", "shop.public.smt", Some("smt-public-cdc"));
        check("a", "x", "ab", None);
        check("(?<what>.*)_[0-9]+", "${what}", "part_12", Some("part"));
        check("(a)|(b)", "<$1$2>", "b", Some("<b>"));
        check(".*", r"\$\\x", "b", Some(r"$\x"));
        check("(.)(.*)", "$11", "ab", Some("a1"));
        check("shop", "", "shop", Some(""));
    }

    #[test]
    fn the_first_match_may_be_shorter_than_the_topic() {
        check("a|ab", "x", "ab", Some("xb"));
        check(r"shop\.(.*?)", "$1", "shop.t", Some("t"));
    }

    #[track_caller]
    fn check_pattern(text: &str, expect: &str) {
        let reason = TopicPattern::parse(text).unwrap_err();
        assert!(reason.contains(expect), "{reason}");
    }

    #[test]
    fn what_rust_does_not_understand_is_refused() {
        check_pattern("(a", "unclosed group");
        check_pattern("a)(b", "unopened group");
        check_pattern("(?=a)", "look-around");
        check_pattern(r"(a)\1", "backreferences");
        check_pattern("a++", "possessive");
        check_pattern("a{2}+b", "possessive");
        check_pattern("[a*]*+", "possessive");
        for legal in [r"a\++", "[*+]+", "a+?", "(a+)+"] {
            TopicPattern::parse(legal).unwrap();
        }
    }

    #[track_caller]
    fn check_replacement(text: &str, expect: &str) {
        let pattern = TopicPattern::parse("(?<n>a)(b)").unwrap();
        let reason = Replacement::parse(text, &pattern).unwrap_err();
        assert!(reason.contains(expect), "{reason}");
    }

    #[test]
    fn a_replacement_without_its_group_is_refused() {
        check_replacement("$3", "group 3");
        check_replacement("$x", "names no group");
        check_replacement("$", "names no group");
        check_replacement("${m}", "group 'm'");
        check_replacement("${n", "without '}'");
        check_replacement("a\\", "ends with a backslash");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(
            pattern in "[a-z.*+?()|$\\\\\\[\\]{}0-9]{0,12}",
            replacement in "[a-z$\\\\{}0-9]{0,8}",
            topic in "[a-z.]{0,8}",
        ) {
            if let Ok(pattern) = TopicPattern::parse(&pattern)
                && let Ok(replacement) = Replacement::parse(&replacement, &pattern)
            {
                let replaced = pattern.replace(&topic, &replacement);
                proptest::prop_assert_eq!(replaced.is_some(), pattern.matches(&topic));
            }
        }
    }
}
