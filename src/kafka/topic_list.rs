//! The task's topics by number, shared between the reader, who adds, and the publisher, who reads.
//!
//! Knows no Kafka client. **Invariant:** a number never changes its meaning, so that each side may
//! keep its own copy and look at the shared list only for numbers that it does not know.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::record::TopicId;

/// The topics of one task. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct TopicList(Arc<RwLock<Topics>>);

#[derive(Debug, Default)]
struct Topics {
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, TopicId>,
}

impl TopicList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// The topic's number; a topic that is not in the list is added.
    pub fn id(&self, name: &str) -> TopicId {
        let mut topics = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = topics.ids.get(name) {
            return *id;
        }
        let id = TopicId(u32::try_from(topics.names.len()).unwrap_or(u32::MAX));
        let name: Arc<str> = Arc::from(name);
        topics.names.push(Arc::clone(&name));
        topics.ids.insert(name, id);
        id
    }

    /// The topic's name.
    pub fn name(&self, id: TopicId) -> Option<Arc<str>> {
        let topics = self.0.read().unwrap_or_else(PoisonError::into_inner);
        topics.names.get(id.0 as usize).cloned()
    }

    /// Brings a copy of the list up to date.
    pub(super) fn copy_news(&self, known: &mut Vec<Arc<str>>) {
        let topics = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.extend(topics.names.iter().skip(known.len()).cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_keeps_its_number() {
        let list = TopicList::new();
        let shared = list.clone();
        assert_eq!([list.id("a"), shared.id("b"), list.id("a")].map(|id| id.0), [0, 1, 0]);
        assert_eq!(shared.name(TopicId(1)).as_deref(), Some("b"));
        assert_eq!(list.name(TopicId(2)), None);
        let mut copy = vec![Arc::from("a")];
        list.copy_news(&mut copy);
        assert_eq!(copy.len(), 2);
    }
}
