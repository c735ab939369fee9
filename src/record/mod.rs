//! What Kafka Connect carries: schemas, shapes, rendered values, batches of finished records.
//!
//! Knows no database and no Kafka client. **Invariant:** a shape is compiled once per table
//! version; per row there is only a walk over it.

mod batch;
mod render;
mod schema;
mod shape;

pub use batch::{Batch, Header, Marks, Record, Span, TopicId};
pub use render::{
    HashAlgorithm, HashInput, Hiding, Presence, Primitive, Render, SaltedHash, render,
};
pub use schema::{Field, Kind, Literal, Schema};
pub use shape::{
    Expression, Guard, HeaderShape, HeaderValue, Leaf, Node, RecordShape, Route, Shape, Side,
    Topic, TopicNaming, TransactionField, Unsent,
};
