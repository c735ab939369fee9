//! Finished records in one arena: what a reader hands to the publisher.
//!
//! A batch is reused: [`Batch::clear`] keeps the memory. Knows no Kafka client; topics are numbers
//! that the publisher's topic list resolves. **Invariant:** all records that one row gives rise to
//! are in the same batch, so that a cut between batches never falls inside a row.

use std::ops::Range;

/// A topic's number in the task's topic list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicId(pub u32);

/// Bytes of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The number of bytes.
    pub const fn len(self) -> usize {
        self.end - self.start
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.end == self.start
    }
}

/// A header of a finished record.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Its key.
    pub name: Span,
    /// Its value.
    pub value: Option<Span>,
}

/// A finished record.
#[derive(Clone, Debug)]
pub struct Record {
    /// Where to.
    pub topic: TopicId,
    /// The partition, if it is fixed; else the partitioner's choice by key.
    pub partition: Option<i32>,
    /// The key's bytes; `None`: null.
    pub key: Option<Span>,
    /// The value's bytes; `None`: a tombstone.
    pub value: Option<Span>,
    /// Its headers, in [`Batch::headers`].
    pub headers: Range<usize>,
    /// The sequence of the change it comes from.
    pub sequence: u64,
    /// Its number among the records of that change, from 0.
    pub part: u32,
}

/// A place between two records of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    arena: usize,
    headers: usize,
    records: usize,
}

impl Marks {
    /// Bytes of the arena before it.
    pub const fn bytes(self) -> usize {
        self.arena
    }

    /// Records before it.
    pub const fn records(self) -> usize {
        self.records
    }
}

/// Finished records and the arena that holds their bytes.
#[derive(Debug, Default)]
pub struct Batch {
    arena: Vec<u8>,
    records: Vec<Record>,
    headers: Vec<Header>,
    commits: Vec<i64>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// The arena, for a converter to append to.
    pub const fn arena(&mut self) -> &mut Vec<u8> {
        &mut self.arena
    }

    /// Where the next byte goes.
    pub const fn mark(&self) -> usize {
        self.arena.len()
    }

    /// Appends bytes and says where they are.
    pub fn append(&mut self, bytes: &[u8]) -> Span {
        let start = self.arena.len();
        self.arena.extend_from_slice(bytes);
        Span { start, end: self.arena.len() }
    }

    /// Adds a header; a record's headers are added directly before the record.
    pub fn push_header(&mut self, header: Header) {
        self.headers.push(header);
    }

    /// The number of headers so far: where the next record's headers begin.
    pub const fn header_mark(&self) -> usize {
        self.headers.len()
    }

    /// Adds a record.
    pub fn push(&mut self, record: Record) {
        self.records.push(record);
    }

    /// The records in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The headers of a record in order.
    pub fn headers(&self, record: &Record) -> &[Header] {
        self.headers.get(record.headers.clone()).unwrap_or_default()
    }

    /// Notes that a source transaction ends here that was committed there at this time
    /// (microseconds since the epoch).
    pub fn push_commit(&mut self, micros: i64) {
        self.commits.push(micros);
    }

    /// When the source transactions that end in this batch were committed, in order.
    pub fn commits(&self) -> &[i64] {
        &self.commits
    }

    /// The bytes of a span.
    pub fn bytes(&self, span: Span) -> &[u8] {
        self.arena.get(span.start..span.end).unwrap_or_default()
    }

    /// Bytes of key, value and headers of a record, as the size checks count them.
    pub fn size_of(&self, record: &Record) -> usize {
        let headers: usize = self
            .headers(record)
            .iter()
            .map(|header| header.name.len() + header.value.map_or(0, Span::len))
            .sum();
        record.key.map_or(0, Span::len) + record.value.map_or(0, Span::len) + headers
    }

    /// Bytes in the arena.
    pub const fn byte_len(&self) -> usize {
        self.arena.len()
    }

    /// Memory held, in bytes, used or not.
    pub const fn capacity(&self) -> usize {
        self.arena.capacity()
            + self.records.capacity() * size_of::<Record>()
            + self.headers.capacity() * size_of::<Header>()
            + self.commits.capacity() * size_of::<i64>()
    }

    /// Whether it has no records.
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Takes back everything since the marks: a change that failed half-way leaves nothing.
    pub fn truncate(&mut self, marks: Marks) {
        self.arena.truncate(marks.arena);
        self.headers.truncate(marks.headers);
        self.records.truncate(marks.records);
    }

    /// Moves everything since the marks to an empty batch, whose memory is used; what came before
    /// stays, and so do the ends of transactions, which are before any marks that are of use.
    #[must_use]
    pub fn split_off(&mut self, mark: Marks, mut rest: Self) -> Self {
        let shift =
            |span: Span| Span { start: span.start - mark.arena, end: span.end - mark.arena };
        rest.arena.extend_from_slice(self.arena.get(mark.arena..).unwrap_or_default());
        rest.headers.extend(
            self.headers
                .drain(mark.headers.min(self.headers.len())..)
                .map(|header| Header { name: shift(header.name), value: header.value.map(shift) }),
        );
        rest.records.extend(self.records.drain(mark.records.min(self.records.len())..).map(
            |record| Record {
                key: record.key.map(shift),
                value: record.value.map(shift),
                headers: record.headers.start - mark.headers..record.headers.end - mark.headers,
                ..record
            },
        ));
        self.arena.truncate(mark.arena);
        rest
    }

    /// Where everything that is added from now on begins.
    pub const fn marks(&self) -> Marks {
        Marks { arena: self.arena.len(), headers: self.headers.len(), records: self.records.len() }
    }

    /// Empties it and keeps the memory.
    pub fn clear(&mut self) {
        self.truncate(Marks::default());
        self.commits.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(batch: &mut Batch, topic: u32, key: &[u8], header: &[u8]) {
        let headers = batch.header_mark();
        let name = batch.append(header);
        batch.push_header(Header { name, value: None });
        let key = batch.append(key);
        batch.push(Record {
            topic: TopicId(topic),
            partition: None,
            key: Some(key),
            value: None,
            headers: headers..batch.header_mark(),
            sequence: 1,
            part: 0,
        });
    }

    #[test]
    fn split_off_moves_whole_records_and_their_bytes() {
        let mut batch = Batch::new();
        push(&mut batch, 1, b"one", b"h1");
        let marks = batch.marks();
        push(&mut batch, 2, b"two", b"h2");
        push(&mut batch, 3, b"three", b"h3");
        let tail = batch.split_off(marks, Batch::new());
        assert_eq!(batch.records().len(), 1);
        assert_eq!(batch.byte_len(), 5);
        let keys: Vec<_> = tail.records().iter().map(|r| tail.bytes(r.key.unwrap())).collect();
        assert_eq!(keys, [b"two".as_slice(), b"three"]);
        let last = &tail.records()[1];
        assert_eq!(tail.bytes(tail.headers(last)[0].name), b"h3");
        assert_eq!(tail.size_of(last), 7);
    }

    #[test]
    fn truncate_takes_back_a_change_that_failed_half_way() {
        let mut batch = Batch::new();
        push(&mut batch, 1, b"one", b"h1");
        let marks = batch.marks();
        batch.append(b"half a record");
        batch.truncate(marks);
        assert_eq!(batch.marks(), marks);
    }
}
