//! Single message transforms, as rewrites of shapes.
//!
//! ```text
//! the records of one kind ── step ── step ── … ── the records of that kind
//! ```
//!
//! Folded over every record of a plan when it is compiled. A step's condition is decided then, by
//! the record's topic, headers and kind; what it cannot decide becomes a guard, or is refused.
//! Knows no configuration text and no format. **Invariants:** nothing of it is left for the row but
//! leaves and guards; no schema depends on a row's values; what a value holds that was not sent is
//! still named in its headers.

mod extract_new_record_state;
mod field_reference;
mod filter;
mod pattern;
mod predicate;
mod regex_router;
mod replace_field;
mod route;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::predicate::Verdict;
use super::fingerprint::Fingerprint;
use super::{headers, topics};
use crate::change::ChangeKind;
use crate::error::{Code, Fault};
use crate::record::{Node, RecordShape, Route, Schema, Shape, Topic};

pub use self::extract_new_record_state::{DeleteHandling, ExtractNewRecordState};
pub use self::field_reference::FieldReference;
pub use self::pattern::TopicPattern;
pub use self::predicate::{Condition, Predicate};
pub use self::regex_router::RegexRouter;
pub use self::replace_field::ReplaceField;

/// One transform of a connector, with the condition under which it is applied.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name in `transforms`.
    pub name: String,
    /// What it does.
    pub transform: Transform,
    /// When; `None`: always.
    pub condition: Option<Condition>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Transform {
    /// `io.debezium.transforms.ExtractNewRecordState`: the row in the place of the envelope.
    ExtractNewRecordState(ExtractNewRecordState),
    /// `org.apache.kafka.connect.transforms.RegexRouter`: another topic.
    RegexRouter(RegexRouter),
    /// `org.apache.kafka.connect.transforms.ReplaceField`: fewer fields, other names.
    ReplaceField(ReplaceField),
    /// `org.apache.kafka.connect.transforms.Filter`: no record.
    Filter,
}

/// Applies the steps to all records of a plan, in order. Answers why rows cannot be found out, if
/// they cannot: it is rare that any are, so that this alone refuses no table.
///
/// # Errors
/// A step does not fit a record; the fault names the step.
pub(super) fn apply(
    steps: &[Step],
    kinds: &mut [Vec<RecordShape>; ChangeKind::ALL.len()],
) -> Result<Option<Fault>, Fault> {
    let mut unfit = None;
    if steps.is_empty() {
        return Ok(unfit);
    }
    for (kind, records) in ChangeKind::ALL.iter().zip(kinds.iter_mut()) {
        match rewritten(steps, std::mem::take(records)) {
            Ok(made) => *records = made,
            Err(fault) if *kind == ChangeKind::FoundOut => unfit = Some(fault),
            Err(fault) => return Err(fault),
        }
    }
    share_schemas(kinds);
    Ok(unfit)
}

/// What the steps make of the records of one kind.
fn rewritten(steps: &[Step], mut records: Vec<RecordShape>) -> Result<Vec<RecordShape>, Fault> {
    for step in steps {
        let mut made: Vec<RecordShape> = Vec::with_capacity(records.len());
        for record in records {
            let one = step.apply(record, made.last()).map_err(|fault| step.blame(fault))?;
            made.extend(one);
        }
        records = made;
    }
    for record in &mut records {
        if let Topic::Fixed(topic) = &record.topic {
            topics::check(topic)
                .map_err(|fault| fault.within("transforms").about("transforms").hint(TOPICS))?;
        }
        headers::restate(record);
    }
    Ok(records)
}

/// The topic that a text of a row leads to.
///
/// # Errors
/// [`Code::SchemaIllegalName`]: no broker would accept its name.
pub fn routed_topic(route: &Route, text: &str) -> Result<String, Fault> {
    let topic = route.naming.topic(text);
    topics::check(&topic)
        .map_err(|fault| fault.within("transforms").about("transforms").hint(TOPICS))?;
    Ok(topic)
}

