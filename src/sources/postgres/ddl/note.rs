//! Notes of event triggers: bytes of a message → what a table is from there on, or why not.
//!
//! The other side of `schemas/postgres-ddl-capture.sql`. Any role may write messages of any prefix,
//! so nothing is taken from one before its signature, which binds it to its transaction, was held
//! against the installed key. **Invariants:** no bytes make this panic or allocate more than a
//! small multiple of [`LIMIT`]; a note says nothing of rows.

use std::fmt;

use ring::digest::{Context, SHA256, digest};
use serde::Deserialize;

use crate::error::{Code, Fault};
use crate::sources::postgres::catalogue::{
    ColumnFacts, Generated, KeyFacts, MOST_PARTITIONS, TableFacts,
};
use crate::sources::postgres::row_filter::TextOrder;
use crate::sources::postgres::wire::{ReplicaIdentity, Xid};

/// The longest note. The triggers write 1,000,000 bytes at most.
const LIMIT: usize = 1_100_000;
/// The most columns that a table can have (the server's `MaxHeapAttributeNumber`).
const MOST_COLUMNS: usize = 1600;
/// What every note of this version begins with.
const VERSION: &str = "1";

/// What signs the notes of one database.
#[derive(Clone)]
pub(in crate::sources::postgres) struct Key(Vec<u8>);

impl Key {
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// Two rounds, so that a signature cannot be drawn out to a longer text.
    fn signature(&self, xid: Xid, body: &str) -> String {
        let mut inner = Context::new(&SHA256);
        inner.update(&self.0);
        inner.update(format!("{} ", xid.0).as_bytes());
        inner.update(body.as_bytes());
        let outer = [self.0.as_slice(), inner.finish().as_ref()].concat();
        digest(&SHA256, &outer).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// A note that was signed for its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sources::postgres) struct Note {
    /// The command's tag (`ALTER TABLE`).
    pub(in crate::sources::postgres) command: String,
    /// What it did.
    pub(in crate::sources::postgres) event: Event,
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sources::postgres) enum Event {
    /// The table is like this from here on.
    Table(Box<DescribedTable>),
    /// The same, and each of its rows is written anew; the bits of the server's reasons.
    Rewrite(Box<DescribedTable>, i32),
    /// The table is gone.
    Drop {
        /// Its number.
        oid: u32,
        /// Its name as the server quotes it.
        identity: String,
    },
    /// A type was altered.
    Type {
        /// Its number.
        oid: u32,
    },
    /// The table was altered, and is too large to be described.
    Cut {
        /// Its number.
        oid: u32,
    },
}

/// A table as its note describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sources::postgres) struct DescribedTable {
    /// What a catalogue would say of it.
    pub(in crate::sources::postgres) facts: TableFacts,
    /// Its changes are in the log.
    pub(in crate::sources::postgres) is_logged: bool,
    /// The partitioned table at the top of the tree that it is a partition of.
    pub(in crate::sources::postgres) root: Option<u32>,
    /// Columns whose definition this transaction wrote, by name, with the number of the command in
    /// it that did.
    pub(in crate::sources::postgres) touched: Vec<(String, i64)>,
}

#[derive(Deserialize)]
struct Written {
    event: String,
    command: String,
    oid: u32,
    #[serde(default)]
    reason: Option<i32>,
    #[serde(default)]
    schema: String,
    #[serde(default)]
    table: String,
    #[serde(default)]
    kind: char,
    #[serde(default)]
    persistence: char,
    #[serde(default)]
    identity: char,
    comment: Option<String>,
    root: Option<u32>,
    partitions: Option<Vec<String>>,
    columns: Option<Vec<WrittenColumn>>,
    keys: Option<Vec<WrittenKey>>,
}

/// A column is a list: number, name, type, modifier, whether it is NOT NULL, dimensions, how it is
/// generated, default, comment, and the command that wrote the definition.
#[derive(Deserialize)]
struct WrittenColumn(
    i16,
    String,
    u32,
    i32,
    bool,
    i16,
    String,
    Option<String>,
    Option<String>,
    Option<i64>,
);

#[expect(clippy::struct_excessive_bools, reason = "they are the flags of pg_index")]
#[derive(Deserialize)]
struct WrittenKey {
    primary: bool,
    identity: bool,
    immediate: bool,
    columns: Option<Vec<String>>,
}

