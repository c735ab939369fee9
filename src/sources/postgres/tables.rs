//! Table versions along the stream: described, compared with what is remembered, announced, opened.
//!
//! The only place that joins stream, catalogue and remembered states. Rows reach it by the index
//! that it gave a description. **Invariants:** a version is announced before its first row, once; a
//! version that was announced before is compiled from the same facts again.

mod announcing;
mod control;
mod ddl;
mod departure;
mod filters;
mod meaning;
mod pending;
mod remedies;
mod rewrite;
mod suspicion;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub use self::filters::{adopt_filters, foresee_filters};
use self::pending::Former;
use super::catalogue::{TableFacts, fetch_tables, fetch_types, refresh_types};
use super::connection::{Connection, Purpose};
use super::incremental::{STATE_KEY, Work};
use super::probe::Sight;
use super::publication::Member;
use super::pushdown;
use super::relations::{InstalledTable, RelationDescriptor};
use super::reselect::{Reread, question};
use super::row_filter::{BoundFilter, Described, Labels, Scope, compile};
use super::siblings::SiblingRule;
pub(super) use super::state::Place;
use super::state::{KnownVersion, PushedDown, TableHistory};
use super::table_version::{ResolvedTable, best_facts, build, still_optional};
use super::values::{LabelCheck, TypeCatalogue, WireType};
use super::wire::{Lsn, RelationId, ReplicaIdentity};
use super::{Settings, ToastMode};
use crate::change::{BeforeImage, ChangeKind, RowImage, TableId, TableVersion};
use crate::error::{Code, Fate, Fault};
use crate::observe::{StageMetrics, TableMetrics};
use crate::plan::{ControlOrigin, Provenance, control_id};
use crate::stage::{OpenTable, Services, Stage, TableState};

pub(super) use ddl::DdlCapture;
pub(super) use meaning::{WatchedLabels, redefined};
pub(super) use rewrite::{RereadTable, Upheaval};

/// Looks up what the stream said of a type.
pub(super) type WireTypes<'t> = dyn Fn(u32) -> Option<WireType<'t>> + Send + Sync + 't;

/// Who the server is, as control records name it.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// The system identifier.
    pub(super) system: String,
    /// The database.
    pub(super) database: String,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Tables {
    settings: Arc<Settings>,
    origin: Origin,
    /// When what is announced was committed, or looked at; microseconds since the epoch.
    micros: i64,
    /// By the server's number of the table.
    histories: HashMap<u32, TableHistory>,
    /// The row filters before the configured ones, while rows on which the two differ are still being
    /// looked for.
    former_filters: Vec<Former>,
    types: TypeCatalogue,
    entries: Vec<Entry>,
    catalogue: Option<Connection>,
    /// Whether there is a server that could be asked.
    is_offline: bool,
    /// When the catalogue was last asked. A connection that was idle for long may be dead without
    /// anybody knowing.
    asked: Instant,
    /// What is counted of row filters.
    metrics: Arc<StageMetrics>,
    /// How the catalogue had tables when they were last looked at.
    sights: HashMap<u32, Sight>,
    /// Notes of event triggers are taken over.
    pub(super) ddl: Option<DdlCapture>,
    /// The numbers under which the publication lists tables, by theirs.
    listed: HashMap<u32, u32>,
    /// What notes said of tables that may be read beside the stream.
    upheavals: Vec<Upheaval>,
    /// Of tables with row filters, what the catalogue said last.
    latest: HashMap<u32, TableFacts>,
    /// Of enums that they have, the labels.
    labels: Labels,
    /// The labels that row filters depend on, for whoever looks after them.
    pub(super) watched: WatchedLabels,
}

/// Beyond this a connection to the catalogue is not trusted any more.
const IDLE_LIMIT: Duration = Duration::from_secs(30);

/// What becomes of a table's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Role {
    /// They are published.
    pub(super) is_captured: bool,
    /// Orders come by them.
    pub(super) gives_orders: bool,
}

