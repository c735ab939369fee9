//! Frames of the replication stream → what happened, one output for each frame.
//!
//! Keeps the two states that the stream has, the transaction and what was said of each relation.
//! Opens no socket, reads no clock and asks no catalogue: a relation that is new or changed comes
//! out as a question ([`Output::Relation`]), and the driver answers with [`Decoder::install`] or
//! [`Decoder::exclude`] before it feeds the next frame.
//! **Invariants:** one decoder for one connection (the server describes each relation anew on
//! every connection); commit positions only grow; no allocation per row.
//!
//! ```text
//!            B                        R Y O · I U D T M             C
//! Idle ────────────▶ Open{commit_lsn, sequence} ↺ ───────────────▶ Idle{after: commit_lsn}
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use super::images::{Images, RowRule, malformed};
use super::relations::{InstalledTable, RelationDescriptor, RelationState, Relations};
use super::unsent;
use super::wire::{
    Begin, Commit, Context, DecodeError, Frame, LogicalMessage, Lsn, Message, OldTuple, Relation,
    RelationId, ReplicaIdentity, Truncate, Tuple, TupleValue, TypeName, Xid,
};
use crate::change::{Cell, ChangeKind, RowImage};
use crate::error::{Code, Fault};

/// What a frame says.
#[derive(Clone, Debug)]
pub enum Output<'a> {
    /// The server is alive.
    Keepalive(KeepaliveOutput),
    /// A transaction begins.
    Begin(Transaction),
    /// A relation is described that is new, or differs from what was answered. A question.
    Relation {
        /// The description.
        descriptor: Arc<RelationDescriptor>,
        /// The sequence of the change before which it holds.
        sequence: u64,
    },
    /// A relation is described as before. Nothing to answer, but something may have changed that
    /// the stream does not show.
    RelationRepeated {
        /// The relation.
        relation: RelationId,
        /// The sequence of the change that follows.
        sequence: u64,
    },
    /// A row changed.
    Row(RowChange<'a>),
    /// Tables were emptied.
    Truncate(TruncateOutput<'a>),
    /// The transaction ends.
    Commit(CommitOutput),
    /// The transaction comes from elsewhere by replication.
    Origin {
        /// Its commit position there.
        commit_lsn: Lsn,
        /// The replication origin's name.
        name: &'a str,
    },
    /// An application's message.
    Message(MessageOutput<'a>),
    /// Nothing for the driver to do: a change of an excluded relation, or the name of a type.
    Ignored,
}

/// A sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepaliveOutput {
    /// How far the server has read its log.
    pub wal_end: Lsn,
    /// Whether the server wants an answer now.
    pub reply_requested: bool,
    /// The server's clock, microseconds since 1970-01-01T00:00:00Z.
    pub server_clock: i64,
}

/// A source transaction, known from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its id.
    pub xid: Xid,
    /// Where its commit record begins.
    pub commit_lsn: Lsn,
    /// When it was committed, microseconds since 1970-01-01T00:00:00Z. A replicated transaction
    /// carries its origin's time, so times are not ordered.
    pub commit_micros: i64,
}

/// One change of one row.
#[derive(Clone, Copy, Debug)]
pub struct RowChange<'a> {
    /// The table.
    pub relation: RelationId,
    /// The driver's number for the table version, from [`InstalledTable::index`].
    pub index: usize,
    /// What happened.
    pub kind: ChangeKind,
    /// The row.
    pub row: RowImage<'a>,
    /// The change's own position: neither unique nor ordered. For a snapshot row, the snapshot's.
    pub lsn: Lsn,
    /// Its number among the changes of its transaction, from 1; for a snapshot row, its number in
    /// its chunk.
    pub sequence: u64,
}

impl<'a> RowChange<'a> {
    /// A row that a snapshot read: `cells` are places in `bytes`, in the order of the columns of
    /// the table version `index`.
    pub const fn read(
        (relation, index): (RelationId, usize),
        bytes: &'a [u8],
        cells: &'a [Cell],
        (lsn, sequence): (Lsn, u64),
    ) -> Self {
        let row = RowImage { bytes, before: None, after: Some(cells), reread: &[] };
        Self { relation, index, kind: ChangeKind::Read, row, lsn, sequence }
    }
}

