//! Keys of what records look like: names, types, operations, columns.
//!
//! Names and values are Debezium's, and its defaults hold where nothing else is said. Knows no
//! source.

use super::keys;
use crate::config::{Choice, Rejection, Rule, Table};

/// Every table of this file.
pub const TABLES: [&Table; 3] = [&RECORDS, &TYPES, &COLUMNS];

/// Kafka's limit on the length of a topic's name.
const TOPIC_LIMIT: usize = 249;

/// Text that may be a topic's name, or part of one.
pub(super) fn topic_text(text: &str) -> Result<(), Rejection> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=TOPIC_LIMIT).contains(&text.len()) && text.chars().all(is_legal) {
        return Ok(());
    }
    Err(Rejection::invalid("must be 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'"))
}

fn placeholder(text: &str) -> Result<(), Rejection> {
    let Some(digits) = text.strip_prefix("hex:") else { return Ok(()) };
    if digits.len() % 2 == 0 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(());
    }
    Err(Rejection::invalid("must have pairs of hexadecimal digits after 'hex:'"))
}

const ADJUSTMENTS: &[Choice] =
    &[Choice::of("none"), Choice::of("avro"), Choice::of("avro_unicode")];

keys! {
    /// Topics, names, operations.
    RECORDS "Records"
    supported {
        TOPIC_PREFIX "topic.prefix" String (required) High
            "The first part of the name of every topic and schema. It stands for the database and must not change afterwards."
            Rule::Is(topic_text);
        TOPIC_DELIMITER "topic.delimiter" String (".") Low
            "What stands between the parts of a topic's name."
            Rule::Is(topic_text);
        SCHEMA_NAME_ADJUSTMENT "schema.name.adjustment.mode" String ("none") Low
            "How schema names that Avro does not allow are adjusted."
            Rule::OneOf(ADJUSTMENTS);
        FIELD_NAME_ADJUSTMENT "field.name.adjustment.mode" String () Low
            "How field names that Avro does not allow are adjusted. Without it: avro if a converter is Avro, else none."
            Rule::OneOf(ADJUSTMENTS);
        TOMBSTONES "tombstones.on.delete" Boolean ("true") Medium
            "Whether a delete is followed by a record without value, so that log compaction can forget the key.";
        SKIPPED_OPERATIONS "skipped.operations" List ("none") Medium
            "Operations for which nothing is published: c, u, d, t, m (logical decoding messages, which Debezium cannot skip), or none. Debezium's default is t; here nothing is left out unless told."
            Rule::EachOf(&[
                Choice::of("none"),
                Choice::of("c"),
                Choice::of("u"),
                Choice::of("d"),
                Choice::of("t"),
                Choice::of("m"),
            ]);
        ENVELOPE_EXTENSIONS "envelope.extensions" String ("headers") Medium
            "Where that is said for which Debezium's envelope has no place (columns that were not sent, the table version, the position): in headers, or nowhere."
            Rule::OneOf(&[
                Choice::of("headers"),
                Choice::of("none"),
                Choice::refused("fields", "fields at the end of source are not built yet"),
            ]);
        BEFORE_UNSENT "before.unsent" String ("null") Medium
            "What stands for columns that a key-only before-image does not carry: null, or (as Debezium does) the zero of their type, named in __tidegate.unavailable."
            Rule::OneOf(&[Choice::of("null"), Choice::of("fill")]);
        SKIP_UNCHANGED "skip.messages.without.change" Boolean ("false") Medium
            "Whether updates that change no published column are left out. Only where the source sends the whole row before (REPLICA IDENTITY FULL); a change of the key is always published."
            Rule::Any;
        UNAVAILABLE_PLACEHOLDER "unavailable.value.placeholder" String ("__debezium_unavailable_value") Medium
            "The marker; with `hex:` before it, bytes."
            Rule::Is(placeholder);
    }
    no effect {
        "table.ignore.builtin" Boolean ("true") "the server's own tables are never captured";
    }
    refused {
    }
}