impl Role {
    fn of(settings: &Settings, table: &RelationDescriptor) -> Self {
        let (namespace, name) = (&table.namespace, &table.name);
        Self {
            is_captured: settings.tables.captures(namespace, name),
            gives_orders: settings.tables.gives_orders(namespace, name),
        }
    }
}

/// One description that the stream (or a snapshot) gave.
#[derive(Debug)]
struct Entry {
    descriptor: RelationDescriptor,
    role: Role,
    facts: Option<TableFacts>,
    version: Arc<TableVersion>,
    labels: Vec<(usize, LabelCheck)>,
    place: Place,
    provenance: Provenance,
    state: State,
    /// A snapshot described it, from which everything begins anew.
    is_of_snapshot: bool,
    /// By what an incomplete image may be completed from what its transaction sent before; `None`:
    /// it is not.
    siblings: Option<SiblingRule>,
    /// Its row filter, if it has one; why it cannot be had is told with the first row.
    filter: Option<Result<Filtered, Fault>>,
}

/// A row filter at work.
#[derive(Debug)]
struct Filtered {
    bound: BoundFilter,
    metrics: Arc<TableMetrics>,
}

#[derive(Debug)]
enum State {
    /// Entered by a description that is not remembered; left by its first row.
    New,
    /// Entered by a remembered description, or when the version was announced or compiled anew.
    Known,
    /// Ready for rows.
    Open(Box<OpenTable>),
}

impl Tables {
    /// Begins with what is remembered.
    ///
    /// # Errors
    /// A remembered state cannot be understood.
    pub(super) fn new(
        settings: Arc<Settings>,
        origin: Origin,
        states: &[TableState],
        metrics: Arc<StageMetrics>,
    ) -> Result<Self, Fault> {
        let mut histories = HashMap::new();
        let mut sights = HashMap::new();
        for state in states.iter().filter(|state| state.key != STATE_KEY) {
            let Some(value) = &state.value else { continue };
            let history = TableHistory::decode(value)?;
            if let Some(newest) = history.newest() {
                let oid = newest.descriptor.oid.0;
                sights.extend(history.sight.clone().map(|sight| (oid, sight)));
                histories.insert(newest.descriptor.oid.0, history);
            }
        }
        Ok(Self {
            settings,
            origin,
            micros: 0,
            histories,
            former_filters: Former::all(&Work::find(states)?),
            types: TypeCatalogue::new(),
            entries: Vec::new(),
            catalogue: None,
            is_offline: false,
            asked: Instant::now(),
            metrics,
            sights,
            ddl: None,
            listed: HashMap::new(),
            upheavals: Vec::new(),
            latest: HashMap::new(),
            labels: Labels::new(),
            watched: WatchedLabels::default(),
        })
    }

    /// What is announced from here on was committed, or looked at, at this time.
    pub(super) const fn set_time(&mut self, micros: i64) {
        self.micros = micros;
    }

    /// Begins without a server to ask: only what the stream says is known, and what is remembered.
    ///
    /// # Errors
    /// What is remembered cannot be read.
    pub(super) fn offline(
        settings: Arc<Settings>,
        states: &[TableState],
        metrics: Arc<StageMetrics>,
    ) -> Result<Self, Fault> {
        let origin = Origin { system: String::new(), database: String::new() };
        Ok(Self { is_offline: true, ..Self::new(settings, origin, states, metrics)? })
    }

    /// Forgets the descriptions of an earlier connection, and keeps what is remembered.
    pub(super) fn reset(&mut self) {
        self.entries.clear();
    }