/// Tables that were emptied at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncateOutput<'a> {
    /// The captured ones, in the server's order.
    pub relations: &'a [TruncatedTable],
    /// `CASCADE` was said.
    pub cascade: bool,
    /// `RESTART IDENTITY` was said.
    pub restart_identity: bool,
    /// Its position.
    pub lsn: Lsn,
    /// Its number among the changes of its transaction.
    pub sequence: u64,
}

/// A table that was emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncatedTable {
    /// The table.
    pub relation: RelationId,
    /// The driver's number for the table version.
    pub index: usize,
}

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitOutput {
    /// Where the commit record begins.
    pub commit_lsn: Lsn,
    /// Where it ends: the position to acknowledge.
    pub end_lsn: Lsn,
    /// When it was committed, microseconds since 1970-01-01T00:00:00Z.
    pub commit_micros: i64,
    /// How many changes the transaction had, of captured relations or not.
    pub messages: u64,
}

/// What an application wrote with `pg_logical_emit_message`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageOutput<'a> {
    /// Whether it belongs to the transaction around it.
    pub transactional: bool,
    /// What the application files it under.
    pub prefix: &'a str,
    /// What it says.
    pub content: &'a [u8],
    /// Its position.
    pub lsn: Lsn,
    /// Its number among the changes of its transaction; 0 if it belongs to none.
    pub sequence: u64,
}

/// The transaction's state.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Entered at the start and by a commit; left by a begin.
    Idle {
        /// Where the last transaction committed.
        after: Lsn,
    },
    /// Entered by a begin, left by the commit.
    Open {
        transaction: Transaction,
        /// The number of the last change. Counts what a restart counts again: rows, truncates and
        /// transactional messages. Descriptions of relations and types are not counted, because
        /// the server sends them when its session's cache needs it, not at fixed places.
        sequence: u64,
    },
}

/// Decodes the frames of one connection.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    session: Session,
    /// The tuples of the message at hand.
    values: Vec<TupleValue>,
}

/// What the stream of one connection has said so far, and the memory for what it says next.
#[derive(Clone, Debug, Default)]
struct Session {
    state: State,
    relations: Relations,
    type_names: HashMap<u32, (String, String)>,
    described: Described,
    images: Images,
    truncated: Vec<TruncatedTable>,
}

/// The relation messages directly before the message at hand.
#[derive(Clone, Debug, Default)]
struct Described {
    last: Option<Arc<RelationDescriptor>>,
    before_last: Option<Arc<RelationDescriptor>>,
}

impl Default for State {
    fn default() -> Self {
        Self::Idle { after: Lsn::ZERO }
    }
}

impl Decoder {
    /// A decoder for a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the payload of one `CopyData`.
    ///
    /// # Errors
    /// The frame is malformed, is not allowed here, or a row contradicts what was said of its
    /// relation. The stream cannot go on after an error.
    pub fn frame<'a>(&'a mut self, frame: &'a [u8]) -> Result<Output<'a>, Fault> {
        let state = self.session.state;
        let refuse = |error: DecodeError| state.refuse(malformed(&error));
        let data = match Frame::decode(frame).map_err(refuse)? {
            Frame::XLogData(data) => data,
            Frame::Keepalive(keepalive) => {
                return Ok(Output::Keepalive(KeepaliveOutput {
                    wal_end: keepalive.wal_end,
                    reply_requested: keepalive.reply_requested,
                    server_clock: keepalive.sent_at.unix_micros(),
                }));
            }
        };
        let message = Message::decode(data.payload, Context::default(), &mut self.values);
        self.session.apply(frame, data.wal_start, message.map_err(refuse)?)
    }

    /// Answers [`Output::Relation`]: rows of this relation are decoded for that table version.
    ///
    /// # Errors
    /// Nothing was said of the relation, or the key is not among its columns.
    pub fn install(&mut self, oid: RelationId, table: InstalledTable) -> Result<(), Fault> {
        if self.session.relations.install(oid, table) {
            return Ok(());
        }
        Err(Code::Internal.fault(format!("relation {oid} cannot be installed as answered")))
    }

