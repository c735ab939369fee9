//! A Connect schema: the vocabulary in which Debezium describes its records.

use std::sync::Arc;

/// A schema as Kafka Connect knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// Primitive or composite kind.
    pub kind: Kind,
    /// Whether null is allowed.
    pub optional: bool,
    /// The semantic name, for instance `io.debezium.time.Date`.
    pub name: Option<String>,
    /// The schema's version.
    pub version: Option<i32>,
    /// Parameters in order.
    pub parameters: Vec<(String, String)>,
    /// The default value.
    pub default: Option<Literal>,
    /// Documentation.
    pub doc: Option<String>,
}

/// The kinds of Connect's type system.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// 8-bit integer.
    Int8,
    /// 16-bit integer.
    Int16,
    /// 32-bit integer.
    Int32,
    /// 64-bit integer.
    Int64,
    /// Single precision.
    Float32,
    /// Double precision.
    Float64,
    /// Truth value.
    Boolean,
    /// UTF-8 text.
    String,
    /// Byte string.
    Bytes,
    /// Named fields in order.
    Struct(Vec<Field>),
    /// Elements of one schema.
    Array(Arc<Schema>),
    /// Text keys to values of one schema.
    Map(Arc<Schema>),
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name as published (after adjustment).
    pub name: String,
    /// Its schema. Equal sub-schemas are shared.
    pub schema: Arc<Schema>,
}

/// A constant value of a schema's kind: defaults, sentinels, constants.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// Null.
    Null,
    /// Of kind boolean.
    Boolean(bool),
    /// Of any integer kind.
    Int(i64),
    /// Of kind float32.
    Float32(f32),
    /// Of kind float64.
    Float64(f64),
    /// Of kind string.
    String(String),
    /// Of kind bytes.
    Bytes(Vec<u8>),
    /// Of kind array.
    Array(Vec<Self>),
    /// Of kind struct, by field order.
    Struct(Vec<Self>),
    /// Of kind map.
    Map(Vec<(String, Self)>),
}

impl Schema {
    /// A required schema of a kind, without name.
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            optional: false,
            name: None,
            version: None,
            parameters: Vec::new(),
            default: None,
            doc: None,
        }
    }

    /// Gives it a semantic name and version.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>, version: Option<i32>) -> Self {
        self.name = Some(name.into());
        self.version = version;
        self
    }

    /// Allows null.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Sets whether null is allowed.
    #[must_use]
    pub const fn optional_if(mut self, optional: bool) -> Self {
        self.optional = optional;
        self
    }

    /// Adds a parameter.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// Gives it a default.
    #[must_use]
    pub fn default_value(mut self, default: Option<Literal>) -> Self {
        self.default = default;
        self
    }

    /// Gives it documentation.
    #[must_use]
    pub fn doc(mut self, doc: Option<String>) -> Self {
        self.doc = doc;
        self
    }

    /// The fields of a struct; empty for every other kind.
    pub fn fields(&self) -> &[Field] {
        match &self.kind {
            Kind::Struct(fields) => fields,
            _ => &[],
        }
    }
}
