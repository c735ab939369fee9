//! All records of a table's changes: guards, keys, values and headers, written into a batch.
//!
//! Made once per table version from its plan. Knows neither formats nor Kafka; topics are numbers
//! that the caller gives. **Invariants:** the records of one change are in the batch all or not at
//! all; a fault names table, column, key and position as far as they are known.

use super::headers::{self, Content};
use super::json::Json;
use super::program::{Failure, Input, Program, Reason};
use super::route::{Destination, Router, Unrouted};
use super::{Compiled, Converters, Id};
use crate::change::{ChangeKind, Column, Event};
use crate::error::{Code, Fault};
use crate::plan::TablePlan;
use crate::record::{
    Batch, Guard, Header, HeaderShape, Leaf, Record, RecordShape, Span, Topic, TopicId,
};

/// The readable form of a key is cut behind so many characters.
const READABLE_KEY: usize = 200;

/// Where a plan's record goes, and the ids under which its schemas are registered there; `None`
/// where there is no registry, or no key or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The topic's number.
    pub topic: TopicId,
    /// Of the key's schema.
    pub key: Option<u32>,
    /// Of the value's schema.
    pub value: Option<u32>,
}

/// Writes the records of one table version's changes.
#[derive(Debug)]
pub struct TableWriter {
    table: String,
    converters: Converters,
    columns: Vec<String>,
    kinds: [Box<[RecordWriter]>; ChangeKind::ALL.len()],
}

#[derive(Debug)]
struct RecordWriter {
    destination: Destination,
    guard: Option<Condition>,
    key: Option<Compiled>,
    value: Option<Compiled>,
    headers: Box<[HeaderWriter]>,
    /// The key as people read it in a fault.
    readable: Option<Program<Json>>,
}

#[derive(Debug)]
struct HeaderWriter {
    name: Box<str>,
    guard: Option<Condition>,
    content: Content,
}

/// What has to hold for a record or a header to come out.
#[derive(Debug)]
enum Condition {
    AnyUnsent(Box<[Input]>),
    AnyReread(Box<[usize]>),
    AnyChanged(Box<[usize]>),
    All(Box<[Self]>),
    Not(Box<Self>),
}

impl Condition {
    fn holds(&self, event: &Event<'_>) -> bool {
        match self {
            Self::AnyUnsent(inputs) => inputs.iter().any(|input| input.is_unsent(event)),
            Self::AnyReread(columns) => event.row.reread.iter().any(|one| columns.contains(one)),
            Self::AnyChanged(columns) => columns.iter().any(|column| event.row.is_changed(*column)),
            Self::All(conditions) => conditions.iter().all(|condition| condition.holds(event)),
            Self::Not(condition) => !condition.holds(event),
        }
    }
}

impl TableWriter {
    /// Compiles a plan; `places` has one for each of its records, in their order; `None` for those
    /// whose topic depends on the row.
    ///
    /// # Errors
    /// The plan contradicts itself, or a place or an id is missing.
    pub fn new(
        plan: &TablePlan,
        converters: &Converters,
        places: &[Option<Place>],
    ) -> Result<Self, Fault> {
        let table = plan.version.table.to_string();
        let compiler = Compiler { columns: &plan.version.columns, converters };
        let mut kinds = [const { Vec::new() }; ChangeKind::ALL.len()];
        let mut places = places.iter().enumerate();
        for (kind, shapes) in kinds.iter_mut().zip(&plan.kinds) {
            for shape in shapes {
                let record = places
                    .next()
                    .ok_or_else(no_place)
                    .and_then(|(index, place)| compiler.record(index, shape, *place))
                    .map_err(|fault| fault.at_table(table.as_str()))?;
                kind.push(record);
            }
        }
        Ok(Self {
            table,
            converters: *converters,
            columns: plan.version.columns.iter().map(|column| column.name.clone()).collect(),
            kinds: kinds.map(Vec::into_boxed_slice),
        })
    }

    /// Appends all records of one change. If one of them leads where none was before, nothing of
    /// the change is written, and the answer says what has to be learned first; after an error the
    /// batch is as it was, too.
    ///
    /// # Errors
    /// A value does not fit, or one that is needed was not sent.
    pub fn write(&self, event: &Event<'_>, batch: &mut Batch) -> Result<Option<Unrouted>, Fault> {
        let marks = batch.marks();
        for (part, record) in (event.first_part..).zip(self.records(event)) {
            match record.write(event, part, batch) {
                Ok(None) => {}
                Ok(unrouted) => {
                    batch.truncate(marks);
                    return Ok(unrouted);
                }
                Err(failure) => {
                    batch.truncate(marks);
                    return Err(self.fault(failure, record, event));
                }
            }
        }
        Ok(None)
    }

