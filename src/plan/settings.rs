//! What a plan is told: how values, names, topics and records are to look.
//!
//! Made by `config`, typed; nothing here is a string that still has to be understood. Knows no
//! database. **Invariant:** everything here that changes a published byte is part of
//! [`PlanSettings::fingerprint`].

use super::change_policy::ChangePolicy;
use super::column_rules::ColumnRules;
use super::fingerprint::Fingerprint;
use super::names::NameAdjustment;
use super::notices::NoticeSettings;
use super::placeholder::Placeholder;
use super::schema_change::ControlFormat;
use super::transforms::{self, Step};
use crate::error::{Code, Fault};

/// How the changes of a connector become records.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the configuration")]
pub struct PlanSettings {
    /// `topic.prefix`.
    pub topic_prefix: String,
    /// `topic.delimiter`, between prefix, namespace and table.
    pub topic_delimiter: String,
    /// How values look.
    pub values: ValueModes,
    /// `schema.name.adjustment.mode`.
    pub schema_names: NameAdjustment,
    /// `field.name.adjustment.mode`.
    pub field_names: NameAdjustment,
    /// `tombstones.on.delete`.
    pub tombstones_on_delete: bool,
    /// `skipped.operations`.
    pub skipped: OperationSet,
    /// `skip.messages.without.change`: updates that change no published column, where the source
    /// sends the whole row before.
    pub skip_unchanged: bool,
    /// `before.unsent`.
    pub before_unsent: BeforeUnsent,
    /// What becomes of rows after a change that are not complete.
    pub incomplete: IncompleteRows,
    /// `envelope.extensions`.
    pub extensions: Extensions,
    /// Which columns are published, and how they are hidden.
    pub columns: ColumnRules,
    /// `transforms`, in order.
    pub transforms: Vec<Step>,
    /// What is told of transactions, heartbeats and the connector itself.
    pub notices: NoticeSettings,
    /// Rows can move into and out of what is published: a table has a filter.
    pub rows_move: bool,
    /// What becomes of changed definitions.
    pub changes: ChangePolicy,
    /// `schema.changes.format`. Changes no record of a row, so it is not in the fingerprint.
    pub control_format: ControlFormat,
}

/// How values look.
#[derive(Clone, Debug)]
pub struct ValueModes {
    /// `decimal.handling.mode`.
    pub decimal: DecimalMode,
    /// `time.precision.mode`.
    pub time: TimeMode,
    /// `interval.handling.mode`.
    pub interval: IntervalMode,
    /// `binary.handling.mode`.
    pub binary: BinaryMode,
    /// How key-value pairs are published.
    pub key_values: KeyValueMode,
    /// `money.fraction.digits`.
    pub money_fraction_digits: u8,
    /// `include.schema.comments`: comments of tables and columns are their schemas' documentation.
    pub comments: bool,
    /// `unavailable.value.placeholder`.
    pub placeholder: Placeholder,
}

impl PlanSettings {
    /// The defaults: Debezium's, except where a guess would be published as a fact.
    pub fn new(topic_prefix: impl Into<String>) -> Self {
        Self {
            topic_prefix: topic_prefix.into(),
            topic_delimiter: ".".to_owned(),
            values: ValueModes::default(),
            schema_names: NameAdjustment::None,
            field_names: NameAdjustment::None,
            tombstones_on_delete: true,
            skipped: OperationSet::default(),
            skip_unchanged: false,
            before_unsent: BeforeUnsent::Null,
            incomplete: IncompleteRows::default(),
            extensions: Extensions::Headers,
            columns: ColumnRules::default(),
            transforms: Vec::new(),
            notices: NoticeSettings::default(),
            rows_move: false,
            changes: ChangePolicy::default(),
            control_format: ControlFormat::Tidegate,
        }
    }

