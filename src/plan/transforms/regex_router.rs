//! `RegexRouter`: another topic for records whose topic is of a form.
//!
//! Knows no Kafka client. **Invariant:** the new name is one that a broker accepts, or refused
//! before the first row.

use std::sync::Arc;

use super::pattern::{Replacement, TopicPattern};
use crate::error::Fault;
use crate::plan::fingerprint::Fingerprint;
use crate::plan::topics;
use crate::record::{RecordShape, Route, Topic, TopicNaming};

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
        let topic = match record.topic {
            Topic::Fixed(topic) => Topic::Fixed(self.name(topic)?),
            Topic::Routed(Route { by, naming }) => {
                let naming = Arc::new(Renamed { naming, router: self.clone() });
                Topic::Routed(Route { by, naming })
            }
        };
        Ok(RecordShape { topic, ..record })
    }

    fn name(&self, topic: String) -> Result<String, Fault> {
        match self.pattern.replace(&topic, &self.replacement) {
            None => Ok(topic),
            Some(replaced) => topics::check(&replaced).map(|()| replaced),
        }
    }

    pub(super) fn fingerprint(&self, hash: &mut Fingerprint) {
        hash.text(self.pattern.text());
        hash.text(self.replacement.text());
    }
}

/// What a text means, and what becomes of that.
#[derive(Debug)]
struct Renamed {
    naming: Arc<dyn TopicNaming>,
    router: RegexRouter,
}

impl TopicNaming for Renamed {
    fn topic(&self, text: &str) -> Result<String, Fault> {
        self.router.name(self.naming.topic(text)?)
    }
}
