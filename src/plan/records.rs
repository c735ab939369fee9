//! Which records a change of each kind becomes.
//!
//! | kind | records |
//! |---|---|
//! | read, create | `r`, `c` |
//! | update | `u` |
//! | key change | `d` of the old key, tombstone, `c` of the new key |
//! | delete | `d`, tombstone |
//! | moved in | `c`, its whole row sent |
//! | moved out | `d`, tombstone |
//! | found out | `d`, tombstone, the key alone sent |
//! | truncate | `t` with a null key |
//!
//! Knows no database. **Invariants:** a record has a null key only if the table has none (or it is
//! a truncate); a tombstone never has one; a create, update or read never shows an image that it
//! would have to guess.

use std::sync::Arc;

use super::TablePlan;
use super::columns::{PublishedColumn, published_columns};
use super::envelope::{Envelope, Parts, transaction_place};
use super::headers::{Headers, MOVED_IN, MOVED_OUT, NEW_KEY, OLD_KEY, Unknown};
use super::key::RecordKey;
use super::settings::{BeforeUnsent, Incomplete, Operation, PlanSettings};
use super::source_block::SourceBlock;
use super::topics::table_topic;
use super::transforms;
use crate::change::{BeforeImage, ChangeKind, TableVersion};
use crate::error::{Code, Fault};
use crate::record::{Guard, Leaf, Node, RecordShape, Schema, Shape, Topic, Unsent};

/// Uses of a value, as a fault names them where it was not sent.
const SNAPSHOT_ROW: &str = "a row of a snapshot";
const IDENTITY: &str = "the identity of the row before the change";
const FULL_IMAGE: &str = "a full image of the row before the change";
const NO_ROOM: &str = "a column whose type has no value left to mark it with";
const MOVED: &str = "a create of a row that came into the filter";

/// Why the rows of a table cannot be told anew, and what can be done instead.
const NO_KEY: &str = "the records of the table have no key: what may have been published of rows \
                      that the filter leaves out cannot be deleted, and what was published would \
                      be there twice";
const ANEW: &str = "Apply the filter with the mode from_now; where the topics must hold exactly its \
                    rows, delete the connector's offsets and begin anew, with new topics.";

/// Compiles a table version.
pub(super) fn compile(
    version: Arc<TableVersion>,
    settings: &PlanSettings,
    source: &SourceBlock,
) -> Result<TablePlan, Fault> {
    check_indexes(&version)?;
    check_key(&version)?;
    let topic = table_topic(settings, &version.table)?;
    let columns = published_columns(&version, settings)?;
    let key = RecordKey::build(&topic, settings.schema_names, &columns, &version.key);
    let envelope = Envelope::build(Parts {
        topic: &topic,
        names: settings.schema_names,
        columns: &columns,
        always_known: (settings.before_unsent == BeforeUnsent::Null).then_some(&version.key[..]),
        doc: version.comment.as_deref().filter(|_| settings.values.comments),
        source: source.shape(&version.table)?,
    });
    let compiler = Compiler {
        version: &version,
        settings,
        columns: &columns,
        topic: &topic,
        key: key.as_ref(),
        envelope: &envelope,
        headers: Headers::new(settings, source, Some(version.epoch)),
    };
    let mut kinds = ChangeKind::ALL.map(|kind| compiler.records(kind));
    let events = kinds.each_ref().map(|records| count_events(records));
    let unfit = transforms::apply(&settings.transforms, &mut kinds)?;
    let no_key = key.is_none().then(|| Code::FilterChanged.fault(NO_KEY).hint(ANEW));
    let unfit = unfit.map(|fault| {
        let why = fault.message();
        let what =
            format!("rows that the filter leaves out are deleted by their keys alone; {why}");
        Code::FilterChanged.fault(what).hint(ANEW)
    });
    let untellable = no_key.or(unfit);
    let collection = version.table.to_string();
    Ok(TablePlan { kinds, version, events, collection, untellable })
}

