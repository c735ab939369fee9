//! Shapes → bytes: the last step before Kafka, and the only one that knows a format.
//!
//! A plan's shapes are compiled once per table version into flat programs ([`TableWriter`]); per row
//! there is a walk over operations that append to a batch's arena. Knows no database and no Kafka
//! client, and asks no registry: schema ids come in from outside. **Invariants:** a change's records
//! are written all or not at all; a format's bytes come from one writer, whether a value is constant
//! or computed.

mod avro;
#[cfg(test)]
mod converter_tests;
mod fit;
mod headers;
mod json;
mod literal;
#[cfg(test)]
mod plan_tests;
mod program;
mod route;
#[cfg(test)]
mod program_tests;
#[cfg(test)]
mod recorded_tests;
mod table;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod testing;

use avro::Avro;
use json::Json;
use program::{Numbers, Program};

use crate::change::{Column, Event};
use crate::error::{Code, Fault};
use crate::record::{Kind, Literal, Node, Schema, Shape};

pub use headers::HeaderConverter;
pub use route::Unrouted;
pub use table::{Place, TableWriter};

/// How the keys or the values of a connector's records become bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Converter {
    /// Avro behind Confluent's five bytes: a zero and the schema's id, big-endian.
    Avro,
    /// JSON as Connect's `JsonConverter` writes it; a null is never replaced by a default.
    Json {
        /// `schemas.enable`: whether every record carries its schema.
        schemas: bool,
        /// `decimal.format`.
        decimals: DecimalFormat,
    },
    /// As Java's `toString` has it (`Struct{id=1}`), as Connect's `StringConverter` does. Bytes have
    /// no text and are refused.
    Text,
    /// Bytes as they are, as Connect's `ByteArrayConverter` does. Everything else is refused.
    Bytes,
}

/// `decimal.format` of a JSON converter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalFormat {
    /// The unscaled value's bytes in base64.
    Base64,
    /// A JSON number.
    Numeric,
}

/// The converters of a connector's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Converters {
    /// For keys.
    pub key: Converter,
    /// For values.
    pub value: Converter,
    /// For headers.
    pub headers: HeaderConverter,
}

/// A compiled shape of one of the formats.
#[derive(Debug)]
enum Compiled {
    Avro(Program<Avro>),
    Json(Program<Json>),
    /// Text or bytes without a frame, whose null is Kafka's own.
    Bare(Program<Json>),
}

/// Whether the id of a record's schema is part of what is compiled.
#[derive(Clone, Copy, Debug)]
enum Id {
    Inside(Option<u32>),
    /// It is written before each record, by [`Converter::id_prefix`].
    Apart,
}

impl Converters {
    /// What writes structs where these cannot, see [`Converter::for_structs`].
    #[must_use]
    pub const fn for_structs(self) -> Self {
        Self { key: self.key.for_structs(), value: self.value.for_structs(), headers: self.headers }
    }
}

impl DecimalFormat {
    const fn style(self) -> Json {
        match self {
            Self::Base64 => Json::Base64,
            Self::Numeric => Json::Numeric,
        }
    }
}

impl Converter {
    /// The text to register for a schema; `None`: the format needs no registry. Fails for every
    /// schema that the format cannot carry, so that it can serve as a check.
    ///
    /// # Errors
    /// [`Code::SchemaIllegalName`], [`Code::SchemaInvalid`].
    pub fn schema_text(&self, schema: &Schema) -> Result<Option<String>, Fault> {
        match self {
            Self::Avro => avro::schema_text(schema).map(Some),
            Self::Json { .. } => Ok(None),
            Self::Text => check_text(schema).map(|()| None),
            Self::Bytes => check_bytes(schema).map(|()| None),
        }
    }

    /// Appends a constant with its framing: a control record's key or value.
    ///
    /// # Errors
    /// [`Code::Internal`] if the literal is not of the schema's kind, or the id is missing.
    pub fn encode_literal(
        &self,
        schema: &Schema,
        id: Option<u32>,
        literal: &Literal,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let (prefix, suffix) = self.frame(schema, id)?;
        out.extend_from_slice(&prefix);
        match self {
            Self::Avro => literal::append_literal(&Avro, schema, literal, out)?,
            Self::Json { .. } | Self::Text | Self::Bytes => {
                literal::append_literal(&self.text_style(), schema, literal, out)?;
            }
        }
        out.extend_from_slice(suffix);
        Ok(())
    }

    /// What writes structs where this one, chosen for keys or values of another kind, cannot: plain
    /// JSON instead of texts and bytes.
    #[must_use]
    pub const fn for_structs(self) -> Self {
        match self {
            Self::Avro | Self::Json { .. } => self,
            Self::Text | Self::Bytes => {
                Self::Json { schemas: false, decimals: DecimalFormat::Base64 }
            }
        }
    }

