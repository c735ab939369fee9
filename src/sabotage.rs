//! Three deliberate faults, so that the tests of delivery can be seen to fail.
//!
//! Only in builds with the feature `sabotage`, which no ordinary build has (`tests/it/house.rs`),
//! and there only what the environment names. Knows no layer; the layers ask it.
//! **Invariant:** without the variable a build with the feature does what one without it does.

use std::sync::OnceLock;

/// Names the fault to commit; several are separated by commas.
const VARIABLE: &str = "TIDEGATE_SABOTAGE";

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// A position is acknowledged to the source before Kafka has committed it.
    AcknowledgeFirst,
    /// The offset is written behind the Kafka transaction instead of inside it.
    OffsetOutside,
    /// A source that has moved past the stored offset is taken for one that has not.
    NoGapCheck,
}

impl Sabotage {
    /// Whether it was asked for.
    pub(crate) fn is_on(self) -> bool {
        static CHOSEN: OnceLock<Vec<Sabotage>> = OnceLock::new();
        CHOSEN
            .get_or_init(|| {
                let chosen = parse(&std::env::var(VARIABLE).unwrap_or_default());
                if !chosen.is_empty() {
                    tracing::warn!(?chosen, "this build loses data on purpose: {VARIABLE} is set");
                }
                chosen
            })
            .contains(&self)
    }
}

/// Names that are unknown choose nothing: a test that asks for one sees that it finds nothing.
fn parse(text: &str) -> Vec<Sabotage> {
    let one = |name: &str| match name.trim() {
        "acknowledge-first" => Some(Sabotage::AcknowledgeFirst),
        "offset-outside" => Some(Sabotage::OffsetOutside),
        "no-gap-check" => Some(Sabotage::NoGapCheck),
        _ => None,
    };
    text.split(',').filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_on() {
        assert_eq!(parse(""), []);
        assert_eq!(parse("offset-outside"), [Sabotage::OffsetOutside]);
        let both = [Sabotage::AcknowledgeFirst, Sabotage::NoGapCheck];
        assert_eq!(parse("acknowledge-first, no-gap-check, else"), both);
    }
}
