//! Names and values that pass through to a client or a converter, in layers.
//!
//! **Invariant:** values are never printed: any of them may be a secret.

use std::fmt;

/// Names without their prefix, with values, references replaced.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Layer(Vec<(String, String)>);

impl Layer {
    /// The value of a name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All of it in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether the name is in it.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// This one, and over it another.
    #[must_use]
    pub fn under(&self, over: &Self) -> Self {
        Self(self.0.iter().chain(&over.0).cloned().collect())
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Layer {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(entries: I) -> Self {
        Self(entries.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_layer_wins_and_nothing_is_printed() {
        let lower: Layer = [("a", "1"), ("b", "2")].into_iter().collect();
        let both = lower.under(&[("b", "S3cret")].into_iter().collect());
        assert_eq!(
            (both.value("a"), both.value("b"), both.value("c")),
            (Some("1"), Some("S3cret"), None)
        );
        assert!(!format!("{both:?}").contains("S3cret"));
    }
}