    /// Whether a null of a schema is written, and not left to Kafka.
    const fn writes_null(self) -> bool {
        matches!(self, Self::Json { .. })
    }

    /// The spelling of a converter that has no binary form.
    const fn text_style(self) -> Json {
        match self {
            Self::Json { decimals, .. } => decimals.style(),
            Self::Text => Json::Java,
            Self::Avro | Self::Bytes => Json::Raw,
        }
    }

    /// `None`: there is nothing to write but null.
    fn compile(
        &self,
        shape: &Shape,
        id: Id,
        columns: &[Column],
        purpose: &'static str,
    ) -> Result<Option<Compiled>, Fault> {
        if !self.writes_null() && shape.node == Node::Constant(Literal::Null) {
            return Ok(None);
        }
        let (prefix, suffix) = match (self, id) {
            (Self::Avro, Id::Apart) => (Vec::new(), b"".as_slice()),
            (_, Id::Apart) => self.frame(&shape.schema, None)?,
            (_, Id::Inside(id)) => self.frame(&shape.schema, id)?,
        };
        let frame = (prefix.as_slice(), suffix);
        let style = self.text_style();
        Ok(Some(match self {
            Self::Avro => Compiled::Avro(Program::compile(&Avro, shape, columns, purpose, frame)?),
            Self::Json { .. } => {
                Compiled::Json(Program::compile(&style, shape, columns, purpose, frame)?)
            }
            Self::Text | Self::Bytes => {
                Compiled::Bare(Program::compile(&style, shape, columns, purpose, frame)?)
            }
        }))
    }

    /// What stands before a record that was compiled with its id apart.
    fn id_prefix(&self, id: Option<u32>) -> Result<Box<[u8]>, Fault> {
        match (self, id) {
            (Self::Avro, Some(id)) => Ok([&[0], id.to_be_bytes().as_slice()].concat().into()),
            // Without a key or value there is no id either.
            (_, _) => Ok(Box::default()),
        }
    }

    /// What stands before and behind every record of a schema.
    fn frame(&self, schema: &Schema, id: Option<u32>) -> Result<(Vec<u8>, &'static [u8]), Fault> {
        match self {
            Self::Avro => {
                let id = id.ok_or_else(|| Code::Internal.fault("a schema was not registered"))?;
                let mut prefix = vec![0];
                prefix.extend_from_slice(&id.to_be_bytes());
                Ok((prefix, b""))
            }
            Self::Json { schemas: false, .. } => Ok((Vec::new(), b"")),
            Self::Text => check_text(schema).map(|()| (Vec::new(), b"".as_slice())),
            Self::Bytes => check_bytes(schema).map(|()| (Vec::new(), b"".as_slice())),
            Self::Json { schemas: true, decimals } => {
                let mut prefix = b"{\"schema\":".to_vec();
                json::append_schema(&mut prefix, schema, decimals.style())?;
                prefix.extend_from_slice(b",\"payload\":");
                Ok((prefix, b"}"))
            }
        }
    }
}

impl Compiled {
    /// Appends the bytes; `false`: it is null, and nothing was appended.
    fn run(&self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<bool, program::Failure> {
        match self {
            Self::Avro(program) => program.run(event, out).map(|()| true),
            Self::Json(program) => program.run(event, out).map(|()| true),
            Self::Bare(program) => program.run_unless_null(event, out),
        }
    }
}

/// Whether every part of the schema has a text.
fn check_text(schema: &Schema) -> Result<(), Fault> {
    match &schema.kind {
        Kind::Bytes if Numbers::of(schema) == Numbers::Plain => Err(Code::ConverterUnsuitable
            .fault("bytes have no text that StringConverter could write")
            .hint("Set binary.handling.mode=base64 and decimal.handling.mode=string, or use another converter.")),
        Kind::Struct(fields) => fields.iter().try_for_each(|field| {
            check_text(&field.schema).map_err(|fault| fault.at_column(&field.name))
        }),
        Kind::Array(items) | Kind::Map(items) => check_text(items),
        _ => Ok(()),
    }
}

fn check_bytes(schema: &Schema) -> Result<(), Fault> {
    if schema.kind == Kind::Bytes && Numbers::of(schema) == Numbers::Plain {
        return Ok(());
    }
    let kind = match &schema.kind {
        Kind::Struct(_) => "a struct",
        Kind::Bytes => "a decimal",
        _ => "another kind of value",
    };
    Err(Code::ConverterUnsuitable
        .fault(format!("ByteArrayConverter writes bytes only, and this is {kind}")))
}
