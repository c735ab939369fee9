//! PostgreSQL as a source: the replication stream, the catalogue, snapshots.
//!
//! Modules in the order of the data's path. Nothing outside this folder knows PostgreSQL's words.

mod settings;
pub mod key_rules;
pub mod keys;

pub mod connection;
pub mod session;
pub mod offset;
pub mod slot;
pub mod wire;
pub mod relations;
mod images;
pub mod decode;
pub mod catalogue;
pub mod capture;
pub mod identity;
pub mod table_version;
mod state;
mod tables;
mod messages;
pub mod ddl;
mod event_fields;
mod siblings;
mod reselect;
pub mod retype;
pub mod row_filter;
mod publishing;
mod frames;
mod unsent;
pub mod replay;
pub mod publication;
pub mod pushdown;
mod filter_check;
pub mod preflight;
mod preview;
pub mod snapshot;
mod initial_snapshot;
mod incremental;
mod status;
mod publication_watch;
mod probe;
mod slot_health;
pub mod failover;
mod heartbeat;
mod rejoin;
mod release;
mod driver;
mod takeover;
mod trial;
pub mod values;

pub use driver::run;
pub use event_fields::source_block;
pub use incremental::{pending as stored_snapshot, plan as plan_snapshot};
pub use messages::MessageFilter;
pub use preflight::check;
pub use preview::versions;
pub use rejoin::foresee_gap;
pub use release::{check_release, release};
pub use row_filter::{Pushdown, RowFilters};
pub use settings::{
    ConnectionSettings, KeyChangeToast, OffsetMismatch, PublicationAutocreate, Settings,
    SignalTable, SlotUse, SnapshotMode, SnapshotOrder, SslMode, TableFilter, ToastMode,
};
pub use slot_health::watch_health;
pub use tables::{adopt_filters, foresee_filters};
pub use takeover::take_over;
pub use trial::try_out;

/// The metrics that only this source has.
pub const METRICS: &crate::observe::Group = &slot_health::METRICS;

/// What Debezium's metrics call this kind of source.
pub const METRICS_PLUGIN: &str = "postgres";
