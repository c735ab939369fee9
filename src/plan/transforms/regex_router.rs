//! `RegexRouter`: another topic for records whose topic is of a form.
//!
//! Knows no Kafka client. **Invariant:** the new name is one that a broker accepts, or refused
//! before the first row.

use super::pattern::{Replacement, TopicPattern};
use crate::error::Fault;
use crate::plan::fingerprint::Fingerprint;
use crate::plan::topics;
use crate::record::RecordShape;

/// `org.apache.kafka.connect.transforms.RegexRouter`.
#[derive(Clone, Debug)]
pub struct RegexRouter {
    pattern: TopicPattern,
    replacement: Replacement,
}

impl RegexRouter {
    /// `regex` and `replacement`.
    ///
    /// # Errors
    /// What is wrong with the replacement.
    pub fn new(pattern: TopicPattern, replacement: &str) -> Result<Self, String> {
        let replacement = Replacement::parse(replacement, &pattern)?;
        Ok(Self { pattern, replacement })
    }

    pub(super) fn apply(&self, record: RecordShape) -> Result<RecordShape, Fault> {
        match self.pattern.replace(&record.topic, &self.replacement) {
            None => Ok(record),
            Some(topic) => {
                topics::check(&topic)?;
                Ok(RecordShape { topic, ..record })
            }
        }
    }

    pub(super) fn fingerprint(&self, hash: &mut Fingerprint) {
        hash.text(self.pattern.text());
        hash.text(self.replacement.text());
    }
}
