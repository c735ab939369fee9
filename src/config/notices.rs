//! Keys of what is told beside the changes: transactions, heartbeats, context headers.
//!
//! **Invariant:** a key that would ask for something nobody does is a fault.

use super::keys::delivery as keys;
use super::keys::envelope::SKIP_UNCHANGED;
use super::values::Values;
use crate::plan::NoticeSettings;
use crate::sources::Heartbeats;

/// What records of transactions, heartbeats and headers look like.
pub(super) fn parse(values: &mut Values<'_>) -> NoticeSettings {
    let old = values.optional(&keys::HEARTBEAT_PREFIX_OLD).map(str::to_owned);
    let prefix = values.text(&keys::HEARTBEAT_PREFIX);
    let heartbeat_prefix = match old {
        Some(old) if old != prefix && values.is_given(&keys::HEARTBEAT_PREFIX) => {
            let message = "says something else than topic.heartbeat.prefix";
            values.fault(&keys::HEARTBEAT_PREFIX_OLD, message);
            prefix
        }
        old => old.unwrap_or(prefix),
    };
    let transactions = values.flag(&keys::TRANSACTION_METADATA);
    if transactions && values.flag(&SKIP_UNCHANGED) {
        let message = "cannot be combined with provide.transaction.metadata: what is left out \
                       would leave holes in the numbers of events";
        values.fault(&SKIP_UNCHANGED, message);
    }
    NoticeSettings {
        transactions,
        transaction_topic: values.text(&keys::TRANSACTION_TOPIC),
        heartbeat_prefix,
        context_headers: values.flag(&keys::CONTEXT_HEADERS),
        ..NoticeSettings::default()
    }
}

/// Signs of life in the stream; `None`: there are none.
pub(super) fn heartbeats(values: &mut Values<'_>) -> Option<Heartbeats> {
    let interval = values.millis(&keys::HEARTBEAT_INTERVAL);
    let action = values.optional(&keys::HEARTBEAT_ACTION).map(str::to_owned);
    if !interval.is_zero() {
        return Some(Heartbeats { interval, action });
    }
    if action.is_some() {
        let message = "is never run without heartbeat.interval.ms";
        values.fault(&keys::HEARTBEAT_ACTION, message);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::tests::{check_faults, parse};

    #[test]
    fn nothing_is_told_unless_it_is_asked_for() {
        let connector = parse(&[]);
        assert_eq!(connector.heartbeats, None);
        assert_eq!(connector.plan.notices, NoticeSettings::default());
    }

    #[test]
    fn each_key_is_carried_out() {
        let connector = parse(&[
            ("provide.transaction.metadata", "true"),
            ("topic.transaction", "tx"),
            ("heartbeat.interval.ms", "200"),
            ("heartbeat.action.query", "select 1"),
            ("heartbeat.topics.prefix", "pulse"),
            ("extended.headers.enabled", "true"),
        ]);
        let expect = NoticeSettings {
            transactions: true,
            transaction_topic: "tx".to_owned(),
            heartbeat_prefix: "pulse".to_owned(),
            context_headers: true,
            run_id: String::new(),
        };
        assert_eq!(connector.plan.notices, expect);
        let interval = Duration::from_millis(200);
        let action = Some("select 1".to_owned());
        assert_eq!(connector.heartbeats, Some(Heartbeats { interval, action }));
    }

    #[test]
    fn what_would_never_happen_is_refused() {
        check_faults(
            &[
                ("heartbeat.action.query", "select 1"),
                ("heartbeat.topics.prefix", "a"),
                ("topic.heartbeat.prefix", "b"),
                ("provide.transaction.metadata", "true"),
                ("skip.messages.without.change", "true"),
            ],
            &[
                "TG-E-CONFIG-INVALID: heartbeat.topics.prefix 'a': says something else than \
                 topic.heartbeat.prefix",
                "TG-E-CONFIG-INVALID: skip.messages.without.change 'true': cannot be combined with \
                 provide.transaction.metadata: what is left out would leave holes in the numbers of \
                 events",
                "TG-E-CONFIG-INVALID: heartbeat.action.query 'select 1': is never run without \
                 heartbeat.interval.ms",
            ],
        );
    }
}