/// How many of a change's records are events of its transaction: all but tombstones.
fn count_events(records: &[RecordShape]) -> u32 {
    let events = records.iter().filter(|record| record.value.is_some());
    events.fold(0, |count, _| count + 1)
}

fn check_indexes(version: &TableVersion) -> Result<(), Fault> {
    let identity: &[usize] = match &version.before_image {
        BeforeImage::Key(identity) => identity,
        BeforeImage::Full | BeforeImage::None => &[],
    };
    match version.key.iter().chain(identity).find(|index| **index >= version.columns.len()) {
        Some(index) => {
            Err(Code::Internal.fault(format!("the table has no column of the index {index}")))
        }
        None => Ok(()),
    }
}

/// A key-only image must hold the record key, or a delete could not say which record it deletes.
fn check_key(version: &TableVersion) -> Result<(), Fault> {
    let BeforeImage::Key(identity) = &version.before_image else {
        return Ok(());
    };
    match version.key.iter().find(|index| !identity.contains(index)) {
        Some(index) => {
            let column = version.columns.get(*index).map_or("", |column| column.name.as_str());
            Err(Code::SourceReplicaIdentity
                .fault(
                    "the record key holds a column that the source does not send with deletes \
                     and changes of the key",
                )
                .at_column(column)
                .hint(
                    "Key the records by the columns of the table's identity, or make the source \
                     send the whole row (REPLICA IDENTITY FULL).",
                ))
        }
        None => Ok(()),
    }
}

struct Compiler<'a> {
    version: &'a TableVersion,
    settings: &'a PlanSettings,
    columns: &'a [PublishedColumn],
    topic: &'a str,
    key: Option<&'a RecordKey>,
    envelope: &'a Envelope,
    headers: Headers<'a>,
}

