//! What was asked while a table version is opened: each topic and each schema once.
//!
//! Most records of a plan share both. Knows no service. **Invariant:** an answer is kept for the
//! very topic, side and schema that it was given for.

use std::sync::Arc;

use crate::convert::{Converter, Converters};
use crate::record::{Schema, Side, TopicId};

/// The answers so far.
#[derive(Debug)]
pub(super) struct Opening {
    /// What writes the records.
    pub(super) converters: Converters,
    topics: Vec<(String, TopicId)>,
    ids: Vec<(TopicId, Side, Arc<Schema>, Option<u32>)>,
}

impl Opening {
    /// Nothing was asked yet.
    pub(super) const fn new(converters: Converters) -> Self {
        Self { converters, topics: Vec::new(), ids: Vec::new() }
    }

    /// What writes one side of the records.
    pub(super) const fn converter(&self, side: Side) -> Converter {
        match side {
            Side::Key => self.converters.key,
            Side::Value => self.converters.value,
        }
    }

    /// A topic that was seen to.
    pub(super) fn topic(&self, name: &str) -> Option<TopicId> {
        self.topics.iter().find(|(known, _)| known == name).map(|(_, id)| *id)
    }

    /// Keeps a topic that was seen to.
    pub(super) fn keep_topic(&mut self, name: &str, id: TopicId) {
        self.topics.push((name.to_owned(), id));
    }

    /// The id that a schema has, if it was asked for.
    pub(super) fn schema_id(
        &self,
        topic: TopicId,
        side: Side,
        schema: &Arc<Schema>,
    ) -> Option<Option<u32>> {
        self.ids
            .iter()
            .find(|(place, half, known, _)| {
                *place == topic && *half == side && (Arc::ptr_eq(known, schema) || known == schema)
            })
            .map(|(.., id)| *id)
    }

    /// Keeps an answer.
    pub(super) fn keep_schema_id(
        &mut self,
        topic: TopicId,
        side: Side,
        schema: &Arc<Schema>,
        id: Option<u32>,
    ) {
        self.ids.push((topic, side, Arc::clone(schema), id));
    }
}
