//! Shapes → Confluent-framed Avro.

mod schema;
#[cfg(test)]
mod schema_tests;
mod writer;

pub(super) use schema::schema_text;
pub(super) use writer::Avro;