    /// Refuses combinations under which a marked or filled-in value could not be told from a real
    /// one.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`] naming both settings.
    pub fn check(&self) -> Result<(), Fault> {
        if self.extensions != Extensions::None {
            return Ok(());
        }
        if self.rows_move {
            return Err(Code::ConfigInvalid.fault(
                "envelope.extensions=none leaves no place that says that a row moved into or out \
                 of its table's filter; remove row.filter.<schema.table>",
            ));
        }
        if self.incomplete.marks() {
            let remedy = self.incomplete.remedy;
            return Err(Code::ConfigInvalid.fault(format!(
                "envelope.extensions=none leaves no place that says which values were not sent; \
                 it needs {remedy}",
            )));
        }
        if self.control_format == ControlFormat::Debezium {
            return Err(Code::ConfigInvalid.fault(
                "envelope.extensions=none leaves no place for what Debezium's schema changes do not \
                 say; set schema.changes.format=tidegate",
            ));
        }
        if self.before_unsent == BeforeUnsent::Fill {
            return Err(Code::ConfigInvalid.fault(
                "envelope.extensions=none leaves no place that says which values before.unsent=fill \
                 has made up",
            ));
        }
        Ok(())
    }

    /// A hash over everything that changes bytes. Stable across restarts, machines and versions of
    /// this program, unless a version publishes other bytes for the same settings.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fingerprint::new();
        // Raised when the same settings begin to give other bytes.
        hash.number(2);
        hash.text(&self.topic_prefix);
        hash.text(&self.topic_delimiter);
        hash.text(self.values.decimal.as_str());
        hash.text(self.values.time.as_str());
        hash.text(self.values.interval.as_str());
        hash.text(self.values.binary.as_str());
        hash.number(self.values.money_fraction_digits.into());
        hash.bytes(self.values.placeholder.bytes());
        hash.text(self.schema_names.as_str());
        hash.text(self.field_names.as_str());
        hash.number(self.tombstones_on_delete.into());
        hash.number(self.skipped.0.into());
        hash.text(self.before_unsent.as_str());
        self.incomplete.fingerprint(&mut hash);
        hash.text(self.extensions.as_str());
        if self.skip_unchanged {
            hash.text("skip unchanged");
        }
        if self.values.key_values == KeyValueMode::Map {
            hash.text("key values as maps");
        }
        if self.values.comments {
            hash.text("comments");
        }
        if self.rows_move {
            hash.text("rows move");
        }
        self.columns.fingerprint(&mut hash);
        self.notices.fingerprint(&mut hash);
        transforms::fingerprint(&self.transforms, &mut hash);
        hash.finish()
    }
}

impl Default for ValueModes {
    fn default() -> Self {
        Self {
            decimal: DecimalMode::Precise,
            time: TimeMode::Adaptive,
            interval: IntervalMode::Numeric,
            binary: BinaryMode::Bytes,
            key_values: KeyValueMode::Json,
            money_fraction_digits: 2,
            comments: false,
            placeholder: Placeholder::default(),
        }
    }
}

/// An enum whose variants are words of the configuration.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word in the configuration.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The value of a word.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }
    };
}
pub(super) use words;

words! {
    /// `decimal.handling.mode`: exact decimals.
    DecimalMode {
        /// Unscaled bytes: Connect's `Decimal`, or Debezium's `VariableScaleDecimal`.
        Precise = "precise",
        /// The nearest double; beyond a double's range is refused.
        Double = "double",
        /// Plain text.
        String = "string",
    }
}

words! {
    /// `time.precision.mode`: dates, times and timestamps without zone. A value that the unit
    /// cannot hold exactly is refused, never rounded or wrapped.
    TimeMode {
        /// Milliseconds for columns of up to three digits, else microseconds.
        Adaptive = "adaptive",
        /// The same, but every time of day in microseconds.
        AdaptiveTimeMicroseconds = "adaptive_time_microseconds",
        /// Connect's own types, in milliseconds: fit for columns of up to three digits.
        Connect = "connect",
        /// Microseconds.
        Microseconds = "microseconds",
        /// Nanoseconds: years 1677 to 2262.
        Nanoseconds = "nanoseconds",
        /// ISO 8601 text in UTC.
        IsoString = "isostring",
    }
}

