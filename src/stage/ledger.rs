//! What is told of a transaction: the number of each event in it, and what it had at its end.
//!
//! Knows no record format. **Invariants:** the numbers depend on the transaction and the settings
//! alone: they are taken before any transform, and a part that Kafka has already is counted again;
//! a transaction of which nothing is published has neither beginning nor end; nothing is looked up
//! by name per row.

use super::OpenTable;
use super::notices::OpenNotice;
use super::{Services, Stage};
use crate::change::{ChangeKind, TransactionPlace};
use crate::error::Fault;
use crate::plan::{
    Ends, Notice, TablePlan, transaction_begin, transaction_end, transaction_schemas,
    transaction_topic,
};

/// How the changes of a table count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Membership {
    /// The table's number among those that were opened.
    collection: usize,
    /// How many events a change is, by its kind.
    events: [u32; ChangeKind::ALL.len()],
}

impl Membership {
    fn events_of(&self, kind: ChangeKind) -> u32 {
        self.events.get(kind as usize).copied().unwrap_or(0)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    is_wanted: bool,
    /// Opened by the first transaction.
    notice: Option<OpenNotice>,
    collections: Vec<Collection>,
    open: Option<Open>,
}

#[derive(Debug)]
struct Collection {
    name: String,
    /// Its events in the open transaction.
    events: u64,
}

/// The transaction that is being read.
#[derive(Debug)]
struct Open {
    id: String,
    /// When it was committed.
    millis: i64,
    /// Its beginning was told.
    is_begun: bool,
    events: u64,
    /// The tables that have some.
    touched: Vec<usize>,
}

impl Ledger {
    /// Tells nothing unless it is wanted.
    pub(super) fn new(is_wanted: bool) -> Self {
        Self { is_wanted, ..Self::default() }
    }

    /// Takes in a table that was opened.
    pub(super) fn member(&mut self, plan: &TablePlan) -> Membership {
        let known = self.collections.iter().position(|known| known.name == plan.collection);
        let collection = known.unwrap_or_else(|| {
            self.collections.push(Collection { name: plan.collection.clone(), events: 0 });
            self.collections.len() - 1
        });
        Membership { collection, events: plan.events }
    }

    /// Whether there is a transaction of which something is to be told.
    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether a change is the first of its transaction that is published.
    pub(super) fn is_begin_due(&self, member: &Membership, kind: ChangeKind) -> bool {
        let is_due = self.open.as_ref().is_some_and(|open| !open.is_begun);
        is_due && member.events_of(kind) > 0
    }

    /// Where the next change of a table stands.
    pub(super) fn place(&self, member: &Membership) -> Option<TransactionPlace<'_>> {
        let open = self.open.as_ref()?;
        let before = self.collections.get(member.collection).map_or(0, |known| known.events);
        Some(TransactionPlace {
            id: &open.id,
            total_order: open.events + 1,
            collection_order: before + 1,
        })
    }

    /// Counts a change.
    pub(super) fn count(&mut self, member: &Membership, kind: ChangeKind) {
        let Some(open) = &mut self.open else { return };
        let events = u64::from(member.events_of(kind));
        let Some(collection) = self.collections.get_mut(member.collection) else { return };
        if events > 0 && collection.events == 0 {
            open.touched.push(member.collection);
        }
        open.events += events;
        collection.events += events;
    }

    /// Forgets the open transaction.
    pub(super) fn forget(&mut self) {
        let Some(open) = self.open.take() else { return };
        for collection in open.touched {
            if let Some(collection) = self.collections.get_mut(collection) {
                collection.events = 0;
            }
        }
    }

    /// What is told at the end, if the beginning was.
    fn end(&self) -> Option<Notice> {
        let open = self.open.as_ref().filter(|open| open.is_begun)?;
        let touched = open.touched.iter().filter_map(|index| self.collections.get(*index));
        let collections = touched.map(|known| (known.name.as_str(), known.events)).collect();
        Some(transaction_end(&open.id, open.millis, Ends { events: open.events, collections }))
    }
}

impl<S: Services> Stage<S> {
    /// Whether it has to be told of transactions ([`Stage::begin`]).
    pub const fn counts_events(&self) -> bool {
        self.ledger.is_wanted
    }

    /// A transaction begins; nothing is told of it before its first change.
    pub fn begin(&mut self, id: String, commit_micros: i64) {
        self.ledger.forget();
        self.ledger.open = Some(Open {
            id,
            millis: commit_micros.div_euclid(1000),
            is_begun: false,
            events: 0,
            touched: Vec::new(),
        });
    }

    /// Counts a change of the open transaction that Kafka has already, and so its beginning.
    pub fn count_again(&mut self, table: &OpenTable, kind: ChangeKind) {
        self.ledger.count(&table.membership, kind);
        if let Some(open) = &mut self.ledger.open {
            open.is_begun = open.events > 0;
        }
    }

    /// Tells the beginning of the open transaction.
    pub(super) async fn begin_transaction(&mut self) -> Result<(), Fault> {
        let Some(open) = &mut self.ledger.open else { return Ok(()) };
        open.is_begun = true;
        let notice = transaction_begin(&open.id, open.millis);
        self.tell(&notice).await
    }

    /// Tells the end of the open transaction, if its beginning was told.
    pub(super) async fn end_transaction(&mut self) -> Result<(), Fault> {
        let Some(notice) = self.ledger.end() else {
            self.ledger.forget();
            return Ok(());
        };
        self.ledger.forget();
        self.tell(&notice).await
    }

    async fn tell(&mut self, notice: &Notice) -> Result<(), Fault> {
        let open = match self.ledger.notice.take() {
            Some(open) => open,
            None => {
                self.hand_over().await?;
                let topic = transaction_topic(&self.settings.plan);
                self.open_notice(&topic, transaction_schemas(), &self.context_headers()).await?
            }
        };
        let written = self.stage_notice(&open, notice, None);
        self.ledger.notice = Some(open);
        written
    }
}