    /// Answers [`Output::Relation`]: changes of this relation are not wanted.
    ///
    /// # Errors
    /// Nothing was said of the relation.
    pub fn exclude(&mut self, oid: RelationId) -> Result<(), Fault> {
        if self.session.relations.exclude(oid) {
            return Ok(());
        }
        Err(Code::Internal.fault(format!("relation {oid} cannot be excluded, it is not described")))
    }

    /// Where a relation stands; `None`: the stream has not named it.
    pub fn relation(&self, oid: RelationId) -> Option<&RelationState> {
        self.session.relations.state(oid)
    }

    /// Schema and name of a type that is not built in, as the stream gave them last; for a domain
    /// those of its base type. A renamed type is not announced.
    pub fn type_name(&self, oid: u32) -> Option<(&str, &str)> {
        self.session
            .type_names
            .get(&oid)
            .map(|(namespace, name)| (namespace.as_str(), name.as_str()))
    }

    /// The transaction that is open.
    pub const fn transaction(&self) -> Option<&Transaction> {
        match &self.session.state {
            State::Idle { .. } => None,
            State::Open { transaction, .. } => Some(transaction),
        }
    }

    /// Adds the table to a fault that the server reported in place of a change.
    pub fn unsent(&self, fault: Fault) -> Fault {
        let Session { described, relations, .. } = &self.session;
        // A leaf is described behind its root, under whose number its rows come.
        let directly_before = [&described.last, &described.before_last].into_iter().flatten();
        let mut captured = directly_before
            .filter(|relation| matches!(relations.wanted(relation.oid), Ok(Some(_))));
        let announced = captured.next().map(|relation| &**relation);
        unsent::place(fault, announced, relations.captured())
    }

    /// The place of the last change, for people: the transaction's commit position, and `#` with
    /// the change's number while it is open.
    pub fn position(&self) -> String {
        self.session.state.position()
    }
}

