//! Sources: one folder per database. Siblings never import each other.

pub mod postgres;
mod requests;
mod snapshots;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::change::TableVersion;
use crate::config::{Table, Values};
use crate::error::{Code, Fault};
use crate::observe::{ChunkProgress, Group, SourceMetrics};
use crate::plan::{PlanSettings, SourceBlock};
use crate::stage::{OffsetRecord, Services, Stage, TableState};

pub use requests::{starts_snapshot, stops_snapshot};
pub use snapshots::{Order, OrderDesk, Orders, SnapshotAction, SnapshotRequest, SnapshotTable};

/// A source's settings.
#[derive(Clone, Debug)]
pub enum SourceSettings {
    /// PostgreSQL.
    Postgres(Box<postgres::Settings>),
}

/// A source that a connector can name as its class.
#[derive(Clone, Copy, Debug)]
pub struct SourceClass {
    /// Every name of the class; the first is the full one.
    pub names: &'static [&'static str],
    /// The keys that only this source has.
    pub tables: &'static [&'static Table],
    /// Reads them for the connector of a name.
    pub parse: fn(&mut Values<'_>, &str) -> SourceSettings,
    /// The metrics that only this source has.
    pub metrics: &'static Group,
}

/// Every source.
pub const CLASSES: &[SourceClass] = &[SourceClass {
    names: &postgres::keys::CLASSES,
    tables: &postgres::keys::TABLES,
    parse: |values, connector| {
        SourceSettings::Postgres(Box::new(postgres::keys::parse(values, connector)))
    },
    metrics: postgres::METRICS,
}];

/// Signs of life that a source puts into its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeats {
    /// `heartbeat.interval.ms`.
    pub interval: Duration,
    /// `heartbeat.action.query`: what is run on the source each time.
    pub action: Option<String>,
}

/// What a source is given to begin with.
#[derive(Debug)]
pub struct Start {
    /// The first attempt since the task was started, by whoever or whatever.
    pub is_first: bool,
    /// The stored offset.
    pub offset: Option<OffsetRecord>,
    /// The remembered table states.
    pub states: Vec<TableState>,
    /// Follows the offsets that Kafka has committed.
    pub committed: watch::Receiver<Option<OffsetRecord>>,
    /// Signs of life, if they are wanted.
    pub heartbeats: Option<Heartbeats>,
    /// Turns true when the source has to end.
    pub stop: watch::Receiver<bool>,
    /// Where it shows what it does.
    pub metrics: Arc<SourceMetrics>,
    /// What it is told while it runs.
    pub orders: Orders,
}

/// A look at the changes as they come, which leaves nothing behind.
#[derive(Clone, Debug)]
pub struct Trial {
    /// So many rows of each table first; `None`: changes only.
    pub rows: Option<u64>,
    /// Told when the changes begin to be read.
    pub streaming: Arc<Notify>,
}

impl SourceSettings {
    /// Asks the source everything that can be known to be wrong; leaves nothing behind.
    pub async fn check(&self) -> Vec<Fault> {
        match self {
            Self::Postgres(settings) => Box::pin(postgres::check(settings)).await,
        }
    }

    /// What a person may want to know of the source, though nothing is wrong.
    pub async fn notes(&self) -> Vec<String> {
        match self {
            Self::Postgres(settings) => {
                let of_triggers = Box::pin(postgres::ddl::note(&settings.connection)).await;
                let of_standbys = Box::pin(postgres::failover::note(settings)).await;
                of_triggers.into_iter().chain(of_standbys).collect()
            }
        }
    }

    /// The states of those tables, remade, whose row filter is another one than the configured, and
    /// how many they are; with them comes what is to be read beside the stream, if that is another.
    /// `retellable` is asked of tables whose rows would be told anew.
    ///
    /// # Errors
    /// A state cannot be understood, or the filters cannot be applied so.
    pub fn adopt_filters(
        &self,
        offset: &OffsetRecord,
        states: &[TableState],
        resnapshot: bool,
        retellable: &dyn Fn(TableVersion) -> Result<(), Fault>,
    ) -> Result<(Vec<TableState>, usize), Fault> {
        match self {
            Self::Postgres(settings) => {
                postgres::adopt_filters(settings, (offset, states), resnapshot, retellable)
            }
        }
    }

    /// What a task that goes on with what is stored will stop with, though nothing is wrong with the
    /// configuration: a table's row filter is another one.
    ///
    /// # Errors
    /// What is stored cannot be understood.
    pub fn foresee(
        &self,
        offset: &OffsetRecord,
        states: &[TableState],
    ) -> Result<Option<Fault>, Fault> {
        match self {
            Self::Postgres(settings) => postgres::foresee_filters(settings, (offset, states)),
        }
    }

    /// The same, of what the source has: it may lack what follows the stored offset.
    ///
    /// # Errors
    /// What is stored cannot be understood, or the source cannot be asked.
    pub async fn foresee_gap(&self, offset: &OffsetRecord) -> Result<Option<Fault>, Fault> {
        match self {
            Self::Postgres(settings) => Box::pin(postgres::foresee_gap(settings, &offset.0)).await,
        }
    }

    /// What table states say of the last snapshot beside the stream.
    ///
    /// # Errors
    /// A state cannot be understood.
    pub fn stored_snapshot(&self, states: &[TableState]) -> Result<Option<ChunkProgress>, Fault> {
        match self {
            Self::Postgres(_) => postgres::stored_snapshot(states),
        }
    }

