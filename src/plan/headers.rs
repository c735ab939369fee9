//! Headers of a record: the other key of a key change, and what goes beyond Debezium's envelope.
//!
//! Knows no database; the name under which the source's position goes is the source's own.
//! **Invariant:** whatever a value holds that the source did not send is named here.

use super::notices::context_headers;
use super::settings::{Extensions, PlanSettings};
use super::source_block::SourceBlock;
use crate::record::{
    Expression, Guard, HeaderShape, HeaderValue, Leaf, Node, RecordShape, Shape, Unsent,
};

/// Number of the table version.
const EPOCH: &str = "__tidegate.epoch";
/// Number of the change's message in its transaction.
const SEQUENCE: &str = "__tidegate.tx_seq";
/// Number of the record among those of its message.
const PART: &str = "__tidegate.part";
/// Columns whose value in this record is a marker, a filling or a null because it was not sent.
const UNAVAILABLE: &str = "__tidegate.unavailable";
/// The record is the first of its key and not complete: it cannot be merged with an earlier one.
const UNMERGEABLE: &str = "__tidegate.unmergeable";
/// Columns whose value is that of the row as it was when the record was made.
const RESELECTED: &str = "__tidegate.reselected";
/// Why the record is what it is: the row moved over the border of its table's filter.
const SCOPE: &str = "__tidegate.scope";
/// It is published now.
pub(super) const MOVED_IN: &str = "moved_in";
/// It is not any more.
pub(super) const MOVED_OUT: &str = "moved_out";
/// On the delete of a key change: the key that the row has now.
pub(super) const NEW_KEY: &str = "__debezium.newkey";
/// On the create of a key change: the key that the row had.
pub(super) const OLD_KEY: &str = "__debezium.oldkey";

/// What the headers of a table's records have in common.
#[derive(Debug)]
pub(super) struct Headers<'a> {
    /// Debezium's headers that say which connector it was.
    context: Vec<(&'static str, String)>,
    /// Whether there are any beyond Debezium's.
    extensions: Extensions,
    /// The number of the table version, if there is a table.
    epoch: Option<u64>,
    /// The key of the header with the position of the change's transaction.
    position: &'a str,
}

/// What a record's value does not know.
#[derive(Clone, Debug, Default)]
pub(super) struct Unknown {
    /// Columns that may not have been sent, with their published names.
    pub(super) columns: Vec<(Leaf, String)>,
    /// Whether the record is the first of its key.
    pub(super) first: bool,
    /// Whether the source may be asked for them anew.
    pub(super) rereads: bool,
}

impl<'a> Headers<'a> {
    /// For the records of a table version, or of what has none.
    pub(super) fn new(
        settings: &PlanSettings,
        source: &'a SourceBlock,
        epoch: Option<u64>,
    ) -> Self {
        Self {
            context: context_headers(settings, source),
            extensions: settings.extensions,
            epoch,
            position: &source.position_header,
        }
    }

    /// A record that says that its row moved.
    pub(super) fn scoped(&self, mut record: RecordShape, scope: &str) -> RecordShape {
        if self.extensions == Extensions::Headers {
            record.headers.push(always(SCOPE, HeaderValue::Constant(scope.to_owned())));
        }
        record
    }

