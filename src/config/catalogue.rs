//! All keys that are legal in one place: found by name, or by the nearest name.
//!
//! Knows no particular key. **Invariant:** a name that is spelled out wins over a family that
//! covers it, and an earlier family over a later one.

use super::key::KeyDef;

/// The definitions of one group, in the order in which they are shown.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The group's name in forms and documentation.
    pub group: &'static str,
    /// Its keys.
    pub keys: &'static [KeyDef],
}

/// Several tables as one.
#[derive(Clone, Debug)]
pub struct Catalogue {
    tables: Vec<&'static Table>,
}

impl Catalogue {
    /// Puts tables together; their order is the order of search and of display.
    pub fn new(tables: impl IntoIterator<Item = &'static Table>) -> Self {
        Self { tables: tables.into_iter().collect() }
    }

    /// The tables in order.
    pub fn tables(&self) -> &[&'static Table] {
        &self.tables
    }

    /// All definitions in order.
    pub fn keys(&self) -> impl Iterator<Item = &'static KeyDef> {
        self.tables.iter().flat_map(|table| table.keys)
    }

    /// The definition that a key falls under.
    pub fn find(&self, key: &str) -> Option<&'static KeyDef> {
        self.keys()
            .find(|def| def.name == key)
            .or_else(|| self.keys().find(|def| def.is_family() && def.covers(key)))
    }

    /// The known name that is nearest to one that is not known, if it is near enough to be meant.
    pub fn nearest(&self, key: &str) -> Option<String> {
        let names: Vec<String> = self.keys().flat_map(KeyDef::names).collect();
        nearest(key, names.iter().map(String::as_str)).map(str::to_owned)
    }
}

/// The candidate that differs least, if it differs by no more than a third of its length.
pub fn nearest<'c>(text: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    candidates
        .map(|candidate| (distance(text, candidate), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= candidate.chars().count() / 3)
        .map(|(_, candidate)| candidate)
}

/// Edit distance with neighbours swapped as one edit (optimal string alignment), without regard to
/// case.
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.to_lowercase().chars().collect();
    let other: Vec<char> = other.to_lowercase().chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(a != b);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_distance(one: &str, other: &str, expect: usize) {
        assert_eq!(distance(one, other), expect);
        assert_eq!(distance(other, one), expect);
    }

    #[test]
    fn distance_counts_edits() {
        check_distance("", "abc", 3);
        check_distance("slot.name", "slot.name", 0);
        check_distance("slot.nmae", "slot.name", 1);
        check_distance("Slot.Name", "slot.name", 0);
        check_distance("kitten", "sitting", 3);
    }

    #[test]
    fn only_a_name_that_is_near_is_offered() {
        let names = ["slot.name", "topic.prefix", "database.password"];
        let near = |text| nearest(text, names.iter().copied());
        assert_eq!(near("database.pasword"), Some("database.password"));
        assert_eq!(near("topic.perfix"), Some("topic.prefix"));
        assert_eq!(near("completely.different.thing"), None);
    }

    proptest::proptest! {
        #[test]
        fn distance_is_a_distance(a in "[a-c.]{0,6}", b in "[a-c.]{0,6}") {
            let d = distance(&a, &b);
            proptest::prop_assert_eq!(d, distance(&b, &a));
            proptest::prop_assert_eq!(d == 0, a == b);
            proptest::prop_assert!(d <= a.len().max(b.len()));
        }
    }
}
