//! Topics that depend on the row: the text that decides, and where it was found to lead.
//!
//! What a text means is found out elsewhere, once (a topic may have to be created, and schemas
//! registered); then it is looked up here, without anything new being made. Knows no Kafka client.
//! **Invariant:** a record goes nowhere before its text is known.

use std::collections::HashMap;

use super::json::Json;
use super::program::{Failure, Program};
use super::{Converters, Place};
use crate::change::{Column, Event};
use crate::error::{Code, Fault};
use crate::record::{Batch, Route, TopicId};

/// Texts of one record that lead to different topics, at most.
const MOST: usize = 10_000;

/// A text that leads somewhere that is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrouted {
    /// Which of the plan's records it is.
    pub record: usize,
    /// The text; empty for null too.
    pub text: String,
}

/// Where the records of one shape go.
#[derive(Debug)]
pub(super) enum Destination {
    /// All to one topic; the ids of the schemas are part of the programs.
    Fixed(TopicId),
    /// By a text of the row.
    Routed(Router),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Router {
    record: usize,
    by: Program<Json>,
    known: HashMap<Box<[u8]>, Leg>,
}

/// Where a text leads.
#[derive(Debug)]
pub(super) struct Leg {
    /// The topic.
    pub(super) topic: TopicId,
    /// What stands before the key.
    pub(super) key: Box<[u8]>,
    /// What stands before the value.
    pub(super) value: Box<[u8]>,
}

impl Router {
    /// Compiles a route for one of the plan's records.
    pub(super) fn compile(record: usize, route: &Route, columns: &[Column]) -> Result<Self, Fault> {
        let by = Program::compile(&Json::Plain, &route.by, columns, "a topic", (b"", b""))?;
        Ok(Self { record, by, known: HashMap::new() })
    }

    /// Where this row's record goes, or the text that has to be asked for.
    pub(super) fn find(
        &self,
        event: &Event<'_>,
        batch: &mut Batch,
    ) -> Result<Result<&Leg, Unrouted>, Failure> {
        // The text is written behind the records and taken back: nothing is allocated for it.
        let start = batch.mark();
        let arena = batch.arena();
        let written = self.by.run_unless_null(event, arena);
        let text = arena.get(start..).unwrap_or_default();
        let leg = self.known.get(text).ok_or_else(|| Unrouted {
            record: self.record,
            text: String::from_utf8_lossy(text).into_owned(),
        });
        arena.truncate(start);
        written.map(|_null_is_empty| leg)
    }

    /// Keeps where a text leads.
    pub(super) fn learn(
        &mut self,
        text: &str,
        place: Place,
        converters: &Converters,
    ) -> Result<(), Fault> {
        if self.known.len() >= MOST {
            return Err(Code::TransformUnfit
                .fault(format!("the rows of the table lead to more than {MOST} topics"))
                .hint("Route by a column with fewer values."));
        }
        let leg = Leg {
            topic: place.topic,
            key: converters.key.id_prefix(place.key)?,
            value: converters.value.id_prefix(place.value)?,
        };
        self.known.insert(text.as_bytes().into(), leg);
        Ok(())
    }
}