impl Session {
    fn apply<'a>(
        &'a mut self,
        frame: &'a [u8],
        lsn: Lsn,
        message: Message<'a>,
    ) -> Result<Output<'a>, Fault> {
        match message {
            Message::Insert(insert) => {
                self.row(RowFrame { frame, lsn }, insert.relation, Tuples::Insert(insert.new))
            }
            Message::Update(update) => {
                let tuples = Tuples::Update(update.old, update.new);
                self.row(RowFrame { frame, lsn }, update.relation, tuples)
            }
            Message::Delete(delete) => {
                self.row(RowFrame { frame, lsn }, delete.relation, Tuples::Delete(delete.old))
            }
            Message::Begin(begin) => self.begin(begin),
            Message::Commit(commit) => self.commit(commit),
            Message::Origin(origin) => {
                self.state.expect_open("an origin")?;
                Ok(Output::Origin { commit_lsn: origin.commit_lsn, name: origin.name })
            }
            Message::Relation(relation) => self.describe(&relation),
            Message::TypeName(type_name) => self.name_type(type_name),
            Message::Truncate(truncate) => self.truncate(lsn, truncate),
            Message::Logical(message) => self.logical(message),
            Message::StreamStart(_)
            | Message::StreamStop
            | Message::StreamCommit(_)
            | Message::StreamAbort(_)
            | Message::StreamPrepare(_)
            | Message::BeginPrepare(_)
            | Message::Prepare(_)
            | Message::CommitPrepared(_)
            | Message::RollbackPrepared(_) => {
                let text = format!("a {} message came, which was not asked for", message.name());
                Err(self.state.refuse(Code::ProtocolUnexpected.fault(text)))
            }
        }
    }

    fn begin(&mut self, begin: Begin) -> Result<Output<'static>, Fault> {
        let State::Idle { after } = self.state else {
            return Err(self.state.misplaced("a begin came inside a transaction"));
        };
        // The server decodes commits in the order of the log. Offsets rest on that.
        if begin.final_lsn <= after {
            let text = format!("a transaction at {} came after one at {after}", begin.final_lsn);
            return Err(self.state.misplaced(&text));
        }
        let transaction = Transaction {
            xid: begin.xid,
            commit_lsn: begin.final_lsn,
            commit_micros: begin.commit_time.unix_micros(),
        };
        self.described = Described::default();
        self.state = State::Open { transaction, sequence: 0 };
        Ok(Output::Begin(transaction))
    }

    fn commit(&mut self, commit: Commit) -> Result<Output<'static>, Fault> {
        let (transaction, sequence) = self.state.expect_open("a commit")?;
        if commit.commit_lsn != transaction.commit_lsn {
            let text = format!("the commit at {} is not the begun one", commit.commit_lsn);
            return Err(self.state.misplaced(&text));
        }
        self.state = State::Idle { after: commit.commit_lsn };
        Ok(Output::Commit(CommitOutput {
            commit_lsn: commit.commit_lsn,
            end_lsn: commit.end_lsn,
            commit_micros: commit.commit_time.unix_micros(),
            messages: sequence,
        }))
    }

    fn describe(&mut self, relation: &Relation<'_>) -> Result<Output<'static>, Fault> {
        let (_, sequence) = self.state.expect_open("a relation")?;
        let descriptor = Arc::new(RelationDescriptor::from_wire(relation));
        self.described.push(&descriptor);
        if self.relations.describe(&descriptor) {
            return Ok(Output::Relation { descriptor, sequence: sequence + 1 });
        }
        let relation = descriptor.oid;
        Ok(Output::RelationRepeated { relation, sequence: sequence + 1 })
    }

    fn name_type(&mut self, type_name: TypeName<'_>) -> Result<Output<'static>, Fault> {
        self.state.expect_open("a type")?;
        let name = (type_name.namespace.to_owned(), type_name.name.to_owned());
        self.type_names.insert(type_name.oid, name);
        Ok(Output::Ignored)
    }

    fn row<'a>(
        &'a mut self,
        RowFrame { frame, lsn }: RowFrame<'a>,
        oid: RelationId,
        tuples: Tuples<'a>,
    ) -> Result<Output<'a>, Fault> {
        let sequence = self.state.count("a row")?;
        let described = std::mem::take(&mut self.described);
        let Some((descriptor, table)) =
            self.relations.wanted(oid).map_err(|fault| self.state.refuse(fault))?
        else {
            return Ok(Output::Ignored);
        };
        let rule = RowRule { relation: descriptor, key: &table.key };
        let images = &mut self.images;
        let made = described.check_leaf(oid).and_then(|()| match tuples {
            Tuples::Insert(new) => images.insert(rule, new, frame),
            Tuples::Update(old, new) => images.update(rule, old, new, frame),
            Tuples::Delete(old) => images.delete(rule, old, frame),
        });
        match made {
            Ok((kind, row)) => {
                let index = table.index;
                Ok(Output::Row(RowChange { relation: oid, index, kind, row, lsn, sequence }))
            }
            Err(fault) => Err(self.state.refuse(fault.at_table(descriptor.qualified_name()))),
        }
    }

    fn truncate(&mut self, lsn: Lsn, truncate: Truncate<'_>) -> Result<Output<'_>, Fault> {
        let sequence = self.state.count("a truncate")?;
        self.described = Described::default();
        self.truncated.clear();
        for relation in truncate.relations.iter() {
            let wanted = self.relations.wanted(relation);
            if let Some((_, table)) = wanted.map_err(|fault| self.state.refuse(fault))? {
                self.truncated.push(TruncatedTable { relation, index: table.index });
            }
        }
        if self.truncated.is_empty() {
            return Ok(Output::Ignored);
        }
        Ok(Output::Truncate(TruncateOutput {
            relations: &self.truncated,
            cascade: truncate.cascade,
            restart_identity: truncate.restart_identity,
            lsn,
            sequence,
        }))
    }

    fn logical<'a>(&mut self, message: LogicalMessage<'a>) -> Result<Output<'a>, Fault> {
        self.described = Described::default();
        let sequence = match message.transactional {
            true => self.state.count("a transactional message")?,
            // Outside protocol 2's blocks a transaction is sent in one piece, after its commit;
            // the position behind such a message rests on that.
            false if matches!(self.state, State::Open { .. }) => {
                let text = "a message of no transaction came inside one";
                return Err(self.state.misplaced(text));
            }
            false => 0,
        };
        Ok(Output::Message(MessageOutput {
            transactional: message.transactional,
            prefix: message.prefix,
            content: message.content,
            lsn: message.lsn,
            sequence,
        }))
    }
}

