//! Shapes → JSON as Kafka Connect's `JsonConverter` writes it.

mod number;
mod schema;
pub(super) mod text;
mod time;
mod writer;

pub(super) use schema::append_schema;
pub(super) use writer::Json;