    /// Takes in a description from the stream. `None`: the table is not captured.
    ///
    /// # Errors
    /// The catalogue cannot be asked.
    pub(super) async fn describe(
        &mut self,
        descriptor: &RelationDescriptor,
        place: Place,
        wire_types: &WireTypes<'_>,
    ) -> Result<Option<InstalledTable>, Fault> {
        let role = Role::of(&self.settings, descriptor);
        if !role.is_captured && !role.gives_orders {
            return Ok(None);
        }
        let mut known =
            self.known(descriptor, place).map(|version| (version.epoch, version.facts.clone()));
        if let Some((_, facts)) = &known
            && descriptor.replica_identity == ReplicaIdentity::Full
            // a note would have said so, of then
            && self.ddl.is_none()
        {
            let now = self.fetch_facts(descriptor.oid.0).await?;
            if has_other_key(facts.as_ref(), now.as_ref()) {
                known = None;
            }
        }
        if let Some((_, facts)) = &mut known
            && self.has_filter(descriptor)
        {
            // collations, which no description shows, may have changed, or were not remembered
            let now = self.fetch_facts(descriptor.oid.0).await?;
            if let (Some(facts), Some(now)) = (facts, now) {
                facts.take_text_orders(&now);
            }
        }
        let is_known = known.is_some();
        let (epoch, facts) = match known {
            Some(known) => known,
            None => {
                let now = self.fetch_facts(descriptor.oid.0).await?;
                self.refuse_column_list(descriptor, now.as_ref()).await?;
                let before = self.last_of(descriptor).and_then(|last| last.facts.as_ref());
                // a note would have said when a column was forbidden to be NULL
                let now = if self.ddl.is_none() { still_optional(now, before) } else { now };
                (self.next_epoch(descriptor), best_facts(descriptor, now, before))
            }
        };
        self.fetch_types(descriptor).await?;
        self.fetch_labels(descriptor).await?;
        let resolved = build(
            descriptor,
            facts.as_ref(),
            &self.types,
            wire_types,
            epoch,
            &self.settings.key_rules,
        );
        let state = if is_known { State::Known } else { State::New };
        Ok(Some(self.add(descriptor, facts, resolved, (place, Provenance::Stream, state))))
    }

    /// A description was repeated, so something about the table may have changed that the stream
    /// does not show. Under FULL that is the primary key, by which records are keyed: if it is
    /// another one, the answer is a new version. `None`: nothing to be done.
    ///
    /// # Errors
    /// The catalogue cannot be asked.
    pub(super) async fn recheck_key(
        &mut self,
        relation: RelationId,
        place: Place,
        wire_types: &WireTypes<'_>,
    ) -> Result<Option<InstalledTable>, Fault> {
        self.recheck_filter(relation).await?;
        let Some(entry) = self.entries.iter().rev().find(|one| one.descriptor.oid == relation)
        else {
            return Ok(None);
        };
        if entry.descriptor.replica_identity != ReplicaIdentity::Full || self.ddl.is_some() {
            return Ok(None);
        }
        let descriptor = entry.descriptor.clone();
        let known = entry.facts.clone();
        let facts = self.fetch_facts(relation.0).await?;
        if !has_other_key(known.as_ref(), facts.as_ref()) {
            return Ok(None);
        }
        let epoch = self.next_epoch(&descriptor);
        let resolved = build(
            &descriptor,
            facts.as_ref(),
            &self.types,
            wire_types,
            epoch,
            &self.settings.key_rules,
        );
        Ok(Some(self.add(&descriptor, facts, resolved, (place, Provenance::Catalogue, State::New))))
    }

    /// Takes in a table as the catalogue of a snapshot describes it.
    ///
    /// # Errors
    /// The catalogue cannot be asked.
    pub(super) async fn describe_snapshot(
        &mut self,
        facts: TableFacts,
        generated: bool,
        place: Place,
    ) -> Result<InstalledTable, Fault> {
        let descriptor = facts.descriptor(generated);
        let known = self.known(&descriptor, place).map(|version| version.epoch);
        let epoch = known.unwrap_or_else(|| self.next_epoch(&descriptor));
        self.fetch_types(&descriptor).await?;
        self.fetch_labels(&descriptor).await?;
        self.note_latest(&facts);
        let resolved = build(
            &descriptor,
            Some(&facts),
            &self.types,
            &|_| None,
            epoch,
            &self.settings.key_rules,
        );
        let state = if known.is_some() { State::Known } else { State::New };
        let place = (place, Provenance::Catalogue, state);
        let installed = self.add(&descriptor, Some(facts), resolved, place);
        self.entry_mut(installed.index)?.is_of_snapshot = true;
        Ok(installed)
    }