keys! {
    /// How values are published.
    TYPES "Types"
    supported {
        DECIMAL_MODE "decimal.handling.mode" String ("precise") Medium
            "How exact decimals are published."
            Rule::OneOf(&[Choice::of("precise"), Choice::of("double"), Choice::of("string")]);
        TIME_MODE "time.precision.mode" String ("adaptive") Medium
            "How dates and times are published."
            Rule::OneOf(&[
                Choice::of("adaptive"),
                Choice::of("adaptive_time_microseconds"),
                Choice::of("connect"),
                Choice::of("isostring"),
                Choice::of("microseconds"),
                Choice::of("nanoseconds"),
                Choice::refused("structured", "Debezium has it from 3.7 on; 3.6 is followed here"),
            ]);
        INTERVAL_MODE "interval.handling.mode" String ("numeric") Low
            "How spans of time are published: as microseconds (a year counts 365.25 days), or as exact ISO 8601 text."
            Rule::OneOf(&[Choice::of("numeric"), Choice::of("string")]);
        BINARY_MODE "binary.handling.mode" String ("bytes") Low
            "How byte strings are published."
            Rule::OneOf(&[
                Choice::of("bytes"),
                Choice::of("base64"),
                Choice::of("base64-url-safe"),
                Choice::of("hex"),
            ]);
        PROPAGATE_COLUMNS "column.propagate.source.type" List () Low
            "Columns (regular expressions, as schema.table.column) whose schemas in values tell the source's type: __debezium.source.column.type, length, scale, name."
            Rule::Patterns;
        PROPAGATE_TYPES "datatype.propagate.source.type" List () Low
            "The same for columns of these types, as type or schema.table.type."
            Rule::Patterns;
        COMMENTS "include.schema.comments" Boolean ("false") Low
            "Whether comments of tables and columns are their schemas' documentation, as the catalogue has them when a table's definition is first met. A column whose type is published as a structure keeps its type's."
            Rule::Any;
        MONEY_DIGITS "money.fraction.digits" Int ("2") Low
            "Digits after the point of amounts of money."
            Rule::Between(0, 18);
    }
    no effect {
        "include.unknown.datatypes" Boolean ("false")
            "a column of any type is published: as the source's own text where nothing better is known";
    }
    refused {
    }
}

keys! {
    /// Which columns are published, and how they are hidden.
    COLUMNS "Columns"
    supported {
        COLUMN_INCLUDE "column.include.list" List () Medium
            "Regular expressions for the columns that are in records' values, as schema.table.column; each must fit the whole name, in any case. A record's key has its columns in any case."
            Rule::Patterns;
        COLUMN_EXCLUDE "column.exclude.list" List () Medium
            "Regular expressions for the columns that are not."
            Rule::Patterns;
        COLUMN_MASK "column.mask.with.<n>.chars" List () Medium
            "Columns of text (regular expressions, as schema.table.column) for whose every text n asterisks stand. NULL stays null. A column of a record's key is refused."
            Rule::Patterns;
        COLUMN_TRUNCATE "column.truncate.to.<n>.chars" List () Medium
            "Columns of text that are cut to n characters (Java's, of 16 bits; none is cut in two). A record's key has the whole text."
            Rule::Patterns;
        COLUMN_HASH "column.mask.hash.<algorithm>.with.salt.<salt>" List () Medium
            "Columns of text for whose every text a salted hash stands, in hexadecimal digits, cut to the column's length: MD5, SHA-1, SHA-256, SHA-384, SHA-512, SHA-512/256. The hash is over Java's serialized form, as Debezium's."
            Rule::Patterns;
        COLUMN_HASH_V2 "column.mask.hash.v2.<algorithm>.with.salt.<salt>" List () Medium
            "The same over the text's UTF-8 bytes."
            Rule::Patterns;
    }
    no effect {}
    refused {
        "column.whitelist" List () "its name is column.include.list";
        "column.blacklist" List () "its name is column.exclude.list";
        "sanitize.field.names" Boolean () "its name is field.name.adjustment.mode";
        "toasted.value.placeholder" String () "its name is unavailable.value.placeholder";
    }
}