words! {
    /// `interval.handling.mode`.
    IntervalMode {
        /// Microseconds, a month being 30.4375 days.
        Numeric = "numeric",
        /// ISO 8601 text, exact.
        String = "string",
    }
}

words! {
    /// `binary.handling.mode`.
    BinaryMode {
        /// Bytes.
        Bytes = "bytes",
        /// Base64 text.
        Base64 = "base64",
        /// Base64 text in the URL-safe alphabet.
        Base64UrlSafe = "base64-url-safe",
        /// Hexadecimal text.
        Hex = "hex",
    }
}

words! {
    /// How key-value pairs are published.
    KeyValueMode {
        /// A JSON object in text.
        Json = "json",
        /// A map.
        Map = "map",
    }
}

words! {
    /// `before.unsent`: columns that a key-only image of the row before does not carry.
    BeforeUnsent {
        /// Null. Where that needs nullable fields, `before` has a record type of its own.
        Null = "null",
        /// Debezium's: the default or the type's zero where null is not allowed.
        Fill = "fill",
    }
}

/// What becomes of a row after a change in which the source left a value out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomplete {
    /// The type's marker stands for the value, which is named in a header.
    Mark,
    /// A coded stop; the text names the row, and what refuses it.
    Refuse(&'static str),
}

/// The same, by what the record is to its reader. A source says it in keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncompleteRows {
    /// A change of a row that a reader knows: the value is that of an earlier record.
    pub updates: Incomplete,
    /// A row that nobody knows yet.
    pub creates: Incomplete,
    /// The same row under another key, of which there is no earlier record.
    pub key_changes: Incomplete,
    /// Before that, the source is asked for the row as it is now; what comes of it is named in a
    /// header.
    pub rereads: bool,
    /// The setting with which no row is marked, for messages.
    pub remedy: &'static str,
}

impl Default for IncompleteRows {
    fn default() -> Self {
        Self {
            updates: Incomplete::Mark,
            creates: Incomplete::Refuse("a row that nobody knows yet"),
            key_changes: Incomplete::Mark,
            rereads: false,
            remedy: "that such rows are refused",
        }
    }
}

impl IncompleteRows {
    /// Refuses all of them.
    pub const fn refused(what: &'static str) -> Self {
        Self {
            updates: Incomplete::Refuse(what),
            creates: Incomplete::Refuse(what),
            key_changes: Incomplete::Refuse(what),
            rereads: false,
            remedy: "",
        }
    }

    fn marks(&self) -> bool {
        [self.updates, self.creates, self.key_changes].contains(&Incomplete::Mark)
    }

    fn fingerprint(&self, hash: &mut Fingerprint) {
        let marks = |policy| policy == Incomplete::Mark;
        // The words are those of versions that knew one policy for all rows.
        hash.text(if marks(self.updates) { "mark" } else { "refuse" });
        if marks(self.creates) {
            hash.text("creates marked");
        }
        if marks(self.updates) && !marks(self.key_changes) {
            hash.text("key changes refused");
        }
        if self.rereads {
            hash.text("key changes reread");
        }
    }
}

words! {
    /// `envelope.extensions`: where what goes beyond Debezium's envelope is put.
    Extensions {
        /// In headers.
        Headers = "headers",
        /// Nowhere.
        None = "none",
    }
}

words! {
    /// An operation that can be skipped, by its letter in the envelope.
    Operation {
        /// A row appeared.
        Create = "c",
        /// A row changed, its key too or not.
        Update = "u",
        /// A row went.
        Delete = "d",
        /// All rows went.
        Truncate = "t",
        /// An application wrote a message.
        Message = "m",
    }
}

/// A set of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationSet(u8);

impl OperationSet {
    /// None of them.
    pub const EMPTY: Self = Self(0);

    /// Adds one.
    #[must_use]
    pub const fn with(self, operation: Operation) -> Self {
        Self(self.0 | 1 << operation as u8)
    }

    /// Whether it is among them.
    pub const fn contains(self, operation: Operation) -> bool {
        self.0 & 1 << operation as u8 != 0
    }
}

/// Debezium's default of `skipped.operations`: truncates.
impl Default for OperationSet {
    fn default() -> Self {
        Self::EMPTY.with(Operation::Truncate)
    }
}