    /// The headers of one record. `other_key` is the link of a key change.
    pub(super) fn of(
        &self,
        other_key: Option<(&str, Shape)>,
        unknown: &Unknown,
    ) -> Vec<HeaderShape> {
        let mut headers = Vec::new();
        if let Some((name, shape)) = other_key {
            headers.push(always(name, HeaderValue::Shape(shape)));
        }
        let context = self.context.iter();
        headers
            .extend(context.map(|(name, text)| always(name, HeaderValue::Constant(text.clone()))));
        if self.extensions == Extensions::None {
            return headers;
        }
        let text = |leaf| HeaderValue::Expression(Expression::Text(leaf));
        let epoch = self.epoch.map(|epoch| HeaderValue::Constant(epoch.to_string()));
        headers.extend(epoch.map(|epoch| always(EPOCH, epoch)));
        headers.extend([
            always(self.position, text(Leaf::CommitPosition)),
            always(SEQUENCE, text(Leaf::Sequence)),
            always(PART, HeaderValue::Expression(Expression::Part)),
        ]);
        if unknown.columns.is_empty() {
            return headers;
        }
        let leaves = || unknown.columns.iter().map(|(leaf, _)| leaf.clone()).collect();
        headers.push(HeaderShape {
            name: UNAVAILABLE.to_owned(),
            value: HeaderValue::Expression(Expression::NamesOfUnsent(unknown.columns.clone())),
            guard: Guard::AnyUnsent(leaves()),
        });
        if unknown.first {
            headers.push(HeaderShape {
                name: UNMERGEABLE.to_owned(),
                value: HeaderValue::Constant("true".to_owned()),
                guard: Guard::AnyUnsent(leaves()),
            });
        }
        if unknown.rereads {
            headers.push(reselected(&unknown.columns));
        }
        headers
    }
}

fn reselected(unsent: &[(Leaf, String)]) -> HeaderShape {
    let names: Vec<_> = unsent
        .iter()
        .filter_map(|(leaf, name)| match leaf {
            Leaf::After(column) => Some((*column, name.clone())),
            _ => None,
        })
        .collect();
    HeaderShape {
        name: RESELECTED.to_owned(),
        guard: Guard::AnyReread(names.iter().map(|(column, _)| *column).collect()),
        value: HeaderValue::Expression(Expression::NamesOfReread(names)),
    }
}

/// The columns of the row after for which a record without a predecessor of its key may have
/// markers.
pub(super) fn unmergeable_columns(records: &[RecordShape]) -> Vec<usize> {
    let headers = records.iter().flat_map(|record| &record.headers);
    let mut columns: Vec<usize> = headers
        .filter(|header| header.name == UNMERGEABLE)
        .filter_map(|header| match &header.guard {
            Guard::AnyUnsent(leaves) => Some(leaves),
            _ => None,
        })
        .flatten()
        .filter_map(|leaf| match leaf {
            Leaf::After(column) => Some(*column),
            _ => None,
        })
        .collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// Whether some records of a kind have the header and others have not.
pub(super) fn is_guarded(name: &str) -> bool {
    matches!(name, UNAVAILABLE | UNMERGEABLE | RESELECTED)
}

/// Makes the headers say what the value holds now that was not sent.
pub(super) fn restate(record: &mut RecordShape) {
    let mut unsent = Vec::new();
    if let Some(value) = &record.value {
        collect_unsent(value, "", &mut unsent);
    }
    if unsent.is_empty() {
        record.headers.retain(|header| !is_guarded(&header.name));
    }
    for header in &mut record.headers {
        if header.name == RESELECTED {
            *header = reselected(&unsent);
        } else if is_guarded(&header.name) {
            header.guard = Guard::AnyUnsent(unsent.iter().map(|(leaf, _)| leaf.clone()).collect());
        }
        if header.name == UNAVAILABLE {
            let names = Expression::NamesOfUnsent(unsent.clone());
            header.value = HeaderValue::Expression(names);
        }
    }
}

/// The copies of columns that go on without the value, with the names of their fields.
fn collect_unsent(shape: &Shape, name: &str, found: &mut Vec<(Leaf, String)>) {
    match &shape.node {
        Node::Struct(shapes) => {
            for (field, shape) in shape.schema.fields().iter().zip(shapes) {
                collect_unsent(shape, &field.name, found);
            }
        }
        Node::Column { leaf, unsent: Unsent::Null | Unsent::Stamp(_), .. } => {
            found.push((leaf.clone(), name.to_owned()));
        }
        Node::Column { unsent: Unsent::Refuse(_), .. } | Node::Value { .. } | Node::Constant(_) => {
        }
    }
}

fn always(name: &str, value: HeaderValue) -> HeaderShape {
    HeaderShape { name: name.to_owned(), value, guard: Guard::Always }
}
