//! Table version + settings → the records of every kind of change, compiled once.
//!
//! ```text
//! change::TableVersion ─┐
//! PlanSettings ─────────┼→ TablePlan: topic, schemas, and for each kind of change its records
//! SourceBlock ──────────┘              (shapes whose leaves say where each value comes from)
//! ```
//!
//! Knows no database, no format and no Kafka client. **Invariants:** nothing is decided per row that
//! could be decided here; every use of a value that may not have been sent says what becomes of it.

mod change_policy;
mod column_rules;
mod columns;
mod control;
mod envelope;
mod fingerprint;
mod headers;
mod key;
mod literal;
mod message;
mod names;
mod notices;
mod placeholder;
mod records;
mod schema_change;
mod settings;
mod source_block;
mod topics;
mod transforms;
mod types;

#[cfg(test)]
mod column_rules_tests;
#[cfg(test)]
mod control_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod record_tests;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod type_tests;

use std::sync::Arc;

use crate::change::{ChangeKind, TableVersion};
use crate::error::Fault;
use crate::record::RecordShape;

pub use crate::record::{HashAlgorithm, HashInput, Side};
pub use change_policy::{ChangeMode, ChangePolicy, changed_key, unshown_changes};
pub use column_rules::{ColumnRules, ColumnTreatment, Treatment};
pub use control::{ControlOrigin, ControlRecord, Provenance, control_id, control_record};
pub use message::message_plan;
pub use names::NameAdjustment;
pub use notices::{
    Ends, Notice, NoticeSchemas, NoticeSettings, context_headers, heartbeat, heartbeat_schemas,
    heartbeat_topic, transaction_begin, transaction_end, transaction_schemas, transaction_topic,
};
pub use placeholder::Placeholder;
pub use schema_change::ControlFormat;
pub use settings::{
    BeforeUnsent, BinaryMode, DecimalMode, Extensions, Incomplete, IncompleteRows, IntervalMode,
    KeyValueMode, Operation, OperationSet, PlanSettings, TimeMode, ValueModes,
};
pub use source_block::{SourceBlock, SourceField};
pub use topics::{table_topic, topic_collisions};
pub use transforms::{
    Condition, DeleteHandling, ExtractNewRecordState, FieldReference, Predicate, RegexRouter,
    ReplaceField, Step, TopicPattern, Transform, routed_topic,
};

/// Everything that the changes of one table version become.
#[derive(Clone, Debug)]
pub struct TablePlan {
    /// The version that it is compiled from.
    pub version: Arc<TableVersion>,
    /// The records that come out of a change, by its kind; none: the operation is skipped. Each has
    /// its topic and its schemas; equal schemas are mostly one and the same.
    pub kinds: [Vec<RecordShape>; ChangeKind::ALL.len()],
    /// How many events of its transaction a change is, by its kind: its records, tombstones apart,
    /// as they were before any transform.
    pub events: [u32; ChangeKind::ALL.len()],
    /// The name of what changed, as a transaction's end counts it.
    pub collection: String,
    /// Why rows of which it is not known whether they were published cannot be deleted, if they
    /// cannot: [`ChangeKind::FoundOut`] then has no records.
    pub untellable: Option<Fault>,
}

impl TablePlan {
    /// Compiles a table version.
    ///
    /// # Errors
    /// The table cannot be published so: names that collapse or are too long, or a record key that
    /// deletes would not know. The fault names the table.
    pub fn compile(
        version: Arc<TableVersion>,
        settings: &PlanSettings,
        source: &SourceBlock,
    ) -> Result<Self, Fault> {
        let table = version.table.to_string();
        records::compile(version, settings, source).map_err(|fault| fault.at_table(table))
    }

    /// Whether a change of this kind has records.
    pub fn has(&self, kind: ChangeKind) -> bool {
        self.kinds.get(kind as usize).is_some_and(|records| !records.is_empty())
    }

    /// The columns of the row after for which a change of this kind may have markers in a record
    /// that has no predecessor to take their values from.
    pub fn unmergeable(&self, kind: ChangeKind) -> Vec<usize> {
        self.kinds
            .get(kind as usize)
            .map_or_else(Vec::new, |records| headers::unmergeable_columns(records))
    }

    /// The records of all kinds, in order.
    pub fn records(&self) -> impl Iterator<Item = &RecordShape> {
        self.kinds.iter().flatten()
    }
}