    /// The tables that a request for a snapshot beside the stream means.
    ///
    /// # Errors
    /// It names what is not captured or cannot be read, or the source cannot be asked.
    pub async fn plan_snapshot(
        &self,
        request: &SnapshotRequest,
    ) -> Result<Vec<SnapshotTable>, Fault> {
        match self {
            Self::Postgres(settings) => Box::pin(postgres::plan_snapshot(settings, request)).await,
        }
    }

    /// Sees that what a connector made at its source can be removed, and that no other connector
    /// or reader uses it.
    ///
    /// # Errors
    /// Somebody does, it may not be removed, or the source cannot be asked.
    pub async fn check_release(&self, others: &[(&str, &Self)]) -> Result<(), Fault> {
        match self {
            Self::Postgres(settings) => {
                let others: Vec<_> = others
                    .iter()
                    .map(|(name, Self::Postgres(settings))| (*name, &**settings))
                    .collect();
                Box::pin(postgres::check_release(settings, &others)).await
            }
        }
    }

    /// Removes what the connector made at the source so that its changes are kept for it.
    ///
    /// # Errors
    /// The source refuses, or cannot be reached.
    pub async fn release(&self) -> Result<(), Fault> {
        match self {
            Self::Postgres(settings) => Box::pin(postgres::release(settings)).await,
        }
    }

    /// The offset that goes on behind another program's, as that program stores it.
    ///
    /// # Errors
    /// `OFFSET-IMPORT`, or the source does not have what follows, or cannot be asked.
    pub async fn take_over(&self, offset: &serde_json::Value) -> Result<OffsetRecord, Fault> {
        match self {
            Self::Postgres(settings) => {
                let offset = Box::pin(postgres::take_over(settings, offset)).await?;
                Ok(OffsetRecord(offset.encode().into()))
            }
        }
    }

    /// Whether rows can move into and out of what is published: a table has a row filter.
    pub fn rows_move(&self) -> bool {
        match self {
            Self::Postgres(settings) => settings.row_filters.are_judged_here(),
        }
    }

    /// The captured tables as they are now.
    ///
    /// # Errors
    /// The source cannot be asked, or nothing is captured.
    pub async fn versions(&self) -> Result<Vec<TableVersion>, Fault> {
        match self {
            Self::Postgres(settings) => Box::pin(postgres::versions(settings)).await,
        }
    }

    /// What a person is told of a stored offset.
    ///
    /// # Errors
    /// `OFFSET-MALFORMED`.
    pub fn describe_offset(&self, offset: &OffsetRecord) -> Result<serde_json::Value, Fault> {
        match self {
            Self::Postgres(_) => {
                postgres::offset::Offset::decode(&offset.0).map(|offset| offset.describe())
            }
        }
    }

    /// The configuration key that a fault of the live check is about: what the fault says itself,
    /// else where faults of its code usually come from.
    pub fn blamed_key<'a>(&self, fault: &'a Fault) -> &'a str {
        if let Some(setting) = &fault.place().setting {
            return setting;
        }
        match fault.code() {
            Code::RegistryUnreachable | Code::RegistryRefused => "value.converter",
            Code::KafkaUnreachable
            | Code::KafkaClient
            | Code::KafkaAuthentication
            | Code::KafkaAuthorization => "name",
            code => match self {
                Self::Postgres(_) => postgres::keys::blamed_key(code),
            },
        }
    }

    /// Captures until it is told to stop.
    ///
    /// # Errors
    /// A fault that ends this attempt.
    pub async fn run<S: Services>(&self, start: Start, stage: Stage<S>) -> Result<(), Fault> {
        match self {
            Self::Postgres(settings) => {
                let settings = Arc::new((**settings).clone());
                Box::pin(postgres::run(settings, start, stage)).await
            }
        }
    }

    /// Looks at the source's health again and again, whether changes are read or not. Never ends.
    /// `caught_up` is told times before which everything that was committed has been confirmed.
    pub async fn watch_health(
        &self,
        connector: &str,
        metrics: &SourceMetrics,
        caught_up: &(dyn Fn(i64) + Send + Sync),
    ) {
        match self {
            Self::Postgres(settings) => {
                Box::pin(postgres::watch_health(settings, connector, metrics, caught_up)).await;
            }
        }
    }

    /// Passes changes on until it is told to stop; leaves nothing behind at the source.
    ///
    /// # Errors
    /// What capture would meet, too.
    pub async fn try_out<S: Services>(
        &self,
        trial: Trial,
        start: Start,
        stage: Stage<S>,
    ) -> Result<(), Fault> {
        match self {
            Self::Postgres(settings) => {
                Box::pin(postgres::try_out(settings, trial, start, stage)).await
            }
        }
    }

    /// What Debezium's metrics call this kind of source.
    pub const fn plugin(&self) -> &'static str {
        match self {
            Self::Postgres(_) => postgres::METRICS_PLUGIN,
        }
    }

    /// Puts into the plan what the source's own keys say of records.
    pub const fn shape(&self, plan: &mut PlanSettings) {
        match self {
            Self::Postgres(settings) => {
                plan.incomplete = settings.incomplete_rows();
                plan.values.key_values = settings.hstore;
            }
        }
    }

    /// The source block of its records. `name` is the topic prefix.
    pub fn block(&self, name: &str) -> SourceBlock {
        match self {
            Self::Postgres(settings) => postgres::source_block(name, &settings.connection.database),
        }
    }
}