    fn add(
        &mut self,
        descriptor: &RelationDescriptor,
        facts: Option<TableFacts>,
        resolved: ResolvedTable,
        (place, provenance, state): (Place, Provenance, State),
    ) -> InstalledTable {
        let index = self.entries.len();
        let key = resolved.version.key.clone();
        let filter = self.bind(descriptor, &resolved.version, facts.as_ref(), place.commit);
        let siblings = self.remembering(&resolved.version);
        self.entries.push(Entry {
            siblings,
            filter,
            role: Role::of(&self.settings, descriptor),
            descriptor: descriptor.clone(),
            facts,
            version: Arc::new(resolved.version),
            labels: resolved.labels,
            place,
            provenance,
            state,
            is_of_snapshot: false,
        });
        InstalledTable { index, key }
    }

    /// The row filter of a version.
    fn bind(
        &self,
        descriptor: &RelationDescriptor,
        version: &TableVersion,
        facts: Option<&TableFacts>,
        at: Lsn,
    ) -> Option<Result<Filtered, Fault>> {
        if let Err(fault) = self.refuse_moved(descriptor) {
            return Some(Err(fault));
        }
        let text = match self.filter_of(descriptor) {
            Ok(text) => text?,
            Err(fault) => return Some(Err(fault)),
        };
        let described = Described { descriptor, epoch: version.epoch, at };
        if let Err(fault) = self.refuse_redefined(described, !version.key.is_empty()) {
            return Some(Err(fault));
        }
        let scope = Scope { version, facts, types: &self.types };
        let named = (descriptor, &self.labels);
        let mut bound = BoundFilter::bind(text, &scope, named);
        if let Some(former) = self.former_of(descriptor) {
            let earlier = match self.still_asked(former, described) {
                Some(former) => format!("({former}) OR ({text})"),
                None => "TRUE".to_owned(),
            };
            bound = bound.and_then(|bound| bound.with_earlier(&earlier, &scope, named));
        }
        let TableId { namespace, name } = &version.table;
        let metrics = self.metrics.table(namespace, name);
        metrics.set_filtered();
        if let Ok(bound) = &bound {
            self.watched.set(descriptor, &bound.applied, !version.key.is_empty());
        }
        Some(bound.map(|bound| Filtered { bound, metrics }))
    }

    /// Binds the filter of a table's descriptions anew.
    fn rebind(&mut self, namespace: &str, name: &str) {
        for index in 0..self.entries.len() {
            let Some(entry) = self.entries.get(index) else { continue };
            let TableId { namespace: own, name: own_name } = &entry.version.table;
            if own == namespace && own_name == name {
                let filter = self.bound(entry);
                if let Some(entry) = self.entries.get_mut(index) {
                    entry.filter = filter;
                }
            }
        }
    }

    fn bound(&self, entry: &Entry) -> Option<Result<Filtered, Fault>> {
        self.bind(&entry.descriptor, &entry.version, entry.facts.as_ref(), entry.place.commit)
    }

    /// A predicate over a table as the catalogue describes it, as SQL.
    ///
    /// # Errors
    /// It does not fit, or the catalogue cannot be asked.
    pub(super) async fn predicate_for(
        &mut self,
        facts: &TableFacts,
        generated: bool,
        text: &str,
    ) -> Result<String, Fault> {
        let descriptor = facts.descriptor(generated);
        self.fetch_types(&descriptor).await?;
        let rules = &self.settings.key_rules;
        let version = build(&descriptor, Some(facts), &self.types, &|_| None, 1, rules).version;
        let scope = Scope { version: &version, facts: Some(facts), types: &self.types };
        Ok(compile(text, &scope)?.sql)
    }

    /// The version that rows of this description have at a place between transactions.
    ///
    /// # Errors
    /// The table is not captured, or the catalogue cannot be asked.
    pub(super) async fn version_at(
        &mut self,
        descriptor: &RelationDescriptor,
        place: Place,
    ) -> Result<usize, Fault> {
        let newest = self.entries.iter().rposition(|one| one.descriptor.oid == descriptor.oid);
        if let Some(index) = newest
            && self.entry(index)?.descriptor == *descriptor
        {
            return Ok(index);
        }
        let described = self.describe(descriptor, place, &|_| None).await?;
        described.map(|table| table.index).ok_or_else(|| {
            Code::TableMissing
                .fault("the table is not captured")
                .at_table(descriptor.qualified_name())
        })
    }