/// Where a row came from.
#[derive(Clone, Copy)]
struct RowFrame<'a> {
    frame: &'a [u8],
    lsn: Lsn,
}

/// What a row message carries.
#[derive(Clone, Copy)]
enum Tuples<'a> {
    Insert(Tuple<'a>),
    Update(Option<OldTuple<'a>>, Tuple<'a>),
    Delete(OldTuple<'a>),
}

impl State {
    fn position(&self) -> String {
        match self {
            Self::Idle { after } => after.to_string(),
            Self::Open { transaction, sequence } => {
                format!("{}#{sequence}", transaction.commit_lsn)
            }
        }
    }

    fn refuse(&self, fault: Fault) -> Fault {
        fault.at_position(self.position())
    }

    fn misplaced(&self, message: &str) -> Fault {
        self.refuse(Code::ProtocolUnexpected.fault(message))
    }

    fn expect_open(&self, what: &str) -> Result<(Transaction, u64), Fault> {
        match self {
            Self::Open { transaction, sequence } => Ok((*transaction, *sequence)),
            Self::Idle { .. } => Err(self.misplaced(&format!("{what} came outside a transaction"))),
        }
    }

    /// Numbers a change.
    fn count(&mut self, what: &str) -> Result<u64, Fault> {
        if let Self::Open { sequence, .. } = self {
            *sequence += 1;
            return Ok(*sequence);
        }
        self.expect_open(what).map(|(_, sequence)| sequence)
    }
}

impl Described {
    fn push(&mut self, descriptor: &Arc<RelationDescriptor>) {
        self.before_last = self.last.replace(Arc::clone(descriptor));
    }

    /// Compares a partition with its root, if this row tells that they are such a pair.
    ///
    /// With `publish_via_partition_root` the server describes first the root and then the leaf, and
    /// sends the leaf's rows under the root's number. So a row of `x` directly after descriptions
    /// of `x` and `y` says that `y` is a leaf of `x`; that happens before the first row of every
    /// leaf, and after every change of its definition.
    fn check_leaf(&self, row_of: RelationId) -> Result<(), Fault> {
        let (Some(root), Some(leaf)) = (&self.before_last, &self.last) else { return Ok(()) };
        if root.oid != row_of || leaf.oid == row_of {
            return Ok(());
        }
        match root.identity_missing_in(leaf) {
            None => Ok(()),
            Some(column) => Err(Code::ImageInconsistent
                .fault(format!(
                    "the replica identity ({}) of the partition \"{}\" does not cover that of its \
                     root ({}), so old rows are not what they say",
                    leaf.replica_identity.as_str(),
                    leaf.qualified_name(),
                    root.replica_identity.as_str(),
                ))
                .hint(ways_out(root, leaf))
                .at_column(column)),
        }
    }
}

/// What to do about a partition whose identity is not its root's. The log is read with the identity
/// that the partition had then.
fn ways_out(root: &RelationDescriptor, leaf: &RelationDescriptor) -> String {
    let identity = match root.replica_identity {
        ReplicaIdentity::Full | ReplicaIdentity::Nothing => "FULL",
        ReplicaIdentity::Default => "DEFAULT",
        ReplicaIdentity::Index => "USING INDEX its index of the same columns as the root's",
    };
    let (leaf, root) = (leaf.qualified_name(), root.qualified_name());
    format!(
        "Give the partition its root's identity: ALTER TABLE {leaf} REPLICA IDENTITY {identity}. \
         That helps what is written from then on. To pass what is in the log, exclude {root} \
         (table.exclude.list) until the task has read it, then include it again: it is read anew \
         beside the stream, and rows that were deleted meanwhile stay in the topic."
    )
}

#[cfg(test)]
mod tests;