    /// Keeps where a text leads.
    ///
    /// # Errors
    /// There is no such record, or it leads to too many topics.
    pub fn learn(&mut self, unrouted: &Unrouted, place: Place) -> Result<(), Fault> {
        let record = self.kinds.iter_mut().flatten().nth(unrouted.record);
        let Some(RecordWriter { destination: Destination::Routed(router), .. }) = record else {
            return Err(no_place());
        };
        router
            .learn(&unrouted.text, place, &self.converters)
            .map_err(|fault| fault.at_table(self.table.as_str()))
    }

    /// Names table and position of a fault that was met while this change was written.
    pub fn locate(&self, fault: Fault, event: &Event<'_>) -> Fault {
        fault.at_table(self.table.as_str()).at_position(position(event))
    }

    /// The table's name, as faults give it.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The key of one of the change's records as people read it, `{"id":1}`; `part` is the record's
    /// own. `None` if it has no key or the key cannot be written.
    pub fn readable_key(&self, event: &Event<'_>, part: u32) -> Option<String> {
        let index = part.checked_sub(event.first_part)?;
        self.records(event).nth(usize::try_from(index).ok()?)?.readable_key(event)
    }

    /// The records that come out of this change.
    fn records<'w>(&'w self, event: &'w Event<'_>) -> impl Iterator<Item = &'w RecordWriter> {
        self.kinds
            .get(event.kind as usize)
            .into_iter()
            .flatten()
            .filter(|record| record.guard.as_ref().is_none_or(|guard| guard.holds(event)))
    }

    fn fault(&self, failure: Failure, record: &RecordWriter, event: &Event<'_>) -> Fault {
        let (leaf, reason) = failure.parts();
        let place = match &leaf {
            Leaf::Before(index) | Leaf::After(index) => self.columns.get(*index).cloned(),
            Leaf::Source(index) => Some(format!("source field {index}")),
            Leaf::ProcessedAt => Some("the time of processing".to_owned()),
            Leaf::CommitPosition => Some("the commit position".to_owned()),
            Leaf::Sequence => Some("the sequence".to_owned()),
            Leaf::Transaction(_) => Some("the transaction's block".to_owned()),
        };
        let mut fault = match reason {
            Reason::Value(error) => error.into_fault(),
            Reason::Missing => {
                let image = match leaf {
                    Leaf::Before(_) => "an image of the row before it",
                    Leaf::After(_) => "an image of the row after it",
                    _ => "a value for its source block",
                };
                let kind = event.kind;
                Code::ImageInconsistent.fault(format!("a change of kind {kind:?} without {image}"))
            }
        };
        fault = self.locate(fault, event);
        if let Some(place) = place {
            fault = fault.at_column(place);
        }
        if let Some(key) = record.readable_key(event) {
            fault = fault.at_key(key);
        }
        fault
    }
}

/// Where the change stands, for people.
fn position(event: &Event<'_>) -> String {
    match (event.commit_position, event.sequence) {
        ("", sequence) => format!("snapshot row {sequence}"),
        (commit, sequence) => format!("{commit}, message {sequence}"),
    }
}

impl RecordWriter {
    /// Appends the record, or says what has to be learned first.
    fn write(
        &self,
        event: &Event<'_>,
        part: u32,
        batch: &mut Batch,
    ) -> Result<Option<Unrouted>, Failure> {
        let (topic, key, value) = match &self.destination {
            Destination::Fixed(topic) => (*topic, &[][..], &[][..]),
            Destination::Routed(router) => match router.find(event, batch)? {
                Ok(leg) => (leg.topic, &*leg.key, &*leg.value),
                Err(unrouted) => return Ok(Some(unrouted)),
            },
        };
        let headers = batch.header_mark();
        let key = side(self.key.as_ref(), key, event, batch)?;
        let value = side(self.value.as_ref(), value, event, batch)?;
        for header in &self.headers {
            header.write(event, part, batch)?;
        }
        batch.push(Record {
            topic,
            partition: None,
            key,
            value,
            headers: headers..batch.header_mark(),
            sequence: event.sequence,
            part,
        });
        Ok(None)
    }

