//! Kafka Connect's predicates: which records a transform is applied to.
//!
//! Decided when a plan is compiled: a record's topic and whether it is a tombstone are known then,
//! and so is every header that is not under a guard. **Invariant:** what is not decided here is
//! given back as a guard, never taken for either answer.

use super::pattern::TopicPattern;
use crate::error::{Code, Fault};
use crate::plan::fingerprint::Fingerprint;
use crate::plan::headers;
use crate::record::{Guard, RecordShape, Topic};

/// A predicate, and whether its opposite is meant.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The predicate.
    pub predicate: Predicate,
    /// `negate`.
    pub negate: bool,
}

/// What is asked of a record.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// `TopicNameMatches`: the whole topic is of this form.
    TopicNameMatches(TopicPattern),
    /// `RecordIsTombstone`: it has no value.
    RecordIsTombstone,
    /// `HasHeaderKey`: it has a header of this name.
    HasHeaderKey(String),
}

/// Whether a step applies to a record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// For every row.
    Applies,
    /// For no row.
    AppliesNot,
    /// For rows that pass this guard.
    Depends(Guard),
}

impl Condition {
    /// Decides for a record.
    ///
    /// # Errors
    /// It asks for the topic, and that depends on the row.
    pub(super) fn decide(&self, record: &RecordShape) -> Result<Verdict, Fault> {
        let verdict = self.predicate.decide(record)?;
        Ok(if self.negate { verdict.negated() } else { verdict })
    }

    /// Whether it asks for a header that some rows of a table have and others have not.
    pub fn depends_on_values(&self) -> bool {
        match &self.predicate {
            Predicate::HasHeaderKey(name) => headers::is_guarded(name),
            Predicate::TopicNameMatches(_) | Predicate::RecordIsTombstone => false,
        }
    }

    pub(super) fn fingerprint(&self, hash: &mut Fingerprint) {
        match &self.predicate {
            Predicate::TopicNameMatches(pattern) => {
                hash.number(1);
                hash.text(pattern.text());
            }
            Predicate::RecordIsTombstone => hash.number(2),
            Predicate::HasHeaderKey(name) => {
                hash.number(3);
                hash.text(name);
            }
        }
        hash.number(self.negate.into());
    }
}

impl Predicate {
    fn decide(&self, record: &RecordShape) -> Result<Verdict, Fault> {
        let decided = |yes| if yes { Verdict::Applies } else { Verdict::AppliesNot };
        Ok(match self {
            Self::TopicNameMatches(pattern) => match &record.topic {
                Topic::Fixed(topic) => decided(pattern.matches(topic)),
                Topic::Routed(_) => {
                    return Err(Code::TransformUnfit
                        .fault("its predicate asks for the topic, which depends on the row here")
                        .hint("Put the transform before the one that routes by a field."));
                }
            },
            Self::RecordIsTombstone => decided(record.value.is_none()),
            Self::HasHeaderKey(name) => has_header(record, name),
        })
    }
}

fn has_header(record: &RecordShape, name: &str) -> Verdict {
    let mut found = record.headers.iter().filter(|header| header.name == name);
    match found.next().map(|header| &header.guard) {
        None => Verdict::AppliesNot,
        Some(Guard::Always) => Verdict::Applies,
        Some(guard) => match found.find(|header| header.guard == Guard::Always) {
            Some(_) => Verdict::Applies,
            None => Verdict::Depends(guard.clone()),
        },
    }
}

impl Verdict {
    /// The opposite.
    pub(super) fn negated(self) -> Self {
        match self {
            Self::Applies => Self::AppliesNot,
            Self::AppliesNot => Self::Applies,
            Self::Depends(guard) => Self::Depends(guard.negated()),
        }
    }
}
