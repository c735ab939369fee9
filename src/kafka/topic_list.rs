//! The task's topics by number, shared between the reader, who adds, and the publisher, who reads.
//!
//! Knows no Kafka client. **Invariant:** a number never changes its meaning, so that each side may
//! keep its own copy and look at the shared list only for numbers that it does not know.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::record::TopicId;

/// The topics of one task. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct TopicList {
    topics: Arc<RwLock<Topics>>,
    written: WrittenTopics,
}

/// The topics to which a connector has written, over all its tasks. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct WrittenTopics(Arc<Mutex<Written>>);

#[derive(Debug, Default)]
struct Written {
    names: BTreeSet<Arc<str>>,
    /// How often the list was begun anew.
    resets: u64,
}

impl WrittenTopics {
    /// Their names, sorted.
    pub fn names(&self) -> Vec<Arc<str>> {
        self.locked().names.iter().cloned().collect()
    }

    /// Begins the list anew.
    pub fn reset(&self) {
        let mut written = self.locked();
        written.names.clear();
        written.resets += 1;
    }

    /// The set is whole after every statement, so a poisoned lock is still good.
    fn locked(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Topics {
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, TopicId>,
    smallest_limit: Option<usize>,
}

impl TopicList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty list whose topics are noted once they are written to.
    pub fn noting(written: WrittenTopics) -> Self {
        Self { written, ..Self::default() }
    }

    /// For whoever writes.
    pub(super) fn notebook(&self) -> Notebook {
        Notebook {
            written: self.written.clone(),
            resets: 0,
            is_noted: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// The topic's number; a topic that is not in the list is added.
    pub fn id(&self, name: &str) -> TopicId {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
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
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        topics.names.get(id.0 as usize).cloned()
    }

    /// Notes the largest batch that a topic takes (`max.message.bytes`), before any record for it
    /// is staged.
    pub fn set_limit(&self, limit: Option<usize>) {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        topics.smallest_limit = topics.smallest_limit.into_iter().chain(limit).min();
    }

    /// The largest batch that every topic takes, as far as it is known.
    pub(super) fn smallest_limit(&self) -> Option<usize> {
        self.topics.read().unwrap_or_else(PoisonError::into_inner).smallest_limit
    }

    /// Brings a copy of the list up to date.
    pub fn copy_news(&self, known: &mut Vec<Arc<str>>) {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        known.extend(topics.names.iter().skip(known.len()).cloned());
    }
}

/// Notes topics once they have records that readers see, at the cost of a look per record.
#[derive(Debug)]
pub(super) struct Notebook {
    written: WrittenTopics,
    resets: u64,
    /// By topic number.
    is_noted: Vec<bool>,
    /// Written to in the open transaction for the first time.
    fresh: Vec<Arc<str>>,
}

impl Notebook {
    /// A transaction begins.
    pub(super) fn begin(&mut self) {
        let resets = self.written.locked().resets;
        if resets != self.resets || !self.fresh.is_empty() {
            self.resets = resets;
            self.is_noted.clear();
            self.fresh.clear();
        }
    }

    /// A record was produced.
    pub(super) fn produced(&mut self, index: usize, topic: &Arc<str>) {
        if self.is_noted.get(index).copied().unwrap_or_default() {
            return;
        }
        if self.is_noted.len() <= index {
            self.is_noted.resize(index + 1, false);
        }
        if let Some(is_noted) = self.is_noted.get_mut(index) {
            *is_noted = true;
        }
        self.fresh.push(Arc::clone(topic));
    }

    /// The transaction was committed.
    pub(super) fn committed(&mut self) {
        if !self.fresh.is_empty() {
            self.written.locked().names.extend(self.fresh.drain(..));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_to_is_known_until_the_reset() {
        let written = WrittenTopics::default();
        let mut notebook = TopicList::noting(written.clone()).notebook();
        let [a, b] = ["a", "b"].map(Arc::<str>::from);
        notebook.begin();
        notebook.produced(1, &b);
        notebook.produced(0, &a);
        notebook.produced(1, &b);
        assert!(written.names().is_empty(), "nothing is committed yet");
        notebook.committed();
        assert_eq!(written.names(), [Arc::clone(&a), Arc::clone(&b)]);
        written.reset();
        assert!(written.names().is_empty());
        notebook.begin();
        notebook.produced(1, &b);
        notebook.begin();
        notebook.committed();
        assert!(written.names().is_empty(), "what was withdrawn was not written");
        notebook.produced(1, &b);
        notebook.committed();
        assert_eq!(written.names(), [b]);
    }

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
