//! Keys, values and headers of a record → JSON: by the registry's schema, by the schema beside a
//! JSON value, or as they are.

use std::collections::HashMap;
use std::sync::Arc;

use rdkafka::message::{Headers, Message, OwnedMessage};
use serde_json::Value;

use super::decode::{RegisteredSchema, hex};
use super::print::Shown;
use crate::cli::output;
use crate::error::{Code, Fault};
use crate::registry::{Address, Authentication, Registry, Settings as RegistrySettings};

/// Decodes records; asks the registry once for each schema.
pub(super) struct Decoder {
    registry: Option<Registry>,
    schemas: HashMap<u32, Result<Arc<RegisteredSchema>, Fault>>,
    /// Somebody was told that a registry is needed.
    missed_registry: bool,
}

impl Decoder {
    /// With a registry, or for texts only.
    pub(super) fn new(registry_url: Option<&str>) -> Result<Self, Fault> {
        let registry = match registry_url {
            Some(url) => Some(Registry::new(RegistrySettings::new(
                vec![Address::parse(url)?],
                Authentication::default(),
            ))?),
            None => None,
        };
        Ok(Self { registry, schemas: HashMap::new(), missed_registry: false })
    }

    /// All parts of a record.
    pub(super) async fn decode(&mut self, message: &OwnedMessage) -> Shown {
        let key = match message.key() {
            Some(bytes) => self.part(bytes).await,
            None => Value::Null,
        };
        let value = match message.payload() {
            Some(bytes) => Some(self.part(bytes).await),
            None => None,
        };
        let headers = headers(message)
            .into_iter()
            .map(|(name, value)| (name, value.map_or(Value::Null, text_or_hex)))
            .collect();
        Shown {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            offset: message.offset(),
            timestamp: message.timestamp().to_millis(),
            key,
            value,
            headers,
        }
    }

    /// Confluent's framing begins with a zero byte, which neither JSON nor text does.
    async fn part(&mut self, bytes: &[u8]) -> Value {
        match bytes {
            [0, a, b, c, d, body @ ..] if self.registry.is_some() => {
                match self.schema(u32::from_be_bytes([*a, *b, *c, *d])).await {
                    Ok(schema) => schema
                        .decode(body)
                        .unwrap_or_else(|fault| Value::String(format!("<{fault}>"))),
                    Err(fault) => Value::String(format!("<{fault}>")),
                }
            }
            [0, _, _, _, _, ..] => {
                if !std::mem::replace(&mut self.missed_registry, true) {
                    output::error(
                        "some records have the id of a schema in a registry; give its address with \
                         --registry-url",
                    );
                }
                Value::String(hex(bytes))
            }
            _ => serde_json::from_slice(bytes).unwrap_or_else(|_not_json| text_or_hex(bytes)),
        }
    }

    async fn schema(&mut self, id: u32) -> Result<Arc<RegisteredSchema>, Fault> {
        if let Some(Ok(known)) = self.schemas.get(&id) {
            return Ok(Arc::clone(known));
        }
        let Some(registry) = &self.registry else {
            return Err(Code::ConfigInvalid.fault("--registry-url is missing"));
        };
        let text = registry.fetch_schema(id).await?;
        let schema = RegisteredSchema::parse(&text);
        self.schemas.insert(id, schema.clone());
        schema
    }
}

/// Headers in order.
pub(super) fn headers(message: &OwnedMessage) -> Vec<(String, Option<&[u8]>)> {
    message
        .headers()
        .map(|all| all.iter().map(|header| (header.key.to_owned(), header.value)).collect())
        .unwrap_or_default()
}

/// Text where it is text.
pub(super) fn text_or_hex(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes)
        .map_or_else(|_binary| Value::String(hex(bytes)), |text| Value::String(text.to_owned()))
}
