//! Records that are made whole, not from rows: control records, transactions' ends, heartbeats.
//!
//! One schema for each topic and side, registered when the topic is opened. Knows no database and
//! no transform. **Invariant:** structs are written by what can write structs, whatever converter
//! the connector has for rows.

use std::ops::Range;
use std::sync::Arc;

use super::{OffsetRecord, Services, Stage};
use crate::convert::{Converter, HeaderConverter};
use crate::error::Fault;
use crate::plan::{
    Extensions, Notice, NoticeSchemas, context_headers, heartbeat, heartbeat_schemas,
    heartbeat_topic,
};
use crate::record::{Batch, Header, Literal, Record, Schema, Side, Span, TopicId};

/// The partition of heartbeats, as in Debezium.
const HEARTBEAT_PARTITION: i32 = 0;

/// A topic of such records, ready for them.
#[derive(Debug)]
pub(super) struct OpenNotice {
    topic: TopicId,
    key: Half,
    value: Half,
    /// Name and bytes of each header.
    headers: Vec<(String, Vec<u8>)>,
}

#[derive(Debug)]
struct Half {
    converter: Converter,
    schema: Arc<Schema>,
    id: Option<u32>,
}

impl Half {
    fn append(&self, literal: &Literal, batch: &mut Batch) -> Result<Span, Fault> {
        let start = batch.mark();
        self.converter.encode_literal(&self.schema, self.id, literal, batch.arena())?;
        Ok(Span { start, end: batch.mark() })
    }
}

impl OpenNotice {
    /// Whether its records have these schemas.
    pub(super) fn is_of(&self, schemas: &NoticeSchemas) -> bool {
        self.key.schema == schemas.key && self.value.schema == schemas.value
    }

    /// The headers of the next record.
    pub(super) fn with_headers(
        &mut self,
        headers: &[(String, String)],
        converter: HeaderConverter,
    ) -> Result<(), Fault> {
        self.headers.clear();
        for (name, text) in headers {
            self.headers.push((name.clone(), converter.text(text)?));
        }
        Ok(())
    }

    /// Appends a record.
    pub(super) fn write(
        &self,
        (key, value): (&Literal, &Literal),
        partition: Option<i32>,
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        let headers = self.append_headers(batch);
        let key = self.key.append(key, batch)?;
        let value = self.value.append(value, batch)?;
        batch.push(Record {
            topic: self.topic,
            partition,
            key: Some(key),
            value: Some(value),
            headers,
            sequence: 0,
            part: 0,
        });
        Ok(())
    }

    fn append_headers(&self, batch: &mut Batch) -> Range<usize> {
        let start = batch.header_mark();
        for (name, bytes) in &self.headers {
            let name = batch.append(name.as_bytes());
            let value = Some(batch.append(bytes));
            batch.push_header(Header { name, value });
        }
        start..batch.header_mark()
    }
}

impl<S: Services> Stage<S> {
    /// Sees to a topic and its schemas.
    pub(super) async fn open_notice(
        &mut self,
        name: &str,
        schemas: NoticeSchemas,
        headers: &[(&str, String)],
    ) -> Result<OpenNotice, Fault> {
        let facts = self.services.topic(name).await?;
        let topic = self.topics.id(name);
        self.settings.sizes.learn(topic, &facts);
        self.topics.set_limit(facts.max_message_bytes);
        let converters = self.settings.converters.for_structs();
        let NoticeSchemas { key, value } = schemas;
        let key_id = self.schema_id(converters.key, name, Side::Key, &key).await?;
        let value_id = self.schema_id(converters.value, name, Side::Value, &value).await?;
        let headers = headers
            .iter()
            .map(|(name, text)| Ok(((*name).to_owned(), converters.headers.text(text)?)))
            .collect::<Result<_, Fault>>()?;
        Ok(OpenNotice {
            topic,
            key: Half { converter: converters.key, schema: key, id: key_id },
            value: Half { converter: converters.value, schema: value, id: value_id },
            headers,
        })
    }

    /// The headers that every record has, changes or not.
    pub(super) fn context_headers(&self) -> Vec<(&'static str, String)> {
        context_headers(&self.settings.plan, &self.settings.source)
    }

    /// Appends a record to what is staged.
    pub(super) fn stage_notice(
        &mut self,
        open: &OpenNotice,
        notice: &Notice,
        partition: Option<i32>,
    ) -> Result<(), Fault> {
        let before = self.batch.marks();
        let index = before.records();
        open.write((&notice.key, &notice.value), partition, &mut self.batch)
            .and_then(|()| self.settings.sizes.check(&self.batch, index..index + 1, &self.topics))
            .inspect_err(|_fault| self.batch.truncate(before))
    }

    /// Publishes a sign of life with the offset, and hands it over; no transaction is open.
    /// `position` is the offset's, for people.
    ///
    /// # Errors
    /// Registry or broker refuse, or the publisher has ended.
    pub async fn heartbeat(
        &mut self,
        now_micros: i64,
        position: &str,
        offset: OffsetRecord,
    ) -> Result<(), Fault> {
        self.hand_over().await?;
        let mut open = match self.heartbeats.take() {
            Some(open) => open,
            None => {
                let topic = heartbeat_topic(&self.settings.plan);
                let headers = self.context_headers();
                self.open_notice(&topic, heartbeat_schemas(), &headers).await?
            }
        };
        let fixed = open.headers.len();
        if self.settings.plan.extensions != Extensions::None {
            let bytes = self.settings.converters.headers.text(position)?;
            open.headers.push((self.settings.source.position_header.clone(), bytes));
        }
        let notice = heartbeat(&self.settings.plan, now_micros.div_euclid(1000));
        let written = self.stage_notice(&open, &notice, Some(HEARTBEAT_PARTITION));
        open.headers.truncate(fixed);
        self.heartbeats = Some(open);
        written?;
        self.complete = self.batch.marks();
        self.reached = Some(offset);
        self.hand_over().await
    }
}
