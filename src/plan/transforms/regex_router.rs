//! `RegexRouter`: another topic for records whose topic is of a form.
//!
//! Knows no Kafka client. **Invariant:** a name is what Kafka Connect would make of it; whether a
//! broker accepts it is asked when all transforms are through.

use std::sync::Arc;

use super::pattern::{Replacement, TopicPattern};
use crate::plan::fingerprint::Fingerprint;
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

    pub(super) fn apply(&self, record: RecordShape) -> RecordShape {
        let topic = match record.topic {
            Topic::Fixed(topic) => Topic::Fixed(self.rename(topic)),
            Topic::Routed(Route { by, naming }) => {
                let naming = Arc::new(Renamed { naming, router: self.clone() });
                Topic::Routed(Route { by, naming })
            }
        };
        RecordShape { topic, ..record }
    }

    fn rename(&self, topic: String) -> String {
        self.pattern.replace(&topic, &self.replacement).unwrap_or(topic)
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
    fn topic(&self, text: &str) -> String {
        self.router.rename(self.naming.topic(text))
    }
}
