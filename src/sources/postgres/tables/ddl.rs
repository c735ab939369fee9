//! Notes of event triggers → versions of tables, announced at the very place of the command.
//!
//! A note is a description of the table as it became, so what it says is compared with what is
//! remembered; the next description from the stream then finds itself remembered, with the facts of
//! *then*. Rows are decoded by the stream's descriptions only, so a note that the stream contradicts
//! is followed by a version of the stream's own. **Invariants:** a note changes nothing unless it is
//! signed and its table is captured; the note at a place has its effect once, however often it is
//! read.

use std::collections::HashMap;

use super::super::ddl::{Described, DescribedTable, Event, Key, Note, altered, rewritten};
use super::super::decode::MessageOutput;
use super::super::publication::is_published;
use super::super::values::TypeKind;
use super::super::wire::Xid;
use super::{
    ControlOrigin, InstalledTable, KnownVersion, Lsn, Place, Provenance, RelationDescriptor,
    Services, Stage, State, TableFacts, Tables, WireTypes, build,
};
use crate::change::{ChangeClass, ColumnChange, TableChange};
use crate::error::Fault;
use crate::plan::ChangeMode;

/// What is needed to believe notes, and what they were about.
#[derive(Debug)]
pub(in crate::sources::postgres) struct DdlCapture {
    key: Key,
    /// The publication publishes stored generated columns.
    generated: bool,
    /// The transaction that is read.
    commit: Lsn,
    /// Of each table, the last command of that transaction that is known to have altered it.
    commands: HashMap<u32, i64>,
    /// Rewrites of partitions of that transaction that were told of, by their root, reason and
    /// columns.
    told: Vec<(u32, i32, Vec<String>)>,
}

/// A version that a note made, and the description by which its rows are decoded.
#[derive(Debug)]
pub(in crate::sources::postgres) struct NotedTable {
    pub(in crate::sources::postgres) descriptor: RelationDescriptor,
    pub(in crate::sources::postgres) table: InstalledTable,
}

/// A version that is to be made.
struct Noted<'n> {
    command: &'n str,
    place: Place,
    before: KnownVersion,
    descriptor: RelationDescriptor,
    facts: Option<TableFacts>,
}

impl DdlCapture {
    /// Believes notes that this key has signed.
    pub(in crate::sources::postgres) fn new(key: Key, generated: bool) -> Self {
        Self { key, generated, commit: Lsn::ZERO, commands: HashMap::new(), told: Vec::new() }
    }

    fn begin(&mut self, commit: Lsn) {
        if self.commit != commit {
            self.commit = commit;
            self.commands.clear();
            self.told.clear();
        }
    }

    /// The last command that altered the table; from here on, that of the note.
    fn advance(&mut self, table: &DescribedTable) -> i64 {
        let last = self.commands.entry(table.facts.oid).or_insert(-1);
        let now = table.touched.iter().map(|(_, command)| *command).fold(*last, i64::max);
        std::mem::replace(last, now)
    }
}

impl Tables {
    /// Reads a message of the triggers' prefix. `None`: it has nothing to say, or is not believed.
    pub(in crate::sources::postgres) fn read_note(
        &mut self,
        message: &MessageOutput<'_>,
        xid: Xid,
    ) -> Option<Note> {
        let capture = self.ddl.as_mut()?;
        match Note::read(message.content, &capture.key, xid) {
            Ok(note) => note,
            Err(fault) => {
                self.metrics.refused_notes.add_as_only_writer(1);
                let refused = self.metrics.refused_notes.get();
                // whoever writes them can write very many
                if refused.is_power_of_two() {
                    tracing::warn!(
                        position = %message.lsn,
                        refused,
                        "a message of the prefix {} is not believed, and has no effect: {fault}",
                        super::super::ddl::PREFIX
                    );
                }
                None
            }
        }
    }