impl Note {
    /// Reads the content of a message of the transaction `xid`. `None`: it has nothing to say.
    ///
    /// # Errors
    /// Why it is not believed: for a log.
    pub(in crate::sources::postgres) fn read(
        content: &[u8],
        key: &Key,
        xid: Xid,
    ) -> Result<Option<Self>, Fault> {
        let refuse = |why: &str| Code::DdlNoteRefused.fault(why);
        if content.is_empty() {
            return Ok(None);
        }
        if content.len() > LIMIT {
            return Err(refuse("it is longer than any that the triggers write"));
        }
        let text = std::str::from_utf8(content).map_err(|_not_text| refuse("it is not UTF-8"))?;
        if let Some(state) = text.strip_prefix("error ") {
            let state: String = state.chars().filter(char::is_ascii_alphanumeric).take(5).collect();
            return Err(refuse(&format!(
                "the triggers met an error (SQLSTATE {state}); a definition may have changed \
                 without a note"
            )));
        }
        let (version, signed) =
            text.split_once(' ').ok_or_else(|| refuse("it has no signature"))?;
        if version != VERSION {
            return Err(refuse("it is of another version; run tidegate ddl-capture verify"));
        }
        let (signature, body) =
            signed.split_once(' ').ok_or_else(|| refuse("it has no signature"))?;
        if signature != key.signature(xid, body) {
            return Err(refuse(
                "its signature is not of the installed key and this transaction: somebody else \
                 wrote it, or the triggers were installed anew",
            ));
        }
        let written: Written = serde_json::from_str(body)
            .map_err(|error| refuse("it is not of the triggers' form").caused_by(&error))?;
        written.into_note().map(Some)
    }
}

impl Written {
    fn into_note(self) -> Result<Note, Fault> {
        let command = self.command.clone();
        let event = match self.event.as_str() {
            "table" => Event::Table(Box::new(self.into_table()?)),
            "rewrite" => {
                let reason = self.reason.unwrap_or_default();
                Event::Rewrite(Box::new(self.into_table()?), reason)
            }
            "drop" => Event::Drop { oid: self.oid, identity: self.table },
            "type" => Event::Type { oid: self.oid },
            "cut" => Event::Cut { oid: self.oid },
            _ => return Err(Code::DdlNoteRefused.fault("it tells of an event that is not known")),
        };
        Ok(Note { command, event })
    }

    fn into_table(self) -> Result<DescribedTable, Fault> {
        let refuse = |why: &str| Code::DdlNoteRefused.fault(why);
        let replica_identity = match self.identity {
            'd' => ReplicaIdentity::Default,
            'n' => ReplicaIdentity::Nothing,
            'f' => ReplicaIdentity::Full,
            'i' => ReplicaIdentity::Index,
            _ => return Err(refuse("its replica identity is not known")),
        };
        let written = self.columns.unwrap_or_default();
        if written.len() > MOST_COLUMNS {
            return Err(refuse("it has more columns than a table can have"));
        }
        let mut columns = Vec::with_capacity(written.len());
        let mut touched = Vec::new();
        for column in written {
            touched.extend(column.9.map(|command| (column.1.clone(), command)));
            columns.push(column.into_facts()?);
        }
        let keys = self.keys.unwrap_or_default();
        let key = |wanted: fn(&WrittenKey) -> bool| {
            keys.iter().find(|key| wanted(key)).map(|key| KeyFacts {
                columns: key.columns.clone().unwrap_or_default(),
                is_immediate: key.immediate,
            })
        };
        // a partitioned table without partitions has no list either
        let mut partitions = (self.kind == 'p').then(|| self.partitions.unwrap_or_default());
        if let Some(partitions) = &mut partitions {
            partitions.sort_unstable();
        }
        let partitions = partitions.filter(|names| names.len() <= MOST_PARTITIONS);
        Ok(DescribedTable {
            facts: TableFacts {
                oid: self.oid,
                namespace: self.schema,
                name: self.table,
                is_partitioned: self.kind == 'p',
                replica_identity,
                primary_key: key(|key| key.primary),
                identity_index: key(|key| key.identity),
                columns,
                comment: self.comment,
                estimated_rows: None,
                partitions,
            },
            is_logged: self.persistence == 'p',
            root: self.root,
            touched,
        })
    }
}

impl WrittenColumn {
    fn into_facts(self) -> Result<ColumnFacts, Fault> {
        let Self(attnum, name, type_oid, typmod, not_null, dimensions, how, default, comment, _) =
            self;
        let generated = match how.as_str() {
            "" => Generated::No,
            "s" => Generated::Stored,
            "v" => Generated::Virtual,
            _ => return Err(Code::DdlNoteRefused.fault("a column is generated in an unknown way")),
        };
        Ok(ColumnFacts {
            attnum,
            name,
            type_oid,
            typmod,
            not_null,
            dimensions,
            generated,
            default,
            comment,
            text_order: TextOrder::Unknown,
        })
    }
}