    /// Whether a version's table has a row filter.
    pub(super) fn is_filtered(&self, index: usize) -> bool {
        self.entries.get(index).is_some_and(|entry| entry.filter.is_some())
    }

    /// The predicate of a version's table, as SQL.
    ///
    /// # Errors
    /// It does not fit the version.
    pub(super) fn predicate(&self, index: usize) -> Result<Option<String>, Fault> {
        match &self.entry(index)?.filter {
            None => Ok(None),
            Some(Ok(filter)) => Ok(Some(filter.bound.sql.clone())),
            Some(Err(fault)) => Err(fault.clone()),
        }
    }

    /// Remembers for which tables the publication leaves rows out.
    ///
    /// `place`: where the stream goes on, and a position from which on the publication is as it
    /// was found; `None`: everything is published anew. Answers whether anything has to be stored
    /// that was not known before.
    ///
    /// # Errors
    /// `FILTER-PUSHDOWN-DRIFT`: meanwhile the publication did not have a table's filter.
    pub(super) fn note_pushdown<S: Services>(
        &mut self,
        stage: &mut Stage<S>,
        members: &[Member],
        place: Option<(Lsn, Lsn)>,
    ) -> Result<bool, Fault> {
        let mut is_other = false;
        self.listed = members.iter().map(|member| (member.oid, member.entry)).collect();
        for history in self.histories.values_mut() {
            let Some(newest) = history.newest() else { continue };
            let RelationDescriptor { oid, namespace, name, .. } = &newest.descriptor;
            let is_pushed = self.settings.row_filters.is_pushed(namespace, name);
            let entry = self.listed.get(&oid.0).copied().filter(|_| is_pushed);
            let pushed = match (history.pushed, place, entry) {
                (Some(before), Some(_), Some(entry)) if before.lasts() && before.entry != entry => {
                    return Err(pushdown::replaced(namespace, name));
                }
                (_, _, Some(entry)) => Some(PushedDown::by(entry)),
                (None, _, None) | (_, None, None) => None,
                (Some(before), Some((_, now)), None) if before.lasts() => {
                    Some(PushedDown { until: now, ..before })
                }
                (Some(before), Some((read, _)), None) => {
                    Some(before).filter(|before| before.until > read)
                }
            };
            if pushed != history.pushed {
                history.pushed = pushed;
                stage.remember(history.encode()?);
                is_other = true;
            }
        }
        Ok(is_other)
    }

    fn known(&self, descriptor: &RelationDescriptor, place: Place) -> Option<&KnownVersion> {
        self.histories
            .get(&descriptor.oid.0)?
            .at(place)
            .filter(|version| version.descriptor.fingerprint() == descriptor.fingerprint())
    }

    /// What is remembered last of the table: by its number, or, if it was recreated, by its name.
    fn last_of(&self, descriptor: &RelationDescriptor) -> Option<&KnownVersion> {
        let by_number = self.histories.get(&descriptor.oid.0).and_then(TableHistory::newest);
        by_number.or_else(|| {
            self.histories
                .values()
                .filter_map(|history| history.under(&descriptor.namespace, &descriptor.name))
                .max_by_key(|version| version.epoch)
        })
    }

    /// The number of a version that follows: greater than that of each before it of the table, and
    /// where the table comes to have a name, of each under that name.
    fn next_epoch(&self, descriptor: &RelationDescriptor) -> u64 {
        let RelationDescriptor { oid, namespace, name, .. } = descriptor;
        let own = self.histories.get(&oid.0).and_then(TableHistory::newest);
        let is_named = own.is_some_and(|own| {
            (&own.descriptor.namespace, &own.descriptor.name) == (namespace, name)
        });
        let others = self.histories.values().filter(|_| !is_named);
        let last = others.filter_map(|history| history.under(namespace, name)).chain(own);
        last.map(|version| version.epoch + 1).max().unwrap_or(1)
    }

