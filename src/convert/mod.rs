//! Shapes → bytes: the last step before Kafka, and the only one that knows a format.
//!
//! A plan's shapes are compiled once per table version into flat programs ([`TableWriter`]); per row
//! there is a walk over operations that append to a batch's arena. Knows no database and no Kafka
//! client, and asks no registry: schema ids come in from outside. **Invariants:** a change's records
//! are written all or not at all; a format's bytes come from one writer, whether a value is constant
//! or computed.

mod avro;
mod fit;
mod json;
mod literal;
#[cfg(test)]
mod plan_tests;
mod program;
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
use program::Program;

use crate::change::{Column, Event};
use crate::error::{Code, Fault};
use crate::record::{Literal, Schema, Shape};

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
}

/// `decimal.format` of a JSON converter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalFormat {
    /// The unscaled value's bytes in base64.
    Base64,
    /// A JSON number.
    Numeric,
}

/// A record's key and value converter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Converters {
    /// For keys.
    pub key: Converter,
    /// For values.
    pub value: Converter,
}

/// A compiled shape of either format.
#[derive(Debug)]
enum Compiled {
    Avro(Program<Avro>),
    Json(Program<Json>),
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
            Self::Json { decimals, .. } => {
                literal::append_literal(&decimals.style(), schema, literal, out)?;
            }
        }
        out.extend_from_slice(suffix);
        Ok(())
    }

    fn compile(
        &self,
        shape: &Shape,
        id: Option<u32>,
        columns: &[Column],
        purpose: &'static str,
    ) -> Result<Compiled, Fault> {
        let (prefix, suffix) = self.frame(&shape.schema, id)?;
        let frame = (prefix.as_slice(), suffix);
        Ok(match self {
            Self::Avro => Compiled::Avro(Program::compile(&Avro, shape, columns, purpose, frame)?),
            Self::Json { decimals, .. } => {
                Compiled::Json(Program::compile(&decimals.style(), shape, columns, purpose, frame)?)
            }
        })
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
    fn run(&self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), program::Failure> {
        match self {
            Self::Avro(program) => program.run(event, out),
            Self::Json(program) => program.run(event, out),
        }
    }
}