/// Reads bytes as if they had been signed, and as they are, for the fuzzer; says whether they are a
/// note.
pub fn read_arbitrary(bytes: &[u8]) -> bool {
    let key = Key::new(b"fuzz");
    let unsigned = Note::read(bytes, &key, Xid(7)).is_ok_and(|note| note.is_some());
    let body = String::from_utf8_lossy(bytes);
    let signed = format!("1 {} {body}", key.signature(Xid(7), &body));
    unsigned || Note::read(signed.as_bytes(), &key, Xid(7)).is_ok()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    const BODY: &str = r#"{"event":"rewrite","command":"ALTER TABLE","reason":4,"oid":7,
        "schema":"public","table":"t","kind":"r","persistence":"p","identity":"d","comment":null,
        "root":null,"partitions":null,"columns":[
        [1,"id",23,-1,true,0,"",null,null,null],
        [3,"v",23,-1,false,0,"","5","c",2]],
        "keys":[{"primary":true,"identity":false,"immediate":true,"columns":["id"]}]}"#;

    fn key() -> Key {
        Key::new(b"a key")
    }

    fn signed(body: &str, xid: u32) -> Vec<u8> {
        format!("1 {} {body}", key().signature(Xid(xid), body)).into_bytes()
    }

    #[test]
    fn a_signed_note_says_what_the_table_is() {
        let note = Note::read(&signed(BODY, 9), &key(), Xid(9)).unwrap().unwrap();
        assert_eq!(note.command, "ALTER TABLE");
        let Event::Rewrite(table, 4) = note.event else { panic!("{note:?}") };
        assert_eq!(table.touched, [("v".to_owned(), 2)]);
        assert_eq!(table.facts.primary_key.as_ref().unwrap().columns, ["id"]);
        assert_eq!(table.facts.columns[1].default.as_deref(), Some("5"));
        assert!(table.is_logged && table.facts.qualified_name() == "public.t");
    }

    #[test]
    fn the_signature_is_the_one_that_the_sql_makes() {
        // SELECT encode(sha256('k' || sha256('k' || convert_to('1 {}', 'UTF8'))), 'hex')
        assert_eq!(
            Key::new(b"k").signature(Xid(1), "{}"),
            "b4cba2c69d02e01d12184388f1387d38eeac37e1e3a9533fd061cdde3d1baa5c"
        );
    }

    #[track_caller]
    fn check_refused(content: &[u8], why: &str) {
        let fault = Note::read(content, &key(), Xid(9)).unwrap_err();
        assert_eq!(fault.code(), Code::DdlNoteRefused);
        assert!(fault.message().contains(why), "{fault}");
    }

    #[test]
    fn what_was_not_signed_for_this_transaction_is_not_believed() {
        assert_eq!(Note::read(b"", &key(), Xid(9)).unwrap(), None);
        check_refused(BODY.as_bytes(), "another version");
        check_refused(b"{}", "no signature");
        check_refused(&signed(BODY, 8), "signature");
        check_refused(&[b"1 00 ", BODY.as_bytes()].concat(), "signature");
        check_refused(
            &signed(BODY, 9).iter().map(|b| b ^ u8::from(*b == b't')).collect::<Vec<_>>(),
            "signature",
        );
        check_refused(&[0xff], "UTF-8");
        check_refused(&vec![b'1'; LIMIT + 1], "longer");
        check_refused(b"error 42P01'x", "42P01");
    }

    #[test]
    fn signed_nonsense_is_refused() {
        check_refused(&signed("{", 9), "form");
        check_refused(&signed(r#"{"event":"x","command":"","oid":1}"#, 9), "event");
        check_refused(&signed(r#"{"event":"table","command":"","oid":1}"#, 9), "identity");
        check_refused(&signed(r#"{"event":"table","command":"","oid":-1}"#, 9), "form");
        check_refused(&signed(&BODY.replace("0,\"\",", "0,\"z\","), 9), "unknown way");
        let many = vec![r#"[1,"a",1,1,true,0,"",null,null,null]"#; 1601];
        let body = format!(
            r#"{{"event":"table","command":"","oid":1,"identity":"d","columns":[{}]}}"#,
            many.join(",")
        );
        check_refused(&signed(&body, 9), "more columns");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            read_arbitrary(&bytes);
        }

        #[test]
        fn a_note_that_is_cut_or_altered_anywhere_is_refused(at in 0..BODY.len(), byte in any::<u8>()) {
            let whole = signed(BODY, 9);
            prop_assert!(Note::read(&whole[..at.max(1)], &key(), Xid(9)).is_err());
            let mut altered = whole.clone();
            let at = at.min(altered.len() - 1);
            altered[at] = byte;
            prop_assert!(altered == whole || Note::read(&altered, &key(), Xid(9)).is_err());
            // the body alone, signed as it became
            let mut body = BODY.as_bytes().to_vec();
            let at = at.min(body.len() - 1);
            body[at] = byte;
            read_arbitrary(&body);
        }
    }
}