const TOPICS: &str = "A topic's name has up to 249 of the characters a-z, A-Z, 0-9, ., _ and -. \
                      Correct the value or the transforms; RegexRouter can replace what is not \
                      legal.";

impl Step {
    /// Says which step, and which of its options, a fault is about.
    fn blame(&self, fault: Fault) -> Fault {
        let option = fault.place().setting.as_deref().unwrap_or("type");
        let setting = format!("transforms.{}.{option}", self.name);
        fault.within(format!("transforms.{}", self.name)).about(setting)
    }

    /// `before` is what it made of the records before this one, its last.
    fn apply(
        &self,
        record: RecordShape,
        before: Option<&RecordShape>,
    ) -> Result<Option<RecordShape>, Fault> {
        let verdict = match &self.condition {
            None => Verdict::Applies,
            Some(condition) => condition.decide(&record)?,
        };
        match (verdict, &self.transform) {
            (Verdict::AppliesNot, _) => Ok(Some(record)),
            (Verdict::Depends(guard), Transform::Filter) => Ok(Some(filter::unless(record, guard))),
            (Verdict::Depends(_), _) => Err(Code::TransformUnfit.fault(DEPENDS)),
            (Verdict::Applies, transform) => transform.apply(record, before),
        }
    }

    /// Refuses what could never be compiled, whatever the table.
    ///
    /// # Errors
    /// Why, without the step's name.
    pub fn check(&self) -> Result<(), &'static str> {
        let depends = self.condition.as_ref().is_some_and(Condition::depends_on_values);
        match self.transform {
            Transform::Filter if self.condition.is_none() => {
                Err("without a predicate it would leave out every record")
            }
            Transform::Filter => Ok(()),
            _ if depends => Err(DEPENDS),
            _ => Ok(()),
        }
    }
}

const DEPENDS: &str = "its predicate asks for a header that some rows have and others of the same \
                       table have not; a record's schema and topic cannot depend on that (Filter \
                       can)";

impl Transform {
    fn apply(
        &self,
        record: RecordShape,
        before: Option<&RecordShape>,
    ) -> Result<Option<RecordShape>, Fault> {
        match self {
            Self::ExtractNewRecordState(unwrap) => unwrap.apply(record, before),
            Self::RegexRouter(router) => Ok(Some(router.apply(record))),
            Self::ReplaceField(replace) => replace.apply(record).map(Some),
            Self::Filter => Ok(None),
        }
    }
}

/// Adds everything of the steps that changes bytes. No steps add nothing.
pub(super) fn fingerprint(steps: &[Step], hash: &mut Fingerprint) {
    for step in steps {
        match &step.transform {
            Transform::ExtractNewRecordState(unwrap) => {
                hash.text("ExtractNewRecordState");
                unwrap.fingerprint(hash);
            }
            Transform::RegexRouter(router) => {
                hash.text("RegexRouter");
                router.fingerprint(hash);
            }
            Transform::ReplaceField(replace) => {
                hash.text("ReplaceField");
                replace.fingerprint(hash);
            }
            Transform::Filter => hash.text("Filter"),
        }
        match &step.condition {
            Some(condition) => condition.fingerprint(hash),
            None => hash.number(0),
        }
    }
}

/// Makes equal schemas one and the same.
fn share_schemas(kinds: &mut [Vec<RecordShape>; ChangeKind::ALL.len()]) {
    let mut known: Vec<Arc<Schema>> = Vec::new();
    for record in kinds.iter_mut().flatten() {
        for Shape { schema, .. } in record.key.iter_mut().chain(&mut record.value) {
            match known.iter().find(|known| **known == *schema) {
                Some(same) => *schema = Arc::clone(same),
                None => known.push(Arc::clone(schema)),
            }
        }
    }
}

/// The fields of a struct, as far as they are told apart.
fn fields_of(shape: &Shape) -> Result<&[Shape], Fault> {
    match &shape.node {
        Node::Struct(fields) => Ok(fields),
        Node::Column { .. } | Node::Value { .. } | Node::Constant(_) => {
            Err(Code::TransformUnfit.fault("the record is not a structure"))
        }
    }
}
