//! Topics by a field of the row.
//!
//! Knows no Kafka client; what a text means is asked for by whoever writes the records.
//! **Invariant:** every record of a row goes by a value that the source sends with it, or the table
//! is refused: a delete must reach the topic that its row is in.

use std::sync::Arc;

use super::fields_of;
use crate::error::{Code, Fault};
use crate::record::{Kind, Leaf, Node, Route, Shape, Topic, TopicNaming, Unsent};

/// The topic that a field of this image of the row names; where it names none, the topic that the
/// record had.
pub(super) fn by_field(own: Topic, row: &Shape, name: &str) -> Result<Topic, Fault> {
    let unfit = |reason: String| Code::TransformUnfit.fault(reason).at_column(name);
    let index = row.schema.fields().iter().position(|field| field.name == name);
    let field = index.and_then(|index| fields_of(row).ok()?.get(index));
    let Some(field) = field else {
        return Err(unfit(format!("the table has no column '{name}' to route by")));
    };
    if field.schema.kind != Kind::String {
        return Err(unfit(format!("column '{name}' is published as no text to route by")));
    }
    let node = match &field.node {
        Node::Column { leaf: Leaf::Before(_), unsent: Unsent::Null | Unsent::Stamp(_), .. } => {
            return Err(Code::SourceReplicaIdentity
                .fault(format!(
                    "the source does not send column '{name}' with deletes, so that they could not \
                     be routed by it"
                ))
                .at_column(name)
                .hint(
                    "Make the source send the whole row (REPLICA IDENTITY FULL), or leave deletes \
                     out (delete.tombstone.handling.mode=drop).",
                ));
        }
        Node::Column { leaf, render, .. } => {
            Node::Value { leaf: leaf.clone(), render: render.clone() }
        }
        Node::Struct(_) | Node::Value { .. } | Node::Constant(_) => {
            return Err(unfit(format!("'{name}' is no column to route by")));
        }
    };
    let Topic::Fixed(own) = own else {
        return Err(unfit("the record is routed already".to_owned()));
    };
    Ok(Topic::Routed(Route {
        by: Shape { schema: Arc::clone(&field.schema), node },
        naming: Arc::new(ByText { own }),
    }))
}

/// The text itself, or the table's own topic if there is none.
#[derive(Debug)]
struct ByText {
    own: String,
}

impl TopicNaming for ByText {
    fn topic(&self, text: &str) -> String {
        if text.trim().is_empty() { self.own.clone() } else { text.to_owned() }
    }
}