    /// Whether a table of this number or name was captured before.
    pub(super) fn was_captured(&self, oid: u32, namespace: &str, name: &str) -> bool {
        self.histories.contains_key(&oid)
            || self.histories.values().filter_map(TableHistory::newest).any(|version| {
                version.descriptor.namespace == namespace && version.descriptor.name == name
            })
    }

    /// The columns by which the source tells a version's rows apart, where it sends no whole old
    /// rows.
    pub(super) fn identity(&self, index: usize) -> Option<&[usize]> {
        match &self.entries.get(index)?.version.before_image {
            BeforeImage::Key(columns) => Some(columns),
            BeforeImage::Full | BeforeImage::None => None,
        }
    }

    /// By what an incomplete image may be completed from what its transaction sent before; `None`:
    /// it is not.
    pub(super) fn sibling_rule(&self, index: usize) -> Option<&SiblingRule> {
        self.entries.get(index)?.siblings.as_ref()
    }

    /// How a version's rows are remembered. A value whose text an `ALTER TYPE` changes, of which no
    /// message tells, neither names a row nor is filled in.
    fn remembering(&self, version: &TableVersion) -> Option<SiblingRule> {
        let (ToastMode::Backfill | ToastMode::Refuse, BeforeImage::Key(identity)) =
            (self.settings.toast, &version.before_image)
        else {
            return None;
        };
        let columns = version.columns.iter().enumerate();
        let unfit: Vec<usize> = columns
            .filter(|(_, column)| !self.types.is_text_fixed(column.native.id))
            .map(|(index, _)| index)
            .collect();
        let rule = SiblingRule { identity: identity.clone(), unfit };
        Some(rule).filter(|rule| !rule.identity.iter().any(|column| rule.unfit.contains(column)))
    }

    /// Whether a changed key makes the row be asked for.
    pub(super) fn reselects(&self) -> bool {
        self.settings.incomplete_rows().rereads && !self.is_offline
    }