impl Compiler<'_> {
    fn records(&self, kind: ChangeKind) -> Vec<RecordShape> {
        let operation = match kind {
            ChangeKind::Read => None,
            // By the letter that a reader sees.
            ChangeKind::Create | ChangeKind::MovedIn => Some(Operation::Create),
            ChangeKind::Update | ChangeKind::KeyChange => Some(Operation::Update),
            ChangeKind::Delete | ChangeKind::MovedOut | ChangeKind::FoundOut => {
                Some(Operation::Delete)
            }
            ChangeKind::Truncate => Some(Operation::Truncate),
            // A table has none; they have a plan of their own.
            ChangeKind::Message => return Vec::new(),
        };
        if operation.is_some_and(|operation| self.settings.skipped.contains(operation)) {
            return Vec::new();
        }
        match kind {
            // Compiled without a filter, too: rows that a former one left out still have to come.
            ChangeKind::MovedIn => vec![self.moved_in()],
            ChangeKind::MovedOut => self.scoped_out(self.delete(None)),
            ChangeKind::FoundOut => self.found_out(),
            ChangeKind::Read => vec![self.read()],
            ChangeKind::Create => vec![self.create(None)],
            ChangeKind::Update => vec![self.update()],
            // Without a key there is nothing to move from and to.
            ChangeKind::KeyChange if self.key.is_none() => vec![self.update()],
            ChangeKind::KeyChange => {
                let other = |name, image| Some((name, self.key_shape(image)?));
                let mut records = self.delete(other(NEW_KEY, Leaf::After));
                records.push(self.create(other(OLD_KEY, Leaf::Before)));
                records
            }
            ChangeKind::Delete => self.delete(None),
            ChangeKind::Truncate => vec![self.truncate()],
            ChangeKind::Message => Vec::new(),
        }
    }

    fn read(&self) -> RecordShape {
        let after =
            self.copies(&self.envelope.after, Leaf::After, |_, _| Unsent::Refuse(SNAPSHOT_ROW));
        RecordShape {
            topic: self.topic(),
            key: self.key_shape(Leaf::After),
            value: Some(self.envelope.shape("r", None, Some(after), None)),
            headers: self.headers.of(None, &Unknown::default()),
            guard: Guard::Always,
        }
    }

    /// The first record of its key, to which nothing before it can be added: complete or refused.
    fn moved_in(&self) -> RecordShape {
        let after = self.copies(&self.envelope.after, Leaf::After, |_, _| Unsent::Refuse(MOVED));
        let record = RecordShape {
            topic: self.topic(),
            key: self.key_shape(Leaf::After),
            value: Some(self.envelope.shape("c", None, Some(after), self.block(0))),
            headers: self.headers.of(None, &Unknown::default()),
            guard: Guard::Always,
        };
        self.headers.scoped(record, MOVED_IN)
    }

    fn create(&self, old_key: Option<(&str, Shape)>) -> RecordShape {
        let policies = &self.settings.incomplete;
        let (policy, rereads) = match old_key {
            None => (policies.creates, false),
            Some(_) => (policies.key_changes, policies.rereads),
        };
        let unknown = Unknown { columns: self.unknown_after(policy), first: true, rereads };
        // The create of a changed key comes behind its delete.
        let nth = u32::from(old_key.is_some());
        RecordShape {
            topic: self.topic(),
            key: self.key_shape(Leaf::After),
            value: Some(self.envelope.shape("c", None, Some(self.after(policy)), self.block(nth))),
            headers: self.headers.of(old_key, &unknown),
            guard: Guard::Always,
        }
    }

    fn update(&self) -> RecordShape {
        // A key-only image of the row before comes with a change of the key, hardly ever without.
        let before = match self.version.before_image {
            BeforeImage::Full => Some(self.before()),
            BeforeImage::Key(_) | BeforeImage::None => None,
        };
        let guard = match before {
            Some(_) if self.settings.skip_unchanged => {
                Guard::AnyChanged(self.shown().map(|(index, _)| index).collect())
            }
            _ => Guard::Always,
        };
        let policy = self.settings.incomplete.updates;
        let unknown = Unknown { columns: self.unknown_after(policy), ..Unknown::default() };
        RecordShape {
            topic: self.topic(),
            key: self.key_shape(Leaf::After),
            value: Some(self.envelope.shape("u", before, Some(self.after(policy)), self.block(0))),
            headers: self.headers.of(None, &unknown),
            guard,
        }
    }

    /// A delete and its tombstone.
    fn delete(&self, new_key: Option<(&str, Shape)>) -> Vec<RecordShape> {
        self.delete_showing(self.before(), self.unknown_before(), new_key)
    }

    /// A delete by the key of a row that may never have been published.
    fn found_out(&self) -> Vec<RecordShape> {
        if self.key.is_none() {
            return Vec::new();
        }
        let is_key = |index: usize| self.version.key.contains(&index);
        let before = self.copies(&self.envelope.before, Leaf::Before, |index, column| {
            if is_key(index) { Unsent::Refuse(IDENTITY) } else { self.unsent_before(column) }
        });
        let unknown = self.named(Leaf::Before, |index, _| !is_key(index));
        self.scoped_out(self.delete_showing(before, unknown, None))
    }

    fn scoped_out(&self, records: Vec<RecordShape>) -> Vec<RecordShape> {
        records.into_iter().map(|record| self.headers.scoped(record, MOVED_OUT)).collect()
    }

    fn delete_showing(
        &self,
        before: Vec<Shape>,
        columns: Vec<(Leaf, String)>,
        new_key: Option<(&str, Shape)>,
    ) -> Vec<RecordShape> {
        let unknown = Unknown { columns, ..Unknown::default() };
        let delete = RecordShape {
            topic: self.topic(),
            key: self.key_shape(Leaf::Before),
            value: Some(self.envelope.shape("d", Some(before), None, self.block(0))),
            headers: self.headers.of(new_key.clone(), &unknown),
            guard: Guard::Always,
        };
        if !self.settings.tombstones_on_delete || self.key.is_none() {
            return vec![delete];
        }
        let tombstone = RecordShape {
            value: None,
            headers: self.headers.of(new_key, &Unknown::default()),
            ..delete.clone()
        };
        vec![delete, tombstone]
    }

    fn truncate(&self) -> RecordShape {
        RecordShape {
            topic: self.topic(),
            key: None,
            value: Some(self.envelope.shape("t", None, None, self.block(0))),
            headers: self.headers.of(None, &Unknown::default()),
            guard: Guard::Always,
        }
    }

    /// The transaction block of the change's nth event, if there is one.
    fn block(&self, nth: u32) -> Option<Node> {
        self.settings.notices.transactions.then(|| transaction_place(nth))
    }

    fn topic(&self) -> Topic {
        Topic::Fixed(self.topic.to_owned())
    }

    fn key_shape(&self, image: fn(usize) -> Leaf) -> Option<Shape> {
        self.key.map(|key| key.shape(self.columns, image))
    }

    /// The row after; what was not sent is marked, or refused.
    fn after(&self, policy: Incomplete) -> Vec<Shape> {
        self.copies(&self.envelope.after, Leaf::After, |_, column| match (policy, &column.marker) {
            (Incomplete::Refuse(row), _) => Unsent::Refuse(row),
            (Incomplete::Mark, None) => Unsent::Refuse(NO_ROOM),
            (Incomplete::Mark, Some(marker)) => Unsent::Stamp(marker.clone()),
        })
    }

    /// The row before, as far as the source sends it.
    fn before(&self) -> Vec<Shape> {
        self.copies(&self.envelope.before, Leaf::Before, |index, column| {
            if self.version.before_image == BeforeImage::Full {
                return Unsent::Refuse(FULL_IMAGE);
            }
            if self.is_identity(index) {
                return Unsent::Refuse(IDENTITY);
            }
            self.unsent_before(column)
        })
    }

    /// What becomes of a value of the row before that was not sent.
    fn unsent_before(&self, column: &PublishedColumn) -> Unsent {
        match (self.settings.before_unsent, &column.filling) {
            (BeforeUnsent::Fill, Some(filling)) => Unsent::Stamp(filling.clone()),
            (BeforeUnsent::Fill, None) if !column.schema.optional => Unsent::Refuse(NO_ROOM),
            (BeforeUnsent::Null | BeforeUnsent::Fill, _) => Unsent::Null,
        }
    }

    /// The columns that values hold, with their indexes.
    fn shown(&self) -> impl Iterator<Item = (usize, &PublishedColumn)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.is_shown)
    }

    /// Copies of the columns into the fields of a row's schema.
    fn copies(
        &self,
        row: &Schema,
        image: fn(usize) -> Leaf,
        unsent: impl Fn(usize, &PublishedColumn) -> Unsent,
    ) -> Vec<Shape> {
        row.fields()
            .iter()
            .zip(self.shown())
            .map(|(field, (index, column))| {
                column.copy(&field.schema, image(index), unsent(index, column))
            })
            .collect()
    }

    /// The columns of the row after that may hold a marker.
    fn unknown_after(&self, policy: Incomplete) -> Vec<(Leaf, String)> {
        if policy != Incomplete::Mark {
            return Vec::new();
        }
        self.named(Leaf::After, |_, column| column.marker.is_some())
    }

    /// The columns of the row before that the source may not have sent.
    fn unknown_before(&self) -> Vec<(Leaf, String)> {
        if self.version.before_image == BeforeImage::Full {
            return Vec::new();
        }
        self.named(Leaf::Before, |index, _| !self.is_identity(index))
    }

    fn named(
        &self,
        image: fn(usize) -> Leaf,
        counts: impl Fn(usize, &PublishedColumn) -> bool,
    ) -> Vec<(Leaf, String)> {
        self.shown()
            .filter(|(index, column)| counts(*index, column))
            .map(|(index, column)| (image(index), column.name.clone()))
            .collect()
    }

    /// Whether the column is part of every image of the row before.
    fn is_identity(&self, index: usize) -> bool {
        match &self.version.before_image {
            BeforeImage::Full => true,
            BeforeImage::Key(identity) => identity.contains(&index),
            BeforeImage::None => self.version.key.contains(&index),
        }
    }
}