impl FromIterator<Operation> for OperationSet {
    fn from_iter<I: IntoIterator<Item = Operation>>(operations: I) -> Self {
        operations.into_iter().fold(Self::EMPTY, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        assert_eq!(TimeMode::from_word("isostring"), Some(TimeMode::IsoString));
        assert_eq!(TimeMode::from_word("structured"), None);
        for mode in BinaryMode::ALL {
            assert_eq!(BinaryMode::from_word(mode.as_str()), Some(*mode));
        }
    }

    #[test]
    fn only_truncates_are_skipped_by_default() {
        let skipped = OperationSet::default();
        assert!(skipped.contains(Operation::Truncate) && !skipped.contains(Operation::Create));
        let some: OperationSet = [Operation::Update, Operation::Delete].into_iter().collect();
        assert!(some.contains(Operation::Delete) && !some.contains(Operation::Truncate));
    }

    #[test]
    fn without_extensions_nothing_may_be_marked_or_made_up() {
        let mut settings = PlanSettings::new("shop");
        assert_eq!(settings.check(), Ok(()));
        settings.extensions = Extensions::None;
        assert_eq!(settings.check().unwrap_err().code(), Code::ConfigInvalid);
        settings.incomplete = IncompleteRows::refused("a row");
        assert_eq!(settings.check(), Ok(()));
        settings.before_unsent = BeforeUnsent::Fill;
        assert_eq!(settings.check().unwrap_err().code(), Code::ConfigInvalid);
        settings.before_unsent = BeforeUnsent::Null;
        settings.control_format = ControlFormat::Debezium;
        assert_eq!(settings.check().unwrap_err().code(), Code::ConfigInvalid);
    }

    #[test]
    fn every_setting_changes_the_fingerprint() {
        let base = PlanSettings::new("shop");
        let changes: &[fn(&mut PlanSettings)] = &[
            |s| s.topic_prefix = "other".to_owned(),
            |s| s.topic_delimiter = "-".to_owned(),
            |s| s.values.decimal = DecimalMode::String,
            |s| s.values.time = TimeMode::Connect,
            |s| s.values.interval = IntervalMode::String,
            |s| s.values.binary = BinaryMode::Hex,
            |s| s.values.key_values = KeyValueMode::Map,
            |s| s.values.comments = true,
            |s| s.values.money_fraction_digits = 3,
            |s| s.values.placeholder = Placeholder::parse("gone").unwrap(),
            |s| s.schema_names = NameAdjustment::Avro,
            |s| s.field_names = NameAdjustment::Avro,
            |s| s.tombstones_on_delete = false,
            |s| s.skipped = OperationSet::EMPTY,
            |s| s.before_unsent = BeforeUnsent::Fill,
            |s| s.incomplete.updates = Incomplete::Refuse(""),
            |s| s.incomplete.creates = Incomplete::Mark,
            |s| s.incomplete.key_changes = Incomplete::Refuse(""),
            |s| s.incomplete.rereads = true,
            |s| s.extensions = Extensions::None,
            |s| s.skip_unchanged = true,
            |s| s.rows_move = true,
            |s| s.columns.exclude = Some(vec![regex::Regex::new("a").unwrap()]),
            |s| s.columns.include = Some(vec![regex::Regex::new("a").unwrap()]),
            |s| s.notices.transactions = true,
            |s| s.notices.transaction_topic = "tx".to_owned(),
            |s| s.notices.context_headers = true,
        ];
        let mut seen = std::collections::HashSet::from([base.fingerprint()]);
        for change in changes {
            let mut settings = base.clone();
            change(&mut settings);
            assert!(seen.insert(settings.fingerprint()), "{settings:?}");
        }
        assert_eq!(base.fingerprint(), PlanSettings::new("shop").fingerprint());
    }

    #[test]
    fn the_fingerprint_of_the_defaults_never_changes_by_itself() {
        assert_eq!(PlanSettings::new("shop").fingerprint(), 0x716c_8307_80e1_8932);
    }
}