    /// Takes a note over: what it says is announced, and holds from here on. The answers are
    /// versions by which rows of the same description are written from here on.
    ///
    /// # Errors
    /// The change is refused (`SCHEMA-REWRITE`), or catalogue, registry or broker cannot be reached.
    pub(in crate::sources::postgres) async fn take_note<S: Services>(
        &mut self,
        note: Note,
        place: Place,
        wire_types: &WireTypes<'_>,
        stage: &mut Stage<S>,
    ) -> Result<Vec<NotedTable>, Fault> {
        let Some(capture) = &mut self.ddl else { return Ok(Vec::new()) };
        capture.begin(place.commit);
        let Note { command, event } = note;
        match event {
            Event::Table(table) => {
                capture.advance(&table);
                let noted = self.note_table(&command, *table, None, (place, wire_types), stage);
                Ok(noted.await?.into_iter().collect())
            }
            Event::Rewrite(table, reason) => {
                let since = capture.advance(&table);
                let rewrite = Some((reason, since));
                let noted = self.note_table(&command, *table, rewrite, (place, wire_types), stage);
                Ok(noted.await?.into_iter().collect())
            }
            Event::Drop { oid, identity } => {
                self.note_drop(&command, (oid, &identity), (place, wire_types), stage).await
            }
            Event::Type { oid } => self.note_type(&command, oid, (place, wire_types), stage).await,
            Event::Cut { oid } => {
                if let Some(known) = self.remembered(oid, place) {
                    let table = known.descriptor.qualified_name();
                    tracing::warn!(
                        table,
                        command,
                        "the definition was altered, and is too large for a note; it is known when \
                         its next row comes"
                    );
                }
                Ok(Vec::new())
            }
        }
    }

    /// What is remembered of a table by its number, unless it is of this place or behind it.
    pub(super) fn remembered(&self, oid: u32, place: Place) -> Option<KnownVersion> {
        let newest = self.histories.get(&oid)?.newest()?;
        (newest.place < place).then(|| newest.clone())
    }

