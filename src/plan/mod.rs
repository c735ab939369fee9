//! A table version and settings → what its changes become: shapes of records, by kind of change.
//!
//! Compiled once per table version. Knows no format and no Kafka client. **Invariant:** every
//! record's key has the plan's key schema, and every value that is not null its value schema.

use std::sync::Arc;

use crate::change::TableVersion;
use crate::record::{RecordShape, Schema};

/// What becomes of one table version's changes.
#[derive(Clone, Debug)]
pub struct TablePlan {
    /// The table version that it is for.
    pub version: Arc<TableVersion>,
    /// The topic of the table's records.
    pub topic: String,
    /// The records that come out, by the change's kind (`ChangeKind as usize`).
    pub kinds: [Vec<RecordShape>; 6],
    /// The schema of the keys; `None`: the table has no key.
    pub key_schema: Option<Arc<Schema>>,
    /// The schema of the values.
    pub value_schema: Arc<Schema>,
}