    fn readable_key(&self, event: &Event<'_>) -> Option<String> {
        let mut out = Vec::new();
        self.readable.as_ref()?.run(event, &mut out).ok()?;
        let text = String::from_utf8(out).ok()?;
        Some(match text.char_indices().nth(READABLE_KEY) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        })
    }
}

fn no_place() -> Fault {
    Code::Internal.fault("a record of a plan has no place")
}

fn side(
    program: Option<&Compiled>,
    prefix: &[u8],
    event: &Event<'_>,
    batch: &mut Batch,
) -> Result<Option<Span>, Failure> {
    let Some(program) = program else { return Ok(None) };
    let start = batch.mark();
    batch.arena().extend_from_slice(prefix);
    let is_there = program.run(event, batch.arena())?;
    Ok(is_there.then(|| Span { start, end: batch.mark() }))
}

impl HeaderWriter {
    fn write(&self, event: &Event<'_>, part: u32, batch: &mut Batch) -> Result<(), Failure> {
        if self.guard.as_ref().is_some_and(|guard| !guard.holds(event)) {
            return Ok(());
        }
        let name = batch.append(self.name.as_bytes());
        let start = batch.mark();
        let written = self.content.write(event, part, batch.arena())?;
        let value = written.then(|| Span { start, end: batch.mark() });
        batch.push_header(Header { name, value });
        Ok(())
    }
}

struct Compiler<'c> {
    columns: &'c [Column],
    converters: &'c Converters,
}

impl Compiler<'_> {
    fn record(
        &self,
        index: usize,
        shape: &RecordShape,
        place: Option<Place>,
    ) -> Result<RecordWriter, Fault> {
        let columns = self.columns;
        let (destination, key_id, value_id) = match (&shape.topic, place) {
            (Topic::Fixed(_), Some(Place { topic, key, value })) => {
                (Destination::Fixed(topic), Id::Inside(key), Id::Inside(value))
            }
            (Topic::Fixed(_), None) => return Err(no_place()),
            (Topic::Routed(route), _) => {
                let router = Router::compile(index, route, columns)?;
                (Destination::Routed(router), Id::Apart, Id::Apart)
            }
        };
        let mut key = None;
        let mut readable = None;
        if let Some(shape) = &shape.key {
            let converter = &self.converters.key;
            key = converter.compile(shape, key_id, columns, "a record key")?;
            readable = Some(headers::readable(shape, columns)?);
        }
        let mut value = None;
        if let Some(shape) = &shape.value {
            let converter = &self.converters.value;
            value = converter.compile(shape, value_id, columns, "a computed value")?;
        }
        Ok(RecordWriter {
            destination,
            guard: self.guard(&shape.guard)?,
            key,
            value,
            headers: shape
                .headers
                .iter()
                .map(|shape| self.header(shape))
                .collect::<Result<_, _>>()?,
            readable,
        })
    }

    fn header(&self, shape: &HeaderShape) -> Result<HeaderWriter, Fault> {
        let content = self.converters.headers.compile(&shape.value, self.columns)?;
        let name = shape.name.as_str().into();
        Ok(HeaderWriter { name, guard: self.guard(&shape.guard)?, content })
    }

    /// `None`: nothing has to hold.
    fn guard(&self, guard: &Guard) -> Result<Option<Condition>, Fault> {
        match guard {
            Guard::Always => Ok(None),
            guard => self.condition(guard).map(Some),
        }
    }

    fn condition(&self, guard: &Guard) -> Result<Condition, Fault> {
        Ok(match guard {
            Guard::Always => Condition::All(Box::default()),
            Guard::AnyUnsent(leaves) => {
                let inputs = leaves.iter().map(|leaf| Input::compile(leaf, self.columns));
                Condition::AnyUnsent(inputs.collect::<Result<_, _>>()?)
            }
            Guard::AnyReread(columns) => Condition::AnyReread(columns.as_slice().into()),
            Guard::AnyChanged(columns) => Condition::AnyChanged(columns.as_slice().into()),
            Guard::All(guards) => {
                let conditions = guards.iter().map(|guard| self.condition(guard));
                Condition::All(conditions.collect::<Result<_, _>>()?)
            }
            Guard::Not(guard) => Condition::Not(Box::new(self.condition(guard)?)),
        })
    }
}
