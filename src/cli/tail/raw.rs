//! A record as it is: bytes in hex, headers, no registry.

use rdkafka::message::{Message, OwnedMessage};
use serde_json::{Map, Value, json};

use super::parts::{headers, text_or_hex};
use crate::cli::output::Paint;

/// Bytes on one line of hex are cut into groups of so many.
const GROUP: usize = 4;
/// So many groups are on a line for people.
const GROUPS: usize = 8;

/// One JSON object; bytes are hex without prefix.
pub(super) fn json_line(message: &OwnedMessage) -> String {
    let part = |bytes: Option<&[u8]>| bytes.map(hex);
    let headers: Map<String, Value> = headers(message)
        .into_iter()
        .map(|(name, value)| (name, part(value).map_or(Value::Null, Value::String)))
        .collect();
    json!({
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp().to_millis(),
        "key": part(message.key()),
        "value": part(message.payload()),
        "headers": headers,
    })
    .to_string()
}

/// Several lines for people.
pub(super) fn readable(message: &OwnedMessage, paint: Paint) -> String {
    let (topic, partition, offset) = (message.topic(), message.partition(), message.offset());
    let mut text = paint.bold(&format!("{topic}[{partition}]@{offset}"));
    if let Some(millis) = message.timestamp().to_millis() {
        text.push_str(&format!(" at {millis}"));
    }
    for (name, value) in headers(message) {
        let value = value.map_or(Value::Null, text_or_hex);
        text.push_str(&paint.dim(&format!("\n  {name}: {}", value.as_str().unwrap_or("null"))));
    }
    for (name, bytes) in [("key", message.key()), ("value", message.payload())] {
        text.push_str(&match bytes {
            Some(bytes) => format!("\n  {name} ({} bytes)", bytes.len()),
            None => format!("\n  {name}: null"),
        });
        for row in bytes.unwrap_or_default().chunks(GROUP * GROUPS) {
            let groups: Vec<_> = row.chunks(GROUP).map(hex).collect();
            text.push_str(&format!("\n    {:<71}  {}", groups.join(" "), printable(row)));
        }
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn printable(bytes: &[u8]) -> String {
    let shown = |byte: &u8| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' };
    bytes.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use rdkafka::Timestamp;
    use rdkafka::message::{Header, OwnedHeaders};

    use super::*;

    fn message() -> OwnedMessage {
        let headers = OwnedHeaders::new()
            .insert(Header { key: "h", value: Some("text") })
            .insert(Header { key: "n", value: None::<&str> });
        let (key, value) = (Some(vec![0, 0, 0, 0, 7, b'a']), None);
        let time = Timestamp::CreateTime(5);
        OwnedMessage::new(value, key, "t".to_owned(), time, 1, 9, Some(headers))
    }

    #[test]
    fn bytes_are_shown_as_they_are() {
        expect![[r#"
            t[1]@9 at 5
              h: text
              n: null
              key (6 bytes)
                00000000 0761                                                            .....a
              value: null"#]]
        .assert_eq(&readable(&message(), Paint(false)));
        expect![[r#"{"topic":"t","partition":1,"offset":9,"timestamp":5,"key":"000000000761","value":null,"headers":{"h":"74657874","n":null}}"#]]
            .assert_eq(&json_line(&message()));
    }
}