    async fn note_table<S: Services>(
        &mut self,
        command: &str,
        table: DescribedTable,
        rewrite: Option<(i32, i64)>,
        (place, wire_types): (Place, &WireTypes<'_>),
        stage: &mut Stage<S>,
    ) -> Result<Option<NotedTable>, Fault> {
        let facts = table.facts.clone();
        let oid = facts.oid;
        if !self.histories.contains_key(&oid) {
            if let Some(root) = table.root.filter(|root| self.histories.contains_key(root)) {
                return self
                    .note_partition(command, &table, (root, rewrite), (place, wire_types), stage)
                    .await;
            }
            return self.note_new(command, facts, (place, wire_types), stage).await;
        }
        let Some(before) = self.remembered(oid, place) else { return Ok(None) };
        let generated = self.ddl.as_ref().is_some_and(|capture| capture.generated);
        let descriptor = facts.descriptor(generated);
        self.fetch_types(&descriptor).await?;
        let old = self.compile(&before.descriptor, before.facts.as_ref(), before.epoch, wire_types);
        let new = self.compile(&descriptor, Some(&facts), before.epoch + 1, wire_types);
        let mut change = altered(
            Described { version: &old, facts: before.facts.as_ref() },
            Described { version: &new, facts: Some(&facts) },
        );
        if let Some((reason, since)) = rewrite {
            change = Some(rewritten(change, &table, reason, since));
        }
        let Some(mut change) = change else { return Ok(None) };
        if !table.is_logged {
            change.columns.push(of_table("unlogged", ChangeClass::Relation));
            change.class = ChangeClass::Relation;
            tracing::warn!(
                table = facts.qualified_name(),
                "the table is unlogged now: its changes are not in the stream"
            );
        }
        let noted = Noted { command, place, before, descriptor, facts: Some(facts) };
        self.note_version(noted, change, wire_types, stage).await.map(Some)
    }

    /// A table that is not remembered: captured if it is published under its own name.
    async fn note_new<S: Services>(
        &mut self,
        command: &str,
        facts: TableFacts,
        (place, wire_types): (Place, &WireTypes<'_>),
        stage: &mut Stage<S>,
    ) -> Result<Option<NotedTable>, Fault> {
        if !self.settings.tables.captures(&facts.namespace, &facts.name) {
            return Ok(None);
        }
        self.connect().await?;
        let Some(connection) = &mut self.catalogue else { return Ok(None) };
        let name = &self.settings.publication_name;
        // what is published later begins with its first row; what never is has no version at all
        if !is_published(connection, name, &facts.namespace, &facts.name).await? {
            return Ok(None);
        }
        let generated = self.ddl.as_ref().is_some_and(|capture| capture.generated);
        let descriptor = facts.descriptor(generated);
        self.fetch_types(&descriptor).await?;
        let epoch = self.next_epoch(&descriptor);
        let resolved = build(
            &descriptor,
            Some(&facts),
            &self.types,
            wire_types,
            epoch,
            &self.settings.key_rules,
        );
        let entry = (place, Provenance::Trigger, State::New);
        let table = self.add(&descriptor, Some(facts), resolved, entry);
        self.announce(table.index, Some(command), stage).await?;
        self.entry_mut(table.index)?.state = State::Known;
        Ok(Some(NotedTable { descriptor, table }))
    }

    /// A partition whose rows come under its root's name: only what becomes of rows matters.
    async fn note_partition<S: Services>(
        &mut self,
        command: &str,
        partition: &DescribedTable,
        (root, rewrite): (u32, Option<(i32, i64)>),
        (place, wire_types): (Place, &WireTypes<'_>),
        stage: &mut Stage<S>,
    ) -> Result<Option<NotedTable>, Fault> {
        let Some((reason, since)) = rewrite else { return Ok(None) };
        let Some(before) = self.remembered(root, place) else { return Ok(None) };
        let change = rewritten(None, partition, reason, since);
        let columns: Vec<String> = change.columns.iter().map(|one| one.column.clone()).collect();
        let told = (root, reason, columns);
        if let Some(capture) = &mut self.ddl {
            if capture.told.contains(&told) {
                return Ok(None);
            }
            capture.told.push(told);
        }
        let (descriptor, facts) = (before.descriptor.clone(), before.facts.clone());
        let noted = Noted { command, place, before, descriptor, facts };
        self.note_version(noted, change, wire_types, stage).await.map(Some)
    }

    async fn note_drop<S: Services>(
        &mut self,
        command: &str,
        (oid, identity): (u32, &str),
        (place, wire_types): (Place, &WireTypes<'_>),
        stage: &mut Stage<S>,
    ) -> Result<Vec<NotedTable>, Fault> {
        let mut all = Vec::new();
        let roots: Vec<u32> = self
            .histories
            .iter()
            .filter(|(_, history)| {
                let facts = history.newest().and_then(|newest| newest.facts.as_ref());
                let partitions = facts.and_then(|facts| facts.partitions.as_ref());
                partitions.is_some_and(|names| names.iter().any(|name| name == identity))
            })
            .map(|(oid, _)| *oid)
            .collect();
        for root in roots {
            let Some(before) = self.remembered(root, place) else { continue };
            let mut facts = before.facts.clone();
            if let Some(names) = facts.as_mut().and_then(|facts| facts.partitions.as_mut()) {
                names.retain(|name| name != identity);
            }
            let mut removed = of_table("partition removed", ChangeClass::Topology);
            removed.from = Some(identity.to_owned());
            let change = TableChange {
                kind: "topology",
                class: ChangeClass::Topology,
                columns: vec![removed],
                rewrite: None,
            };
            let descriptor = before.descriptor.clone();
            let noted = Noted { command, place, before, descriptor, facts };
            all.push(self.note_version(noted, change, wire_types, stage).await?);
        }
        if let Some(before) = self.remembered(oid, place) {
            let change = TableChange {
                kind: "dropped",
                class: ChangeClass::Relation,
                columns: Vec::new(),
                rewrite: None,
            };
            let (descriptor, facts) = (before.descriptor.clone(), before.facts.clone());
            let noted = Noted { command, place, before, descriptor, facts };
            self.note_version(noted, change, wire_types, stage).await?;
        }
        Ok(all)
    }

    /// A type was altered: the text of values may be another from here on, and no description says so.
    async fn note_type<S: Services>(
        &mut self,
        command: &str,
        oid: u32,
        (place, wire_types): (Place, &WireTypes<'_>),
        stage: &mut Stage<S>,
    ) -> Result<Vec<NotedTable>, Fault> {
        let tables: Vec<u32> = self.histories.keys().copied().collect();
        let mut all = Vec::new();
        for table in tables {
            let Some(before) = self.remembered(table, place) else { continue };
            self.fetch_types(&before.descriptor).await?;
            let columns: Vec<ColumnChange> = before
                .descriptor
                .columns
                .iter()
                .filter(|column| self.is_made_of(column.type_oid, oid))
                .map(|column| ColumnChange {
                    column: column.name.clone(),
                    ..of_table("type altered", ChangeClass::Compatible)
                })
                .collect();
            if columns.is_empty() {
                continue;
            }
            self.refresh(&before.descriptor).await?;
            let change = TableChange {
                kind: "ddl_captured",
                class: ChangeClass::Compatible,
                columns,
                rewrite: None,
            };
            let (descriptor, facts) = (before.descriptor.clone(), before.facts.clone());
            let noted = Noted { command, place, before, descriptor, facts };
            all.push(self.note_version(noted, change, wire_types, stage).await?);
        }
        Ok(all)
    }

    /// Whether a type is another one, or an array of it, or a domain over it.
    fn is_made_of(&self, oid: u32, part: u32) -> bool {
        let mut at = oid;
        // as deep as domains over arrays of domains go
        for _ in 0..16 {
            if at == part {
                return true;
            }
            at = match self.types.facts(at).map(|facts| &facts.kind) {
                Some(TypeKind::Array { element_oid, .. }) => *element_oid,
                Some(TypeKind::Domain { base_oid, .. }) => *base_oid,
                _ => return false,
            };
        }
        false
    }

    async fn note_version<S: Services>(
        &mut self,
        noted: Noted<'_>,
        mut change: TableChange,
        wire_types: &WireTypes<'_>,
        stage: &mut Stage<S>,
    ) -> Result<NotedTable, Fault> {
        let Noted { command, place, before, descriptor, facts } = noted;
        self.fetch_labels(&descriptor).await?;
        if let Some(facts) = &facts {
            self.note_latest(facts);
        }
        let old = self.compile(&before.descriptor, before.facts.as_ref(), before.epoch, wire_types);
        let epoch = self.next_epoch(&descriptor);
        let resolved = build(
            &descriptor,
            facts.as_ref(),
            &self.types,
            wire_types,
            epoch,
            &self.settings.key_rules,
        );
        let entry = (place, Provenance::Trigger, State::New);
        let table = self.add(&descriptor, facts, resolved, entry);
        if let Err(fault) = self.judge_rewrite(&mut change, table.index, stage) {
            let told = (&fault, Some(command));
            self.tell_refusal(table.index, (&old, &change), told, stage).await?;
            return Err(fault);
        }
        self.note_name(&before.descriptor, table.index);
        let change = Some(change);
        self.announce_change(table.index, (Some(&old), change), Some(command), stage).await?;
        self.entry_mut(table.index)?.state = State::Known;
        Ok(NotedTable { descriptor, table })
    }

    /// The parts of a record's origin that a note does not change.
    pub(super) fn control_origin<'o>(
        &'o self,
        position: &'o str,
        place: Place,
        provenance: Provenance,
    ) -> ControlOrigin<'o> {
        ControlOrigin {
            system: &self.origin.system,
            database: &self.origin.database,
            stream: &self.settings.slot_name,
            commit_position: position,
            end_position: None,
            transaction: None,
            sequence: place.sequence,
            micros: self.micros,
            provenance,
            mode: ChangeMode::Forward,
            acknowledged: false,
            refused: None,
            command: None,
            after_position: None,
            named_by: None,
        }
    }
}

/// What is said of the whole table.
const fn of_table(kind: &'static str, class: ChangeClass) -> ColumnChange {
    ColumnChange { column: String::new(), kind, from: None, to: None, class }
}
