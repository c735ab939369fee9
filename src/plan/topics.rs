//! Which topic a table's records go to.
//!
//! Knows no Kafka client. **Invariant:** the name is legal for a broker, or refused; two tables that
//! would share one are found by [`topic_collisions`] before anything is published.

use std::collections::BTreeMap;

use super::settings::PlanSettings;
use crate::change::TableId;
use crate::error::{Code, Fault};

/// A broker's limit on the name of a topic.
const LONGEST: usize = 249;

/// The topic of a table: prefix, namespace and table, joined by the delimiter. What Kafka does not
/// accept becomes an underscore, character by character (UTF-16, as in Debezium).
///
/// # Errors
/// [`Code::SchemaIllegalName`] if the name is longer than a broker accepts.
pub fn table_topic(settings: &PlanSettings, table: &TableId) -> Result<String, Fault> {
    let PlanSettings { topic_prefix, topic_delimiter, .. } = settings;
    let TableId { namespace, name } = table;
    let topic =
        adjust(&format!("{topic_prefix}{topic_delimiter}{namespace}{topic_delimiter}{name}"));
    check(&topic).map_err(|fault| {
        fault
            .at_table(table.to_string())
            .about("topic.prefix")
            .hint("Shorten topic.prefix, or rename the table.")
    })?;
    Ok(topic)
}

/// Refuses what no broker accepts as a topic's name.
///
/// # Errors
/// [`Code::SchemaIllegalName`].
pub(super) fn check(topic: &str) -> Result<(), Fault> {
    let illegal = |reason: String| Err(Code::SchemaIllegalName.fault(reason));
    if topic.len() > LONGEST {
        let length = topic.len();
        return illegal(format!(
            "the topic name '{topic}' has {length} characters, a broker accepts {LONGEST}"
        ));
    }
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if matches!(topic, "" | "." | "..") || !topic.chars().all(is_letter) {
        return illegal(format!("'{}' is no name for a topic", topic.escape_debug()));
    }
    Ok(())
}

/// Replaces what a topic's name may not hold.
fn adjust(name: &str) -> String {
    name.encode_utf16()
        .map(|unit| match char::from_u32(unit.into()) {
            Some(letter) if letter.is_ascii_alphanumeric() => letter,
            Some(mark @ ('.' | '_' | '-')) => mark,
            _ => '_',
        })
        .collect()
}

/// The topics that more than one of these tables would be published to.
///
/// # Errors
/// A name is longer than a broker accepts.
pub fn topic_collisions<'t>(
    settings: &PlanSettings,
    tables: impl IntoIterator<Item = &'t TableId>,
) -> Result<Vec<(String, Vec<&'t TableId>)>, Fault> {
    let mut topics = BTreeMap::<String, Vec<&TableId>>::new();
    for table in tables {
        topics.entry(table_topic(settings, table)?).or_default().push(table);
    }
    Ok(topics.into_iter().filter(|(_, tables)| tables.len() > 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(namespace: &str, name: &str) -> TableId {
        TableId { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    #[track_caller]
    fn check(namespace: &str, name: &str, expect: &str) {
        let topic = table_topic(&PlanSettings::new("shop"), &table(namespace, name));
        assert_eq!(topic.as_deref(), Ok(expect));
    }

    #[test]
    fn characters_that_kafka_refuses_become_underscores() {
        check("public", "item", "shop.public.item");
        check("public", "dot.ted", "shop.public.dot.ted");
        check("public", "1digit", "shop.public.1digit");
        check("public", "Mixed Case", "shop.public.Mixed_Case");
        check("Sales-2024", "T$1", "shop.Sales-2024.T_1");
        check("public", "Ünï_コード", "shop.public._n_____");
        check("public", "😀", "shop.public.__");
    }

    #[test]
    fn the_delimiter_is_free() {
        let mut settings = PlanSettings::new("shop");
        settings.topic_delimiter = "-".to_owned();
        assert_eq!(table_topic(&settings, &table("crm", "lead")).unwrap(), "shop-crm-lead");
    }

    #[test]
    fn a_name_that_no_broker_accepts_is_refused() {
        let fault = table_topic(&PlanSettings::new("shop"), &table("public", &"x".repeat(240)));
        assert_eq!(fault.unwrap_err().code(), Code::SchemaIllegalName);
    }

    #[test]
    fn tables_that_share_a_topic_are_found() {
        let tables = [table("a", "b c"), table("a", "b_c"), table("a", "d")];
        let found = topic_collisions(&PlanSettings::new("shop"), &tables).unwrap();
        assert_eq!(found, [("shop.a.b_c".to_owned(), vec![&tables[0], &tables[1]])]);
    }
}