    /// Reads columns of the row as it is now, under the key that it has after the change. `None`:
    /// the row is not there any more, or is not given away; it is told why.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(super) async fn reselect(
        &mut self,
        index: usize,
        row: &RowImage<'_>,
        columns: Vec<usize>,
    ) -> Result<Option<Reread>, Fault> {
        let entry = self.entry(index)?;
        let table = entry.version.table.to_string();
        let sql = match &entry.version.before_image {
            BeforeImage::Key(identity) => question(&entry.descriptor, identity, &columns, row),
            BeforeImage::Full | BeforeImage::None => None,
        };
        let Some(sql) = sql else { return Ok(None) };
        self.connect().await?;
        let Some(connection) = &mut self.catalogue else { return Ok(None) };
        let answer = match connection.query("reading a row under its new key", &sql).await {
            Ok(answer) => answer,
            Err(fault) if fault.fate() == Fate::Retry => {
                self.catalogue = None;
                return Err(fault.at_table(table));
            }
            Err(fault) => {
                tracing::warn!(table, %fault, "a row cannot be read under its new key");
                return Ok(None);
            }
        };
        let reread = Reread::of(row, columns, &answer)?;
        if reread.is_none() {
            tracing::warn!(table, "a row is not there any more under the key that it was given");
        }
        Ok(reread)
    }

    /// What becomes of its rows.
    pub(super) fn role(&self, index: usize) -> Role {
        self.entries.get(index).map(|entry| entry.role).unwrap_or_default()
    }

    /// The number of columns of a version.
    pub(super) fn column_count(&self, index: usize) -> usize {
        self.entries.get(index).map_or(0, |entry| entry.version.columns.len())
    }

    /// The names of a version's columns.
    pub(super) fn column_names(&self, index: usize) -> Vec<&str> {
        self.entries.get(index).map_or_else(Vec::new, |entry| {
            entry.version.columns.iter().map(|column| column.name.as_str()).collect()
        })
    }

    /// The version, ready for rows: announced if it is new, compiled, its schemas registered.
    ///
    /// # Errors
    /// The version cannot be published, or registry or broker refuse.
    pub(super) async fn open<S: Services>(
        &mut self,
        index: usize,
        stage: &mut Stage<S>,
    ) -> Result<&mut OpenTable, Fault> {
        if !matches!(self.entry(index)?.state, State::Open(_)) {
            self.prepare(index, stage).await?;
        }
        match &mut self.entry_mut(index)?.state {
            State::Open(table) => Ok(table),
            State::New | State::Known => Err(Code::Internal.fault("a table version is not open")),
        }
    }

    async fn prepare<S: Services>(
        &mut self,
        index: usize,
        stage: &mut Stage<S>,
    ) -> Result<(), Fault> {
        let version = Arc::clone(&self.entry(index)?.version);
        self.settings.key_rules.check(&version, self.entry(index)?.facts.as_ref())?;
        // before anything of the new shape is registered
        if matches!(self.entry(index)?.state, State::New) {
            self.refuse_change(index, stage).await?;
        }
        // compiled first: what cannot be published is not announced either
        let table = Box::new(stage.open_table(version).await?);
        if matches!(self.entry(index)?.state, State::New) {
            self.announce(index, None, stage).await?;
        }
        self.entry_mut(index)?.state = State::Open(table);
        Ok(())
    }

    fn compile(
        &self,
        descriptor: &RelationDescriptor,
        facts: Option<&TableFacts>,
        epoch: u64,
        wire_types: &WireTypes<'_>,
    ) -> TableVersion {
        build(descriptor, facts, &self.types, wire_types, epoch, &self.settings.key_rules).version
    }

    /// The stream has a NULL where the catalogue promised none: the version is compiled anew with
    /// the column nullable.
    ///
    /// # Errors
    /// The fault names no column of the version.
    pub(super) fn allow_null(&mut self, index: usize, fault: &Fault) -> Result<(), Fault> {
        let entry = self.entry_mut(index)?;
        let mut version = (*entry.version).clone();
        let column = fault
            .place()
            .column
            .as_ref()
            .and_then(|name| version.columns.iter_mut().find(|column| column.name == *name))
            .filter(|column| !column.nullable)
            .ok_or_else(|| fault.clone())?;
        column.nullable = true;
        tracing::warn!(
            table = %version.table,
            column = column.name,
            "the stream has a null in a column that the catalogue calls NOT NULL; \
             the schema is registered anew with the column optional"
        );
        let name = column.name.clone();
        entry.version = Arc::new(version);
        // also where the version is compiled anew for another reason
        let facts = entry.facts.iter_mut().flat_map(|facts| &mut facts.columns);
        facts.filter(|column| column.name == name).for_each(|column| column.not_null = false);
        if !matches!(entry.state, State::New) {
            entry.state = State::Known;
        }
        Ok(())
    }

    /// Whether a row has an enum label that the version does not list. No message tells of a new
    /// or renamed label.
    pub(super) fn has_unknown_label(&self, index: usize, row: &RowImage<'_>) -> bool {
        self.entries.get(index).is_some_and(|entry| {
            entry.labels.iter().any(|(column, check)| unknown_label(row, *column, check).is_some())
        })
    }

    /// Learns the labels of a row, from the catalogue or from the row itself, and compiles the
    /// version anew.
    ///
    /// # Errors
    /// The catalogue cannot be asked.
    pub(super) async fn learn_labels(
        &mut self,
        index: usize,
        row: &RowImage<'_>,
    ) -> Result<(), Fault> {
        let entry = self.entry(index)?;
        let oids = type_oids(&entry.descriptor);
        let unknown: Vec<_> = entry
            .labels
            .iter()
            .filter_map(|(column, check)| {
                unknown_label(row, *column, check).map(|label| (check.enum_oid(), label))
            })
            .collect();
        self.connect().await?;
        if let Some(connection) = &mut self.catalogue {
            refresh_types(connection, &mut self.types, &oids).await?;
        }
        let descriptor = self.entry(index)?.descriptor.clone();
        self.fetch_labels(&descriptor).await?;
        for (enum_oid, label) in &unknown {
            // historic labels: renamed or dropped since
            self.types.learn_label(*enum_oid, label);
        }
        let types = &self.types;
        let entry = self
            .entries
            .get_mut(index)
            .ok_or_else(|| Code::Internal.fault("an index of no table"))?;
        let epoch = entry.version.epoch;
        let resolved = build(
            &entry.descriptor,
            entry.facts.as_ref(),
            types,
            &|_| None,
            epoch,
            &self.settings.key_rules,
        );
        entry.version = Arc::new(resolved.version);
        entry.labels = resolved.labels;
        if !matches!(entry.state, State::New) {
            entry.state = State::Known;
        }
        let entry = self.entry(index)?;
        let filter = self.bound(entry);
        self.entry_mut(index)?.filter = filter;
        Ok(())
    }

    async fn fetch_facts(&mut self, oid: u32) -> Result<Option<TableFacts>, Fault> {
        self.connect().await?;
        let Some(connection) = &mut self.catalogue else { return Ok(None) };
        let fetched = fetch_tables(connection, &[oid]).await;
        if fetched.is_err() {
            self.catalogue = None;
        }
        let facts = fetched?.into_iter().next();
        if let Some(facts) = &facts {
            self.note_latest(facts);
        }
        Ok(facts)
    }

    async fn fetch_types(&mut self, descriptor: &RelationDescriptor) -> Result<(), Fault> {
        let oids = type_oids(descriptor);
        if self.types.missing(&oids).is_empty() {
            return Ok(());
        }
        self.connect().await?;
        if let Some(connection) = &mut self.catalogue {
            let fetched = fetch_types(connection, &mut self.types, &oids).await;
            if fetched.is_err() {
                self.catalogue = None;
            }
            fetched?;
        }
        // what was dropped since is as it was when the table was described last
        if let Some(history) = self.histories.get(&descriptor.oid.0) {
            history.types().for_each(|types| self.types.recall(types));
        }
        Ok(())
    }

    /// Fetches anew what may have been altered of a table's types.
    async fn refresh(&mut self, descriptor: &RelationDescriptor) -> Result<(), Fault> {
        self.connect().await?;
        let Some(connection) = &mut self.catalogue else { return Ok(()) };
        let fetched = refresh_types(connection, &mut self.types, &type_oids(descriptor)).await;
        if fetched.is_err() {
            self.catalogue = None;
        }
        fetched
    }

    async fn connect(&mut self) -> Result<(), Fault> {
        if self.is_offline {
            return Ok(());
        }
        if std::mem::replace(&mut self.asked, Instant::now()).elapsed() > IDLE_LIMIT {
            self.catalogue = None;
        }
        if self.catalogue.is_none() {
            let connection = Connection::open(&self.settings.connection, Purpose::Control).await?;
            self.catalogue = Some(connection);
        }
        Ok(())
    }

    fn entry(&self, index: usize) -> Result<&Entry, Fault> {
        self.entries.get(index).ok_or_else(|| Code::Internal.fault("an index of no table"))
    }

    fn entry_mut(&mut self, index: usize) -> Result<&mut Entry, Fault> {
        self.entries.get_mut(index).ok_or_else(|| Code::Internal.fault("an index of no table"))
    }
}

/// Whether the primary key of now is another one. A table that is gone tells nothing.
fn has_other_key(before: Option<&TableFacts>, now: Option<&TableFacts>) -> bool {
    let Some(now) = now else { return false };
    let columns = |facts: &TableFacts| facts.row_key().map(|key| key.columns.clone());
    before.and_then(columns) != columns(now)
}

fn type_oids(descriptor: &RelationDescriptor) -> Vec<u32> {
    descriptor.columns.iter().map(|column| column.type_oid).collect()
}

fn unknown_label(row: &RowImage<'_>, column: usize, check: &LabelCheck) -> Option<String> {
    [row.before, row.after]
        .into_iter()
        .flatten()
        .filter_map(|cells| row.raw(*cells.get(column)?))
        .find_map(|raw| check.first_unknown(raw))
}
